import Primitives
import STUN
import Testing

@testable import ICE

/// What an agent does when the other side, or a stranger, is odd.
@Suite struct ICEBehaviourTests {
    @Test("both sides believe to be in control, or neither does", arguments: [true, false], UInt64(1)...6)
    func roleConflict(bothControl: Bool, seed: UInt64) throws {
        var call = SimulatedCall([.open, .restricted], seed: seed, isCallerControlling: [bothControl, bothControl])
        call.run()
        #expect(call.failures == [nil, nil])
        #expect(call.paths.allSatisfy { !$0.isEmpty })
        #expect(call.agents[0].isControlling != call.agents[1].isControlling)
    }

    @Test func consentIsKeptAndItsLossIsNoticed() throws {
        var call = SimulatedCall([.fullCone, .portRestricted])
        call.run()
        call.run(for: .seconds(120), untilSettled: false)
        #expect(call.failures == [nil, nil], "both answer, so both go on")
        // The network is cut.
        call.internet.loss = 1
        let cut = call.internet.now
        call.run(for: .seconds(60), untilSettled: false)
        #expect(call.failures == [.consentLost, .consentLost])
        #expect(call.internet.now - cut >= .seconds(20))
        #expect(call.agents.allSatisfy { $0.path == nil && $0.nextTimeout == nil })
    }

    @Test func aShortOutageIsBorne() {
        var call = SimulatedCall([.open, .open])
        call.run()
        call.internet.loss = 1
        call.run(for: .seconds(15), untilSettled: false)
        call.internet.loss = 0
        call.run(for: .seconds(90), untilSettled: false)
        #expect(call.failures == [nil, nil])
    }

    @Test("a check without the password moves nothing and is not answered")
    func strangersAreIgnored() throws {
        var call = SimulatedCall([.open, .open])
        call.run()
        let stranger = try #require(STUNAddress(host: "198.51.100.77", port: 6_666))
        let before = call.agents[0].path
        let fragment = call.agents[0].localCredentials.fragment
        var random = RandomSource.seeded(3)
        for key in [nil, Array("a wrong password, long enough".utf8)] {
            for name in ["\(fragment):\(call.agents[1].localCredentials.fragment)", "\(fragment):x", fragment, ":", ""]
            {
                let message = STUNMessage(
                    .request, transaction: STUNTransactionID(using: &random),
                    attributes: [
                        STUNAttribute(.username, Array(name.utf8)), .number(.priority, 1),
                        STUNAttribute(.useCandidate, []), .longNumber(.iceControlling, .max),
                    ])
                let reception = call.agents[0].receive(
                    message.encoded(key: key), on: 0, from: stranger, at: call.internet.now)
                #expect(reception == .consumed)
            }
        }
        #expect(call.agents[0].nextAction() == nil, "silence")
        #expect(call.agents[0].path == before)
        #expect(call.agents[0].counters.rejected >= 10)
        #expect(!call.agents[0].remotes.contains { $0.address == stranger })
    }

    @Test("with the password, an unlisted address is a peer-reflexive candidate and no more")
    func peerReflexive() throws {
        var call = SimulatedCall([.open, .open])
        call.run()
        let other = try #require(STUNAddress(host: "203.0.113.11", port: 7_777))
        var random = RandomSource.seeded(4)
        let name = "\(call.agents[0].localCredentials.fragment):\(call.agents[1].localCredentials.fragment)"
        let transaction = STUNTransactionID(using: &random)
        let message = STUNMessage(
            .request, transaction: transaction,
            attributes: [
                STUNAttribute(.username, Array(name.utf8)), .number(.priority, 1_000),
                .longNumber(.iceControlled, 1),
            ])
        let before = call.agents[0].path
        _ = call.agents[0].receive(
            message.encoded(key: Array(call.agents[0].localCredentials.password.utf8)), on: 0, from: other,
            at: call.internet.now)
        var answers: [STUNMessage] = []
        while let action = call.agents[0].nextAction() {
            if case .send(let bytes, _, let to) = action, to == other { answers.append(try STUNMessage.parse(bytes)) }
        }
        #expect(answers.first?.messageClass == .success)
        #expect(answers.first?.mappedAddress == other)
        #expect(call.agents[0].path == before)
        #expect(call.agents[0].remotes.contains { $0.address == other && $0.kind == .peerReflexive })
    }

