import DNS
import Primitives
import Testing

@testable import SIP

@Suite struct ServerHistoryTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)
    private let target = ServerTarget(host: "example.com", transport: .tcp)
    private let zone = Zone([
        "_sip._tcp.example.com SRV 1 1 5060 a.example.com.", "_sip._tcp.example.com SRV 2 1 5060 b.example.com.",
        "_sip._tcp.example.com SRV 3 1 5060 c.example.com.", "a.example.com A 192.0.2.1", "b.example.com A 192.0.2.2",
        "c.example.com A 192.0.2.3",
    ])

    private func order(_ history: ServerHistory, at now: MonotonicTime) -> [String] {
        Search(target, zone, history: history, at: now).candidates.map(\.address.host)
    }

    private func address(_ host: String, _ port: UInt16 = 5060) -> TransportAddress {
        TransportAddress(host: host, port: port)
    }

    @Test func serversThatFailedAreTriedLastForAWhile() {
        var history = ServerHistory()
        history.markFailed(.tcp, address("192.0.2.1"), until: start + .seconds(60), at: start)
        #expect(order(history, at: start + .seconds(59)) == ["192.0.2.2", "192.0.2.3", "192.0.2.1"])
        #expect(order(history, at: start + .seconds(60)) == ["192.0.2.1", "192.0.2.2", "192.0.2.3"])
        history.markFailed(.tcp, address("192.0.2.2"), until: start + .seconds(30), at: start)
        #expect(order(history, at: start) == ["192.0.2.3", "192.0.2.1", "192.0.2.2"])
        history.markReached(.tcp, address("192.0.2.1"))
        #expect(order(history, at: start) == ["192.0.2.1", "192.0.2.3", "192.0.2.2"])
    }

    @Test func onlyTheTransportAndPortThatFailedAreAvoided() {
        var history = ServerHistory()
        history.markFailed(.tls, address("192.0.2.1"), until: start + .seconds(60), at: start)
        history.markFailed(.tcp, address("192.0.2.1", 5061), until: start + .seconds(60), at: start)
        #expect(order(history, at: start) == ["192.0.2.1", "192.0.2.2", "192.0.2.3"])
    }

    @Test func avoidanceIsBounded() {
        var history = ServerHistory()
        history.markFailed(.tcp, address("192.0.2.1"), until: .distantFuture, at: start)
        #expect(history.avoidedUntil(.tcp, address("192.0.2.1"), at: start) == start + ServerHistory.longestAvoidance)
        history.markFailed(.tcp, address("192.0.2.2"), until: start, at: start)
        history.markFailed(.tcp, address("192.0.2.3"), until: start - .seconds(1), at: start)
        #expect(history.count == 1)
    }

    @Test func memoryIsBounded() {
        var history = ServerHistory()
        for index in 0..<10_000 {
            history.markFailed(
                .tcp, address("10.0.\(index / 250).\(index % 250)"), until: start + .seconds(60 + index), at: start)
        }
        #expect(history.count == ServerHistory.capacity)
        #expect(history.avoidedUntil(.tcp, address("10.0.39.249"), at: start) != nil, "the last one is remembered")
        history.markFailed(.tcp, address("192.0.2.1"), until: start + .seconds(100_000), at: start + .seconds(50_000))
        #expect(history.count == 1, "what is over is forgotten")
    }
}
