import Primitives
import SIP
import Testing

@testable import Signalling

/// The life of a registration with tokens, over both kinds of transport.
struct SimulatedRegistrationTests {
    @Test(arguments: [SIPTransport.udp, .tcp])
    func asksForATokenAndRegisters(transport: SIPTransport) throws {
        let simulation = try Simulation()
        let alice = simulation.device("alice", transport)
        simulation.act(alice) { $0.start(at: $1) }
        #expect(alice.agent.registrationState == .registering)
        simulation.run(for: .seconds(1))
        #expect(alice.tokenRequests == 1)
        #expect(alice.registrationLog == ["registered"])
        #expect(alice.agent.registrationState == .registered)
        #expect(simulation.core.registrationCount == 1)
        guard case .registered(let expires, _) = alice.registrations.first else { return }
        #expect(expires == .seconds(600))
    }

    @Test func refusedTokenIsAskedForOnceAndReported() throws {
        let simulation = try Simulation()
        let alice = simulation.device("alice")
        alice.makeToken = { $0.token(for: "bob") }
        simulation.act(alice) { $0.start(at: $1) }
        simulation.run(for: .seconds(60))
        #expect(alice.registrationLog == ["failed 403"])
        #expect(alice.agent.registrationState == .waiting)
        #expect(alice.agent.nextRegistrationAttempt == nil)

        // A good one takes effect at once.
        let token = simulation.token(for: "alice")
        simulation.act(alice) { $0.credentialsChanged([.bearer(token: token)], at: $1) }
        simulation.run(for: .seconds(1))
        #expect(alice.registrationLog == ["failed 403", "registered"])
    }

    @Test func expiredTokenIsRefused() throws {
        let simulation = try Simulation()
        let alice = simulation.device("alice")
        alice.makeToken = { $0.token(for: "alice", lifetime: 600, age: 3_600) }
        simulation.act(alice) { $0.start(at: $1) }
        simulation.run(for: .seconds(60))
        #expect(alice.registrationLog == ["failed 401"])
    }

    @Test func refreshesForHoursAndAsksForANewTokenWhenTheOldOneExpired() throws {
        let simulation = try Simulation()
        let alice = simulation.device("alice")
        alice.makeToken = { $0.token(for: "alice", lifetime: 1_800) }
        simulation.act(alice) { $0.start(at: $1) }
        simulation.run(for: .seconds(1))
        for _ in 0..<(2 * 3_600) {
            simulation.run(for: .seconds(1))
            #expect(simulation.core.registrationCount == 1)
        }
        #expect(alice.registrationLog.first == "registered")
        #expect(Set(alice.registrationLog.dropFirst()) == ["refreshed"])
        #expect(alice.registrationLog.count >= 13)
        #expect((4...6).contains(alice.tokenRequests), "\(alice.tokenRequests)")
        simulation.expectClean()
    }

    @Test func unregistersAndStartsAgain() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice")
        simulation.act(alice) { $0.unregister(at: $1) }
        simulation.run(for: .seconds(1))
        #expect(alice.registrationLog == ["registered", "unregistered"])
        #expect(simulation.core.registrationCount == 0)
        simulation.act(alice) { $0.start(at: $1) }
        simulation.run(for: .seconds(1))
        #expect(alice.registrationLog == ["registered", "unregistered", "registered"])
    }

    @Test func unregistersInTimeWithoutAPlatform() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice")
        simulation.loses = { _, _ in true }
        simulation.act(alice) { $0.unregister(at: $1) }
        simulation.run(for: .seconds(3))
        #expect(alice.registrationLog == ["registered", "unregistered"])
    }

    @Test func abandonedRegistrationCanBeStartedAnew() throws {
        let simulation = try Simulation()
        let alice = simulation.device("alice", .tcp)
        simulation.act(alice) { $0.start(at: $1) }
        simulation.act(alice) { agent, _ in agent.abandonRegistration() }
        simulation.run(for: .seconds(5))
        #expect(alice.registrationLog.isEmpty)
        simulation.act(alice) { $0.start(at: $1) }
        simulation.run(for: .seconds(5))
        #expect(alice.registrationLog == ["registered"])
    }

    @Test(arguments: [SIPTransport.udp, .tcp])
    func comesBackWhenTheEnvironmentComesBack(transport: SIPTransport) throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice", transport)
        simulation.stopEnvironment()
        // Over UDP nobody notices until something is sent.
        if transport == .udp { simulation.act(alice) { $0.start(at: $1) } }
        simulation.run(for: .seconds(60))
        let failures = alice.registrationLog.dropFirst()
        #expect(Set(failures) == ["failed 0"])
        // Back-off: 1, 2, 4, 8, 16, … seconds, the lower half random.
        #expect((4...10).contains(failures.count), "\(failures.count) attempts in a minute")
        try simulation.startEnvironment()
        simulation.run(for: .seconds(70))
        #expect(alice.agent.registrationState == .registered)
        #expect(simulation.core.registrationCount == 1)
        #expect(["registered", "refreshed"].contains(alice.registrationLog.last))
        simulation.expectClean()
    }

    @Test func brokenConnectionIsReplacedWithinSeconds() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice", .tcp)
        let before = alice.connection
        simulation.breakConnection(of: alice)
        #expect(alice.agent.path == nil)
        simulation.run(for: .seconds(2))
        #expect(alice.registrationLog == ["registered", "failed 0", "registered"])
        #expect(alice.connection != before)
        #expect(alice.agent.path?.flow.connection == alice.connection)
    }

    @Test(arguments: 1...10)
    func registersOverABadNetwork(seed: UInt64) throws {
        let simulation = try Simulation(seed: seed, conditions: .bad)
        let alice = simulation.device("alice")
        simulation.act(alice) { $0.start(at: $1) }
        simulation.run(for: .seconds(120))
        #expect(alice.agent.registrationState == .registered)
        simulation.run(for: .seconds(3_000))
        #expect(alice.agent.registrationState == .registered)
        simulation.expectClean()
    }
}