    @Test func hostileBytesAreNoTrap() {
        var call = SimulatedCall([.open, .open], usesTURN: true)
        call.run()
        var random = RandomSource.seeded(8)
        for _ in 0..<20_000 {
            var bytes = (0..<Int(random.next() % 120)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            if bytes.count >= 20, random.next() % 2 == 0 {
                bytes.replaceSubrange(
                    0..<8,
                    with: [
                        UInt8(random.next() % 2), UInt8(truncatingIfNeeded: random.next()), 0,
                        UInt8(bytes.count - 20) & 0xFC, 0x21, 0x12, 0xA4, 0x42,
                    ])
            }
            let source = random.next() % 2 == 0 ? SimulatedInternet.turn : call.internet.sites[1].inside
            _ = call.agents[0].receive(bytes, on: 0, from: source, at: call.internet.now)
        }
        #expect(call.failures == [nil, nil])
        #expect(call.agents[0].path != nil)
    }

    @Test func floodsOfCandidatesAreBounded() throws {
        var call = SimulatedCall([.open, .open])
        for number in 0..<2_000 {
            let address = try #require(
                STUNAddress(bytes: [203, 0, 114, UInt8(number & 0xFF)], port: UInt16(1_000 + number)))
            call.agents[0].addRemote(
                ICECandidate(kind: .host, address: address, foundation: "f", priority: 1), at: call.internet.now)
        }
        #expect(call.agents[0].remotes.count <= ICEConfiguration().maximumRemoteCandidates)
        #expect(call.agents[0].pairs.count <= ICEConfiguration().maximumPairs)
    }

    @Test func wrongCredentialsAtTheRelayEndItOnly() throws {
        var agent = ICEAgent(random: .seeded(2))
        var relay = SimulatedRelay()
        let own = try #require(STUNAddress(host: "203.0.113.10", port: 5_000))
        var now = MonotonicTime(nanoseconds: 1)
        agent.gather(
            sockets: [ICESocket(id: 0, address: own)],
            servers: [
                ICEServerAddress(
                    address: SimulatedInternet.turn, relay: TURNCredentials(username: "alice", password: "wrong"))
            ], at: now)
        var requests = 0
        var isGathered = false
        for _ in 0..<20 {
            while let action = agent.nextAction() {
                switch action {
                case .send(let bytes, _, _):
                    requests += 1
                    for (answer, from, _) in relay.receive(bytes, from: own, at: SimulatedInternet.turn) {
                        _ = agent.receive(answer, on: 0, from: from, at: now)
                    }
                case .gathered: isGathered = true
                default: break
                }
            }
            guard let next = agent.nextTimeout else { break }
            now = next
            agent.timeout(at: now)
        }
        #expect(requests == 2, "asked, challenged, refused: no third try")
        #expect(isGathered)
        #expect(agent.localCandidates.map(\.kind) == [.host])
    }

    @Test(
        "what a peer may not make us send checks to",
        arguments: [
            ("127.0.0.1", false), ("::1", false), ("169.254.169.254", false), ("fe80::1", false), ("224.0.0.1", false),
            ("255.255.255.255", false), ("0.0.0.0", false), ("::", false), ("ff02::1", false),
            ("::ffff:127.0.0.1", false), ("::ffff:169.254.169.254", false), ("203.0.113.1", true),
            ("2001:db8::1", true),
            ("10.0.0.1", true), ("::ffff:203.0.113.1", true),
        ])
    func policy(host: String, isAllowed: Bool) throws {
        let address = try #require(STUNAddress(host: host, port: 5_000))
        #expect(ICEAddressPolicy().allows(address) == isAllowed)
        #expect(!ICEAddressPolicy().allows(try #require(STUNAddress(host: host, port: 0))))
    }

    @Test func candidatesAreReadAndWritten() throws {
        let line = "842163049 1 UDP 1677729535 203.0.113.9 46154 typ srflx raddr 10.0.0.5 rport 46154 generation 0"
        let candidate = try #require(ICECandidate(attribute: line))
        #expect(candidate.kind == .serverReflexive && candidate.transport == "udp" && candidate.port == 46_154)
        #expect(candidate.related == STUNAddress(host: "10.0.0.5", port: 46_154))
        #expect(ICECandidate(attribute: candidate.attribute) == candidate)
        let named = try #require(ICECandidate(attribute: "1 1 udp 5 0f0e-1.local 9 typ host"))
        #expect(named.address == nil)
        for bad in [
            "", "1 1 udp 5 10.0.0.1 9 typ", "1 0 udp 5 10.0.0.1 9 typ host", "1 1 udp 0 10.0.0.1 9 typ host",
            "1 1 udp 4294967296 10.0.0.1 9 typ host", "1 1 udp 5 10.0.0.1 65536 typ host",
            "1 1 udp 5 10.0.0.1 9 type host", "1 1 udp 5 10.0.0.1 9 typ other", "a;b 1 udp 5 10.0.0.1 9 typ host",
        ] {
            #expect(ICECandidate(attribute: bad) == nil, "\(bad)")
        }
    }

    @Test func secretsAreNotPrinted() throws {
        var random = RandomSource.seeded(1)
        let credentials = ICECredentials(using: &random)
        var text = "\(credentials) \(TURNCredentials(username: "u", password: "correct horse"))"
        dump(credentials, to: &text)
        dump(ICEServerAddress(address: SimulatedInternet.turn, relay: SimulatedInternet.credentials), to: &text)
        #expect(!text.contains(credentials.password))
        #expect(!text.contains("correct horse"))
        #expect(ICECredentials(fragment: "abc", password: credentials.password) == nil)
        #expect(ICECredentials(fragment: credentials.fragment, password: "short") == nil)
    }
}
