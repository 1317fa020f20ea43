import Primitives
import SIP
import Testing

@testable import Signalling

/// CANCEL, forks, and answers that cross.
struct SimulatedCancelTests {
    @Test func cancelWhileRinging() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        simulation.hangUp(alice, call)
        #expect(call.events == ["progressed", "rang", "ended"])
        #expect(call.reason == .canceled)
        simulation.run(for: .seconds(1))
        #expect(bob.records.first?.events == ["incoming", "ended"])
        #expect(bob.records.first?.reason == .canceled)
        #expect(alice.agent.calls.isEmpty)
        simulation.expectClean()
    }

    @Test func cancelBeforeAnyResponseWaitsForOne() throws {
        let simulation = try Simulation()
        simulation.conditions.delay = .milliseconds(50) ... .milliseconds(50)
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        let call = simulation.call(alice, "bob")
        simulation.hangUp(alice, call)
        #expect(call.reason == .canceled)
        #expect(alice.sent(.cancel).isEmpty)
        simulation.run(for: .seconds(2))
        #expect(alice.sent(.cancel).count == 1)
        #expect(bob.records.first?.events == ["incoming", "ended"])
        simulation.expectClean()
    }

    @Test func cancelOfAnInviteThatNobodyAnswersIsForgotten() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice")
        simulation.loses = { message, _ in message.method == .invite }
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        simulation.hangUp(alice, call)
        simulation.run(for: .seconds(32))
        #expect(alice.agent.calls.isEmpty)
        #expect(alice.agent.legs.isEmpty)
        #expect(alice.sent(.cancel).isEmpty)
        simulation.expectClean()
    }

    /// The answer and the CANCEL pass each other: the call is acknowledged and ended with BYE.
    @Test(arguments: [SIPTransport.udp, .tcp])
    func cancelCrossesTheAnswer(transport: SIPTransport) throws {
        let simulation = try Simulation()
        simulation.conditions.delay = .milliseconds(50) ... .milliseconds(50)
        let (alice, bob) = (try simulation.registered("alice", transport), try simulation.registered("bob", transport))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        let other = try #require(bob.records.first)
        simulation.answer(bob, other.handle)
        simulation.run(for: .milliseconds(20))
        simulation.hangUp(alice, call)
        #expect(call.events == ["progressed", "rang", "ended"])
        simulation.run(for: .seconds(1))
        #expect(other.events == ["incoming", "answered", "ended"])
        #expect(other.reason == .hungUp)
        #expect(alice.sent(.ack).count == 1)
        #expect(alice.sent(.bye).count == 1)
        #expect(call.events == ["progressed", "rang", "ended"])
        simulation.expectClean()
    }

    @Test func calleeHangsUpBeforeTheAck() throws {
        let simulation = try Simulation()
        simulation.conditions.delay = .milliseconds(100) ... .milliseconds(100)
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        let other = try #require(bob.records.first)
        simulation.answer(bob, other.handle)
        simulation.run(for: .milliseconds(10))
        simulation.hangUp(bob, other)
        #expect(other.events == ["incoming", "answered", "ended"])
        #expect(bob.sent(.bye).isEmpty, "a BYE must not overtake the ACK")
        simulation.run(for: .seconds(1))
        #expect(bob.sent(.bye).count == 1)
        #expect(call.events == ["progressed", "rang", "answered", "ended"])
        simulation.expectClean()
    }

    @Test func otherDeviceAnswers() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice")
        let phone = try simulation.registered("bob")
        let desk = try simulation.registered("bob", .tcp)
        simulation.answers(desk, after: .seconds(2))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        #expect(phone.records.first?.events == ["incoming"])
        #expect(desk.records.first?.events == ["incoming"])
        #expect(call.events == ["progressed", "rang"], "two 180s are one ringing")
        simulation.run(for: .seconds(2))
        #expect(call.events == ["progressed", "rang", "answered"])
        #expect(phone.records.first?.events == ["incoming", "ended"])
        #expect(phone.records.first?.reason == .otherDeviceAnswered)
        #expect(desk.records.first?.events == ["incoming", "answered"])
        simulation.hangUp(alice, call)
        simulation.expectClean()
    }

    @Test func oneDeviceIsBusyAndTheOtherAnswers() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice")
        let (phone, desk) = (try simulation.registered("bob"), try simulation.registered("bob"))
        simulation.refuses(phone, with: 486)
        simulation.answers(desk, after: .seconds(2))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(3))
        #expect(call.events == ["progressed", "rang", "answered"])
        #expect(desk.records.first?.isAnswered == true)
    }

    @Test func oneDeviceDeclinesForAll() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice")
        let (phone, desk) = (try simulation.registered("bob"), try simulation.registered("bob"))
        simulation.refuses(phone, with: 603)
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(3))
        #expect(call.reason == .declined)
        #expect(desk.records.first?.reason == .canceled)
        simulation.expectClean()
    }

    /// Both devices answer at the same moment: the first one to arrive has the call, the other one is told to go.
    @Test(arguments: [true, false])
    func bothDevicesAnswer(hangsUpAtOnce: Bool) throws {
        let simulation = try Simulation()
        simulation.conditions.delay = .milliseconds(50) ... .milliseconds(50)
        let alice = try simulation.registered("alice")
        let (phone, desk) = (try simulation.registered("bob"), try simulation.registered("bob"))
        simulation.answers(phone, after: .seconds(1))
        simulation.answers(desk, after: .milliseconds(1_020))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .milliseconds(1_205))
        #expect(call.events == ["progressed", "rang", "answered"])
        // Even when the call is over before the second answer comes.
        if hangsUpAtOnce { simulation.hangUp(alice, call) }
        simulation.run(for: .seconds(2))
        #expect(desk.records.first?.events == ["incoming", "answered", "ended"])
        #expect(desk.records.first?.reason == .hungUp)
        let acknowledged = Set(alice.sent(.ack).compactMap { $0.to?.tag })
        #expect(acknowledged.count == 2)
        #expect(alice.sent(.bye).count == (hangsUpAtOnce ? 2 : 1))
        if !hangsUpAtOnce {
            #expect(phone.records.first?.events == ["incoming", "answered"])
            #expect(call.termination == nil)
            simulation.hangUp(alice, call)
        }
        simulation.expectClean()
    }
}
