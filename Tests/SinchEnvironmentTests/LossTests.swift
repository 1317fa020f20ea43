import Primitives
import SIP
import Testing

/// Calls over a network that loses one datagram in five, repeats one in ten, and delays each by up to 150 ms.
@Suite struct LossTests {
    @Test(arguments: 1...60 as ClosedRange<UInt64>) func callIsMadeAndEnded(seed: UInt64) throws {
        var world = try World(seed: seed)
        let agents = [
            SimulatedAgent(world.client("alice", port: 40_001), answersAfter: nil, seed: seed &* 11),
            SimulatedAgent(world.client("bob", port: 40_002), answersAfter: .milliseconds(700), seed: seed &* 13),
            SimulatedAgent(world.client("bob", port: 40_003), answersAfter: nil, seed: seed &* 17),
        ]
        let tokens = try agents.map { try world.token(for: $0.client) }
        var network = LossyNetwork(world, agents, loss: 0.2, seed: seed)
        for index in agents.indices { network.agents[index].register(token: tokens[index], at: network.world.now) }
        try network.run(for: .seconds(30))
        #expect(network.agents.map(\.registeredStatus) == [200, 200, 200])

        network.agents[0].call("bob", at: network.world.now)
        try network.run(for: .seconds(150))
        let (alice, bob, other) = (network.agents[0], network.agents[1], network.agents[2])
        #expect(alice.answers.isEmpty == false && alice.answers.allSatisfy { $0 == 200 }, "\(alice.answers)")
        #expect(bob.isAcknowledged)
        #expect(bob.gotBye)
        #expect(alice.byeStatus == 200)
        #expect(other.cancelledWith == "SIP;cause=200;text=\"Call completed elsewhere\"")
        #expect(!other.isAcknowledged && !other.gotBye)
        // The other's 487 was acknowledged, bob's 200 too: no transaction failed anywhere.
        #expect(network.agents.flatMap(\.faults).isEmpty, "\(network.agents.flatMap(\.faults))")
        #expect(network.world.core.forwardingCount == 0)
        #expect(network.world.events.filter { if case .callEnded = $0 { true } else { false } }.count == 1)
        #expect(network.world.events.filter { if case .callAnswered = $0 { true } else { false } }.count == 1)
    }
}
