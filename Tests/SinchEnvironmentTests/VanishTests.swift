import Primitives
import SIP
import SinchEnvironment
import Testing

/// Clients that go away without a word.
@Suite struct VanishTests {
    @Test func unreachableDeviceDoesNotKeepTheOthersFromRinging() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let dead = try world.registered("bob", port: 40_002)
        let alive = try world.registered("bob", port: 40_003)
        let (_, received) = try world.invite(&alice, "bob", callees: [dead, alive])
        try world.fail(dead.flow)
        #expect(world.takeResponses(alice.flow).isEmpty)
        #expect(world.core.registrationCount == 2)
        try world.deliver(alive.response(200, to: received[1]), from: alive.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [200])
    }

    @Test(arguments: [SIPTransport.udp, .tcp]) func onlyDeviceUnreachableIs480AtOnce(transport: SIPTransport) throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", transport, port: 40_002)
        _ = try world.invite(&alice, "bob", callees: [bob])
        try world.fail(bob.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [480])
        // And the next call does not even try.
        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [480])
        #expect(world.take(bob.flow).isEmpty)
    }

    @Test func busyDeviceSaysMoreThanADeadOne() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let dead = try world.registered("bob", port: 40_002)
        let alive = try world.registered("bob", port: 40_003)
        let (_, received) = try world.invite(&alice, "bob", callees: [dead, alive])
        try world.fail(dead.flow)
        try world.deliver(alive.response(486, to: received[1]), from: alive.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [486])
    }

    @Test(arguments: [SIPTransport.udp, .tcp]) func vanishedCallerStopsTheRinging(transport: SIPTransport) throws {
        var world = try World()
        var alice = try world.registered("alice", transport, port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        let (_, received) = try world.invite(&alice, "bob", callees: [bob])
        try world.deliver(bob.response(180, to: received[0]), from: bob.flow)
        try world.fail(alice.flow)
        let cancel = try #require(world.take(bob.flow).first)
        #expect(cancel.method == .cancel)
        try world.deliver(bob.response(200, to: cancel), from: bob.flow)
        try world.deliver(bob.response(487, to: received[0]), from: bob.flow)
        try world.advance(by: .seconds(200))
        #expect(world.core.forwardingCount == 0)
        #expect(world.core.registrationCount == 1)
    }

    @Test func closedConnectionTakesItsRegistrationsAlong() throws {
        var world = try World()
        var alice = try world.registered("alice", .tcp, port: 40_001)
        var bob = try world.registered("bob", .tcp, port: 40_002)
        try world.fail(bob.flow, reason: "closed by peer")
        #expect(world.core.registrationCount == 1)
        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [480])
        // Back over a new connection.
        bob.flow.connection += 100
        try world.register(&bob)
        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        #expect(world.take(bob.flow).map(\.method) == [.invite])
    }

    @Test func deviceWithoutUsableWayBackStillEndsTheCall() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        let (invite, received) = try world.invite(&alice, "bob", callees: [bob])
        // A device that returns only our own Via, or a wrong one below it.
        var answer = bob.response(486, to: received[0])
        answer.vias = Array(answer.vias.prefix(1))
        try world.deliver(answer, from: bob.flow)
        let answers = world.takeResponses(alice.flow)
        #expect(answers.map(\.status) == [486])
        #expect(answers[0].topVia?.branch == invite.topVia?.branch)
    }
}
