import Primitives
import SIP
import STUN
import Testing

@testable import Signalling

/// RFC 5626's keep-alives in simulated time.
@Suite struct KeepAliveTests {
    /// Drives one keeper and answers or does not.
    private struct Probe {
        var keeper: KeepAlive
        var now = MonotonicTime(nanoseconds: 5_000_000_000)
        /// What was sent, with the time since the beginning.
        var sent: [(probe: KeepAliveProbe, at: Duration)] = []
        var other: [KeepAlive.Action] = []
        private let start = MonotonicTime(nanoseconds: 5_000_000_000)
        /// What the server answers to.
        var answers: (KeepAliveProbe) -> KeepAliveAnswer? = { _ in nil }

        init(_ transport: SIPTransport, seed: UInt64 = 1) {
            keeper = KeepAlive(transport: transport, random: .seeded(seed))
        }

        mutating func register(_ change: (inout RegistrarTerms) -> Void = { _ in }) {
            var terms = RegistrarTerms()
            change(&terms)
            keeper.registered(terms, at: now)
            drain()
        }

        mutating func receive(_ answer: KeepAliveAnswer) {
            keeper.receive(answer, at: now)
            drain()
        }

        mutating func run(for duration: Duration) {
            let end = now + duration
            var steps = 0
            while let next = keeper.nextTimeout, next <= end, steps < 10_000 {
                steps += 1
                now = max(now, next)
                keeper.timeout(at: now)
                drain()
            }
            #expect(steps < 10_000, "it does not come to rest")
            now = end
        }

        private mutating func drain() {
            while let action = keeper.nextAction() {
                guard case .send(let probe) = action else {
                    other.append(action)
                    continue
                }
                sent.append((probe, now - start))
                if let answer = answers(probe) { keeper.receive(answer, at: now) }
            }
        }

        var pauses: [Duration] { zip(sent, sent.dropFirst()).map { $1.at - $0.at } }
        var isDead: Bool { other.contains { if case .failed = $0 { true } else { false } } }
    }

    private static let addresses = (40_000...40_009).compactMap { STUNAddress(bytes: [10, 0, 0, 1], port: $0) }

    @Test(arguments: [SIPTransport.tcp, .tls, .ws, .wss])
    func streamsArePingedInTheLastFifthOfTwoMinutes(transport: SIPTransport) {
        var probe = Probe(transport)
        probe.answers = { _ in .pong }
        probe.run(for: .seconds(600))
        #expect(probe.sent.isEmpty, "nothing before the registration")
        probe.register()
        probe.run(for: .seconds(86_400))
        #expect(probe.sent.allSatisfy { $0.probe == .ping })
        #expect(probe.pauses.allSatisfy { (.seconds(96) ... .seconds(120)).contains($0) })
        #expect(Set(probe.pauses).count > probe.pauses.count / 2, "random, so that clients do not ping in step")
        #expect(probe.other.isEmpty)
        #expect(probe.keeper.kind == (transport.isWebSocket ? .webSocketPing : .crlf))
    }

    @Test func theServersTimerIsHonouredWithinReason() {
        for (asked, range) in [
            (60, Duration.seconds(48) ... .seconds(60)), (0, .seconds(8) ... .seconds(10)),
            (4_000_000_000, .seconds(2_880) ... .seconds(3_600)),
        ] {
            var probe = Probe(.tls)
            probe.answers = { _ in .pong }
            probe.register { $0.flowTimer = .seconds(asked) }
            probe.run(for: .seconds(40_000))
            #expect(probe.sent.count > 5 && probe.pauses.allSatisfy(range.contains), "Flow-Timer: \(asked)")
        }
        // A shorter timer that a refresh brings counts from then on.
        var probe = Probe(.tcp)
        probe.register()
        probe.run(for: .seconds(1))
        probe.register { $0.flowTimer = .seconds(20) }
        probe.run(for: .seconds(20))
        #expect(probe.sent.count == 1)
        // Refreshes that say the same do not put the next one off for ever.
        probe = Probe(.tcp)
        for _ in 0..<100 {
            probe.register()
            probe.run(for: .seconds(50))
        }
        #expect(probe.sent.count >= 5_000 / 120)
    }

    @Test(arguments: [SIPTransport.tcp, .wss])
    func aMissingPongMeansADeadFlowOnlyWhereOneIsDue(transport: SIPTransport) throws {
        // The server never said that it answers, and never did.
        var probe = Probe(transport)
        probe.register()
        probe.run(for: .seconds(3_600))
        #expect(!probe.isDead && probe.sent.count >= 30)

        for change: (inout RegistrarTerms) -> Void in [
            { $0.supportsOutbound = true }, { $0.flowTimer = .seconds(120) },
        ] {
            probe = Probe(transport)
            probe.register(change)
            probe.run(for: .seconds(3_600))
            #expect(probe.isDead && probe.sent.count == 1 && probe.keeper.nextTimeout == nil)
        }

        // It has answered once, so it can.
        probe = Probe(transport)
        probe.answers = { _ in .pong }
        probe.register()
        probe.run(for: .seconds(600))
        #expect(!probe.isDead)
        probe.answers = { _ in nil }
        probe.run(for: .seconds(131))
        #expect(probe.isDead)
        let last = try #require(probe.sent.last?.at)
        probe.receive(.pong)
        probe.run(for: .seconds(600))
        #expect(probe.sent.last?.at == last && probe.other.count == 1, "dead is dead")
    }

