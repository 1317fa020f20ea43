import Primitives
import SIP
import Testing

@testable import Signalling

/// Keep-alives and recovery of whole user agents, beside the real proxy core, in simulated time.
@Suite struct SimulatedKeepAliveTests {
    @Test(arguments: [SIPTransport.udp, .tcp])
    func anHourOfSilenceKeepsTheFlow(transport: SIPTransport) throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice", transport)
        #expect(alice.agent.registrarTerms?.supportsOutbound == true)
        let connection = alice.connection
        simulation.run(for: .seconds(3_600))
        #expect(alice.probes.count >= (transport == .udp ? 120 : 30))
        #expect(alice.connection == connection && alice.agent.registrationState == .registered)
        #expect(Set(alice.registrationLog) == ["registered", "refreshed"])
    }

    /// The connection is dead without a word: packets vanish.
    @Test func silentDeathIsNoticedAndTheCallGoesOn() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice", .tcp), try simulation.registered("bob", .tcp))
        simulation.answers(bob, after: .seconds(1))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(5))
        #expect(call.isAnswered)
        let old = try #require(alice.connection)
        simulation.answersKeepAlive = false
        simulation.loses = { _, direction in
            switch direction {
            case .toDevice(let device), .toEnvironment(let device): device === alice && alice.connection == old
            }
        }
        simulation.run(for: .seconds(140))
        simulation.answersKeepAlive = true
        simulation.run(for: .seconds(5))
        let new = try #require(alice.connection)
        #expect(new != old)
        #expect(alice.agent.registrationState == .registered)
        #expect(alice.registrationLog == ["registered", "failed 0", "registered"])
        #expect(call.termination == nil)
        // Both directions of the call work over the new flow.
        let record = try #require(bob.records.first)
        simulation.hangUp(bob, record)
        simulation.run(for: .seconds(1))
        #expect(call.reason == .hungUp)
        simulation.expectClean()
    }

    @Test func aNewAddressBehindTheNATIsRegistered() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice")
        simulation.run(for: .seconds(100))
        let registers = alice.sent(.register).count
        simulation.run(for: .seconds(100))
        #expect(alice.sent(.register).count == registers, "nothing to do while the address stays")
        alice.mappedPort = 40_001
        simulation.run(for: .seconds(30))
        #expect(alice.sent(.register).count > registers)
        #expect(alice.registrationLog.last == "refreshed")
        let after = alice.sent(.register).count
        simulation.run(for: .seconds(100))
        #expect(alice.sent(.register).count == after)
    }

    @Test func reconnectionBacksOffForEverAndComesBackQuickly() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice", .tcp)
        simulation.stopEnvironment()
        simulation.run(for: .seconds(7_200))
        let failures = alice.registrationLog.filter { $0 == "failed 0" }.count
        // 1 s doubling to 5 min, the lower half random: between 9 + 24 and 10 + 48 attempts in two hours.
        #expect((28...60).contains(failures), "\(failures)")
        let next = try #require(alice.agent.nextRegistrationAttempt)
        #expect(next - simulation.now <= .seconds(300))
        #expect(alice.agent.registration?.lastFailure?.reason.contains("connection refused") == true)
        try simulation.startEnvironment()
        simulation.run(for: .seconds(301))
        #expect(alice.agent.registrationState == .registered)
        simulation.breakConnection(of: alice)
        simulation.run(for: .seconds(2))
        #expect(alice.agent.registrationState == .registered, "the pauses begin anew")
    }

    @Test func anotherServerTakesTheRegistrationAndCallsGoOn() throws {
        var lone = LoneAgent(flow: SIPFlow(transport: .tcp, remote: LoneAgent.flow.remote, connection: 1))
        lone.act { $0.start(at: $1) }
        try lone.acceptRegistration()
        let registers = lone.sent.count
        let other = SIPFlow(transport: .tcp, remote: TransportAddress(host: "127.0.0.2", port: 5060), connection: 2)
        let path = RegisteredFlow(flow: other, local: TransportAddress(host: "127.0.0.1", port: 6_002))
        lone.act { $0.flowReplaced(by: path, at: $1) }
        lone.flow = other
        #expect(lone.agent.path == path)
        #expect(lone.sent.count == registers + 1)
        #expect(lone.sent.last?.contacts.first?.uri.port == 6_002)
        #expect(lone.agent.registrationState == .registered)
        try lone.acceptRegistration()
    }
}
