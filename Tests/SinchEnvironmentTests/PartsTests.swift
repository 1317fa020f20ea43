import Primitives
import SIP
import Testing

@testable import SinchEnvironment

/// The parts that decide without a network.
@Suite struct PartsTests {
    @Test(
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"), (1_700_000_000, "Tue, 14 Nov 2023 22:13:20 GMT"),
            (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (Int64.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (Int64.min, "Mon, 01 Jan 0001 00:00:00 GMT"),
        ] as [(Int64, String)])
    func dates(unixTime: Int64, text: String) {
        #expect(sipDate(unixTime: unixTime) == text)
    }

    @Test func deadlinesComeInOrder() {
        var random = RandomSource.seeded(3)
        var queue = DeadlineQueue<Int64>()
        for _ in 0..<500 {
            let time = Int64(random.next() % 1_000)
            queue.push(time, at: MonotonicTime(nanoseconds: time))
        }
        var last: Int64 = -1
        var count = 0
        while let next = queue.next, let key = queue.popDue(at: next) {
            #expect(key >= last)
            last = key
            count += 1
        }
        #expect(count == 500)
        for key in 0..<200 { queue.push(Int64(key), at: MonotonicTime(nanoseconds: Int64(key))) }
        queue.prune(live: 10) { $0 % 20 == 0 }
        #expect(queue.count == 10)
        let due = [queue.popDue(at: .zero), queue.popDue(at: .zero)]
        #expect(due == [0, nil])
    }

    @Test func bucketsFillWithTime() {
        let limit = RateLimit(perSecond: 10, burst: 3)
        var now = MonotonicTime.zero
        var bucket = TokenBucket(limit, at: now)
        var taken = (0..<5).map { _ in bucket.take(limit, at: now) }
        #expect(taken == [true, true, true, false, false])
        now += .milliseconds(100)
        taken = (0..<2).map { _ in bucket.take(limit, at: now) }
        #expect(taken == [true, false])
        let isFull = [now, now + .seconds(1)].map { bucket.isFull(limit, at: $0) }
        #expect(isFull == [false, true])
        // A clock that steps back neither fills nor empties.
        taken = (0..<4).map { _ in bucket.take(limit, at: now) }
        #expect(taken == [true, true, true, false])
    }

    @Test func sourcesAreBounded() {
        let one = RateLimit(perSecond: 1, burst: 1)
        var limiter = SourceLimiter(messages: one, calls: one, refusals: one, maxSources: 4)
        func flow(_ port: UInt16) -> SIPFlow {
            SIPFlow(transport: .udp, remote: TransportAddress(host: "127.0.0.1", port: port), connection: 0)
        }
        for port in 1...100 as ClosedRange<UInt16> {
            _ = limiter.count(.message, from: flow(port), at: .zero)
            #expect(limiter.count <= 4)
        }
        // Beyond the bound newcomers share one bucket, which is empty by now.
        let crowded = limiter.count(.message, from: flow(200), at: .zero)
        #expect(crowded == .drop)
        // Later the quiet ones are forgotten and there is room again.
        let later = limiter.count(.message, from: flow(201), at: .zero + .seconds(2))
        #expect(later == .accept)
        #expect(limiter.count == 1)
    }

    @Test func dialogTokensOpenOnlyUntouched() throws {
        var random = RandomSource.seeded(5)
        let sealer = DialogTokenSealer(random: &random)
        let other = DialogTokenSealer(random: &random)
        for round in 0..<50 as Range<UInt64> {
            let flows = (0..<2).map { index in
                SIPFlow(
                    transport: index == 0 ? .udp : .tcp,
                    remote: TransportAddress(
                        host: round % 2 == 0 ? "127.0.0.1" : "2001:db8::1", port: UInt16(random.next() & 0xFFFF)),
                    connection: random.next() >> (random.next() & 63))
            }
            let token = DialogToken(
                caller: .init(binding: random.next() >> (random.next() & 63), flow: flows[0]),
                callee: .init(binding: round, flow: flows[1]), callerTag: "tag\(round)")
            let text = sealer.seal(token)
            #expect(sealer.open(text) == token)
            #expect(token.isCaller("tag\(round)"))
            #expect(!token.isCaller("tag"))
            #expect(other.open(text) == nil)
            #expect(sealer.open(text + "A") == nil)
            #expect(sealer.open(String(text.dropLast())) == nil)
            #expect(text.utf8.count < 160)
        }
        for text in ["", "A", "not base64 !", String(repeating: "A", count: 100)] { #expect(sealer.open(text) == nil) }
    }

    @Test(
        arguments: [
            ([486, 408], 486), ([404, 603, 200], 603), ([500, 486], 486), ([302, 486], 302), ([487, 480], 480),
            ([408, 430], 408), ([488, 486], 486), ([420, 486], 420), ([481, 487], 481), ([503, 500], 503),
            ([600, 603], 600),
        ] as [([Int], Int)])
    func bestResponse(statuses: [Int], best: Int) {
        let outcomes = statuses.filter { $0 >= 300 }.map {
            ResponseContext.Outcome.failure(status: $0, reason: "")
        }
        #expect(BestResponse.choose(outcomes, cancelled: false)?.status == best)
    }

    @Test func bestResponseToACancelledCallIs487() {
        let outcomes = [486, 487].map { ResponseContext.Outcome.failure(status: $0, reason: "") }
        #expect(BestResponse.choose(outcomes, cancelled: true)?.status == 487)
        #expect(BestResponse.choose([], cancelled: true) == nil)
    }

    @Test func domainIsOursByNameAddressAndPort() throws {
        var configuration = EnvironmentConfiguration()
        configuration.listen = [
            .udp: TransportAddress(host: "127.0.0.1", port: 5_070), .tcp: TransportAddress(host: "::1", port: 5_071),
        ]
        let domain = Domain(configuration)
        for (text, isOurs) in [
            ("sip:a@sinchctl.localhost", true), ("sip:a@SINCHCTL.localhost:9", true), ("sip:localhost", true),
            ("sip:a@127.0.0.1", true), ("sip:a@127.0.0.1:5070", true), ("sip:a@127.0.0.1:5060", false),
            ("sip:a@[::1]:5071", true), ("sip:a@[::1]:5070", false), ("sip:a@example.com", false), ("tel:+46", false),
        ] {
            #expect(domain.owns(try SIPURI(parsing: text)) == isOurs, "\(text)")
        }
    }

    @Test func usersAreForgottenOldestFirstWhenThereAreTooMany() {
        var location = LocationService(maxBindings: 10, maxPerUser: 2, maxUsers: 3)
        let flow = SIPFlow(
            transport: .udp, remote: TransportAddress(host: "127.0.0.1", port: 1), connection: 0)
        for number in 0..<5_000 {
            let user = UserKey(application: "a", user: "u\(number)")
            let contact = SIPAddress(uri: SIPURI(user: user.user, host: "127.0.0.1", port: 1))
            let outcome = location.register(
                .init(contact: contact, flow: flow, callID: "c", sequence: 1, expiry: .zero + .seconds(60)), for: user)
            location.remove(outcome.binding)
            #expect(location.userCount <= 3)
            #expect(location.isKnown(user))
        }
        #expect(!location.isKnown(UserKey(application: "a", user: "u0")))
        #expect(location.count == 0)
        let rest = location.removeAll(over: flow)
        #expect(rest.isEmpty)
    }
}
