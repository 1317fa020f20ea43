import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// Hold and resume between two devices through the environment.
struct SimulatedHoldTests {
    @Test func holdAndResume() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        simulation.answers(bob, after: .seconds(1))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(2))
        let other = try #require(bob.records.first)
        simulation.act(alice) { $0.hold(call.handle, at: $1) }
        simulation.run(for: .seconds(1))
        #expect(call.events.suffix(2) == ["mediaChanged", "hold true false"])
        #expect(call.media.last?.direction == .sendonly)
        #expect(other.events.suffix(2) == ["mediaChanged", "hold false true"])
        #expect(other.media.last?.direction == .recvonly)
        simulation.act(alice) { $0.resume(call.handle, at: $1) }
        simulation.run(for: .seconds(1))
        #expect(call.events.last == "hold false false")
        #expect(other.events.last == "hold false false")
        #expect(call.media.last?.direction == .sendrecv)
        #expect(call.media.first == call.media.last)
        simulation.hangUp(alice, call)
        simulation.expectClean()
    }
}
