import DNS
import Primitives
import Testing

@Suite struct DNSCacheTests {
    private let question = DNSQuestion("example.org", .a)
    private let records = DNSAnswer.records([.address("192.0.2.1")])
    private let start = MonotonicTime(nanoseconds: 5_000_000_000)

    @Test func answersHoldForTheirLifetime() {
        var cache = DNSCache()
        cache.store(DNSReply(records, lifetime: .seconds(10)), to: question, at: start)
        #expect(cache.answer(to: question, at: start + .milliseconds(9_999)) == records)
        #expect(cache.answer(to: question, at: start + .seconds(10)) == nil)
        #expect(cache.answer(to: DNSQuestion("example.org", .aaaa), at: start) == nil)
        cache.removeAll()
        #expect(cache.answer(to: question, at: start) == nil)
    }

    @Test func lifetimesAreBounded() {
        var cache = DNSCache()
        cache.store(DNSReply(records, lifetime: .seconds(Int(Int32.max))), to: question, at: start)
        #expect(cache.answer(to: question, at: start + DNSCache.longestLifetime - .nanoseconds(1)) == records)
        #expect(cache.answer(to: question, at: start + DNSCache.longestLifetime) == nil)
        for negative in [DNSAnswer.noData, .noSuchName] {
            cache.store(DNSReply(negative, lifetime: .seconds(86_400)), to: question, at: start)
            #expect(cache.answer(to: question, at: start + .seconds(59)) == negative)
            #expect(cache.answer(to: question, at: start + DNSCache.longestNegativeLifetime) == nil)
        }
    }

    @Test func failuresAndFleetingAnswersAreNotKept() {
        var cache = DNSCache()
        cache.store(DNSReply(.failed(.timedOut), lifetime: .seconds(5)), to: question, at: start)
        cache.store(DNSReply(records, lifetime: .zero), to: question, at: start)
        cache.store(DNSReply(.noSuchName), to: question, at: start)
        #expect(cache.count == 0)
    }

    @Test func whatEndsFirstMakesRoom() {
        var cache = DNSCache(capacity: 3)
        let names = ["a", "b", "c", "d"]
        for (name, seconds) in zip(names, [30, 10, 20, 40]) {
            cache.store(DNSReply(records, lifetime: .seconds(seconds)), to: DNSQuestion(name, .a), at: start)
        }
        #expect(cache.count == 3)
        #expect(names.map { cache.answer(to: DNSQuestion($0, .a), at: start) != nil } == [true, false, true, true])
        // A known question takes no room of another's.
        cache.store(DNSReply(.noData, lifetime: .seconds(5)), to: DNSQuestion("c", .a), at: start)
        #expect(cache.count == 3)
        // What has ended goes before what holds.
        cache.store(DNSReply(records, lifetime: .seconds(1)), to: DNSQuestion("e", .a), at: start + .seconds(35))
        #expect(cache.count == 2)
        for index in 0..<10_000 {
            cache.store(DNSReply(records, lifetime: .seconds(60)), to: DNSQuestion("n\(index)", .a), at: start)
        }
        #expect(cache.count == 3)
    }
}
