import Primitives
import SIP
import Testing

@testable import Signalling

/// The path to the platform breaks, is replaced, or leads to a platform without memory.
struct SimulatedFlowTests {
    @Test(arguments: [SIPTransport.udp, .tcp])
    func ringingCallsEndWithThePath(transport: SIPTransport) throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice", transport), try simulation.registered("bob", transport))
        let outgoing = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        for device in [alice, bob] {
            simulation.act(device) { $0.flowFailed(reason: "connection refused", at: $1) }
            device.connection = nil
        }
        #expect(outgoing.events == ["progressed", "rang", "ended"])
        #expect(outgoing.reason == .network)
        #expect(outgoing.termination?.phrase == "connection refused")
        #expect(bob.records.first?.events == ["incoming", "ended"])
        #expect(bob.records.first?.reason == .network)
        simulation.expectClean(within: .seconds(100))
    }

    @Test func callFailsAtOnceWhenNobodyListens() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice")
        simulation.stopEnvironment()
        let call = simulation.call(alice, "bob")
        simulation.run(for: .milliseconds(50))
        #expect(call.events == ["ended"])
        #expect(call.reason == .network)
        #expect(alice.registrationLog == ["registered", "failed 0"], "whoever is not there has no binding of ours")
        try simulation.startEnvironment()
        simulation.run(for: .seconds(3))
        #expect(alice.agent.registrationState == .registered)
    }

    @Test func hangUpWithoutAnyPathIsForgottenInTime() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice", .tcp), try simulation.registered("bob", .tcp))
        simulation.answers(bob, after: .seconds(1))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(40))
        simulation.stopEnvironment()
        simulation.run(for: .seconds(1))
        simulation.hangUp(alice, call)
        #expect(call.reason == .hungUp)
        simulation.run(for: .seconds(32))
        #expect(alice.agent.calls.isEmpty)
        #expect(alice.agent.legs.isEmpty)
        #expect(!alice.agent.hasUnfinishedCalls)
    }

    /// A new environment knows neither the clients nor the call; the clients notice, and the call can be ended.
    @Test(arguments: [SIPTransport.udp, .tcp])
    func environmentIsReplacedInTheMidstOfACall(transport: SIPTransport) throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice", transport), try simulation.registered("bob", transport))
        simulation.answers(bob, after: .seconds(1))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(60))
        let other = try #require(bob.records.first)
        simulation.stopEnvironment()
        simulation.run(for: .seconds(1))
        try simulation.startEnvironment()
        simulation.run(for: .seconds(5))
        #expect(call.termination == nil && other.termination == nil)
        simulation.hangUp(alice, call)
        #expect(call.reason == .hungUp)
        simulation.run(for: .seconds(3))
        #expect(alice.agent.registrationState == .registered)
        #expect(alice.agent.calls.isEmpty)
        // Bob cannot be found any more: nobody knows his part of the call. He ends it himself.
        simulation.hangUp(bob, other)
        #expect(other.reason == .hungUp)
        simulation.run(for: .seconds(600))
        #expect(simulation.core.registrationCount == 2)
        let again = simulation.call(alice, "bob")
        simulation.run(for: .seconds(3))
        #expect(again.events == ["progressed", "rang", "answered"])
        simulation.hangUp(alice, again)
        simulation.expectClean()
    }

    /// Over UDP nothing tells that the platform was replaced but its refusals: they make the client register at once.
    @Test func refusalOfAForgottenClientMakesItRegisterAgain() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        simulation.answers(bob, after: .seconds(1))
        let first = simulation.call(alice, "bob")
        simulation.run(for: .seconds(60))
        try simulation.startEnvironment()
        // Bob's refresh came by chance: he is known again.
        simulation.act(bob) { $0.start(at: $1) }
        simulation.run(for: .seconds(1))
        simulation.hangUp(alice, first)
        simulation.run(for: .seconds(2))
        #expect(alice.sent(.bye).count == 2)
        #expect(bob.records.first?.reason == .hungUp)
        #expect(simulation.core.registrationCount == 2)

        try simulation.startEnvironment()
        simulation.run(for: .seconds(60))
        let refused = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        #expect(refused.reason == .forbidden)
        #expect(simulation.core.registrationCount == 1)
        let again = simulation.call(alice, "alice")
        simulation.run(for: .seconds(1))
        #expect(again.events == ["progressed", "rang"])
    }

    @Test func messagesOfAForeignFlowAreIgnored() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        simulation.answers(bob, after: .seconds(1))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(5))
        let path = try #require(bob.agent.path)
        // A perfect BYE, but not from the platform.
        var bye = try #require(alice.agent.calls[call.handle]?.dialog).skeletonBye
        bye.vias = [SIPVia(transport: "UDP", host: "192.0.2.9", port: 5060, branch: "z9hG4bKforeign")]
        let foreign = [
            SIPFlow(transport: .udp, remote: TransportAddress(host: "192.0.2.9", port: 5060)),
            SIPFlow(transport: .tcp, remote: path.flow.remote, connection: 1),
            SIPFlow(transport: .udp, remote: TransportAddress(host: path.flow.remote.host, port: 5061)),
        ]
        let before = bob.sent.count
        for flow in foreign { simulation.act(bob) { $0.receive(bye, from: flow, at: $1) } }
        #expect(bob.sent.count == before)
        #expect(bob.records.first?.termination == nil)
        // The same over the path works: the test means something.
        simulation.act(bob) { $0.receive(bye, from: path.flow, at: $1) }
        #expect(bob.records.first?.reason == .hungUp)
    }
}

extension SIPDialog {
    /// The BYE that this side would send next.
    fileprivate var skeletonBye: SIPMessage {
        var copy = self
        return copy.request(.bye)
    }
}