    @Test func aLatePongIsNoDeath() {
        var probe = Probe(.tcp)
        probe.register { $0.supportsOutbound = true }
        var pings = 0
        while pings < 50 {
            let before = probe.sent.count
            probe.run(for: .milliseconds(100))
            guard probe.sent.count > before else { continue }
            pings += 1
            probe.run(for: .milliseconds(9_800))
            probe.receive(.pong)
        }
        #expect(!probe.isDead)
    }

    @Test func datagramsAreKeptAliveByBindingRequests() {
        var probe = Probe(.udp)
        probe.answers = {
            guard case .binding(let transaction) = $0 else { return nil }
            return .binding(transaction, Self.addresses[0])
        }
        probe.register { $0.supportsOutbound = true }
        probe.run(for: .seconds(3_600))
        #expect(probe.keeper.kind == .stun && probe.other.isEmpty)
        #expect(probe.sent.count >= 120)
        #expect(probe.pauses.allSatisfy { (.milliseconds(23_200) ... .seconds(29)).contains($0) })
        #expect(Set(probe.sent.map(\.probe)).count == probe.sent.count, "each has a transaction of its own")
        // A server that is content with less does not make the NAT so.
        probe.register { $0.flowTimer = .seconds(600) }
        probe.run(for: .seconds(3_600))
        #expect(probe.pauses.allSatisfy { $0 <= .seconds(29) })
    }

    @Test func unansweredBindingRequestsAreRepeatedAsRFC8489Says() throws {
        var probe = Probe(.udp)
        probe.register { $0.supportsOutbound = true }
        probe.run(for: .seconds(200))
        #expect(probe.isDead)
        let first = try #require(probe.sent.first)
        #expect(probe.sent.allSatisfy { $0.probe == first.probe })
        #expect(
            probe.sent.map { ($0.at - first.at) }
                == [0, 500, 1_500, 3_500, 7_500, 15_500, 31_500].map { .milliseconds($0) })
    }

    @Test func oneLostAnswerIsNoDeath() {
        var probe = Probe(.udp)
        var count = 0
        probe.answers = {
            count += 1
            guard case .binding(let transaction) = $0, count % 3 == 0 else { return nil }
            return .binding(transaction, Self.addresses[0])
        }
        probe.register { $0.supportsOutbound = true }
        probe.run(for: .seconds(3_600))
        #expect(!probe.isDead && probe.other.isEmpty)
    }

    @Test func aChangedAddressIsReportedOnceAndForeignAnswersNever() {
        var probe = Probe(.udp)
        var port = 0
        probe.answers = {
            guard case .binding(let transaction) = $0 else { return nil }
            return .binding(transaction, Self.addresses[port])
        }
        probe.register()
        probe.run(for: .seconds(100))
        #expect(probe.other.isEmpty, "the first answer is no change")
        port = 1
        probe.run(for: .seconds(100))
        #expect(probe.other == [.addressChanged])
        // Somebody guesses.
        var random = RandomSource.seeded(77)
        for _ in 0..<100 {
            probe.receive(.binding(STUNTransactionID(using: &random), Self.addresses[5]))
            probe.receive(.pong)
        }
        probe.run(for: .seconds(100))
        #expect(probe.other == [.addressChanged])
        // A server that stops telling the address still shows that it is there.
        probe.answers = {
            guard case .binding(let transaction) = $0 else { return nil }
            return .binding(transaction, nil)
        }
        probe.run(for: .seconds(1_000))
        #expect(probe.other == [.addressChanged])
    }

    @Test func aServerWithoutSTUNIsSparedAndTheNATKeptOpen() {
        var probe = Probe(.udp)
        probe.register()
        probe.run(for: .seconds(3_600))
        #expect(!probe.isDead && probe.keeper.kind == .crlf)
        let requests = probe.sent.filter { $0.probe != .ping }
        #expect(requests.count == 3 && Set(requests.map(\.probe)).count == 3, "no request twice")
        #expect(probe.pauses.allSatisfy { $0 <= .seconds(29) })
        // An answer that comes after all makes it one that answers.
        probe = Probe(.udp)
        probe.register()
        probe.run(for: .seconds(29))
        if case .binding(let transaction)? = probe.sent.last?.probe {
            probe.receive(.binding(transaction, Self.addresses[0]))
        }
        probe.run(for: .seconds(200))
        #expect(probe.isDead)
    }
}
