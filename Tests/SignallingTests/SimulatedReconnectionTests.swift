import Primitives
import SIP
import Testing

@testable import Signalling

/// A device comes back over a new connection in the midst of its calls.
struct SimulatedReconnectionTests {
    @Test(arguments: [true, false])
    func establishedCallSurvivesABrokenConnection(brokenSideHangsUp: Bool) throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice", .tcp), try simulation.registered("bob", .udp))
        simulation.answers(bob, after: .seconds(1))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(60))
        let other = try #require(bob.records.first)
        simulation.breakConnection(of: alice)
        simulation.run(for: .seconds(5))
        #expect(call.termination == nil && other.termination == nil)
        #expect(alice.agent.registrationState == .registered)
        simulation.hangUp(brokenSideHangsUp ? alice : bob, brokenSideHangsUp ? call : other)
        simulation.run(for: .seconds(1))
        #expect(call.reason == .hungUp)
        #expect(other.reason == .hungUp)
        #expect(other.termination?.isLocal == !brokenSideHangsUp)
        simulation.expectClean()
    }

    @Test func hangUpWhileThePathIsBrokenIsToldWhenItIsBack() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice", .tcp), try simulation.registered("bob", .tcp))
        simulation.answers(bob, after: .seconds(1))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(10))
        simulation.breakConnection(of: alice)
        simulation.hangUp(alice, call)
        #expect(call.reason == .hungUp)
        #expect(alice.sent(.bye).isEmpty)
        #expect(alice.agent.hasUnfinishedCalls)
        simulation.run(for: .seconds(3))
        #expect(alice.sent(.bye).count == 1)
        #expect(bob.records.first?.reason == .hungUp)
        simulation.expectClean()
    }

    /// The 2xx of a callee whose connection broke cannot be repeated; its ACK comes over the new connection or never.
    @Test func pathBreaksBetweenAnswerAndAck() throws {
        let simulation = try Simulation()
        simulation.conditions.delay = .milliseconds(100) ... .milliseconds(100)
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob", .tcp))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        simulation.answer(bob, try #require(bob.records.first).handle)
        simulation.run(for: .milliseconds(250))
        simulation.breakConnection(of: bob)
        simulation.run(for: .seconds(60))
        #expect(call.isAnswered)
        #expect(bob.records.first?.reason == .network)
        #expect(call.reason == .hungUp, "bob's BYE went over the new connection")
        simulation.expectClean(within: .seconds(70))
    }
}
