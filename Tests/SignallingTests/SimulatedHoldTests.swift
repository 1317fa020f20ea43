import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// Hold and resume between two devices through the environment: at the same moment, crossing everything, and over
/// networks that lose, double and reorder.
struct SimulatedHoldTests {
    private struct Talk {
        let simulation: Simulation
        let alice: SimulatedDevice
        let bob: SimulatedDevice
        let call: CallRecord
        let other: CallRecord

        init(
            seed: UInt64 = 1, conditions: LinkConditions = .perfect, transports: [SIPTransport] = [.udp, .udp],
            configure: (inout UserAgentConfiguration) -> Void = { _ in }
        ) throws {
            simulation = try Simulation(seed: seed, conditions: conditions)
            alice = try simulation.registered("alice", transports[0], configure: configure)
            bob = try simulation.registered("bob", transports[1], configure: configure)
            simulation.answers(bob, after: .seconds(1))
            call = simulation.call(alice, "bob")
            let records = { [bob] in bob.records.first }
            for _ in 0..<400 where !call.isAnswered || records()?.isAnswered != true {
                simulation.run(for: .milliseconds(100))
            }
            other = try #require(bob.records.first)
            try #require(call.isAnswered)
        }

        /// Runs until nothing of the call is under way any more.
        func settle() {
            let (aliceSide, bobSide) = (alice, bob)
            func isBusy(_ device: SimulatedDevice) -> Bool {
                device.agent.calls.values.contains { !$0.canOffer || $0.change != nil || $0.outstanding != nil }
            }
            for _ in 0..<600 where isBusy(aliceSide) || isBusy(bobSide) { simulation.run(for: .milliseconds(200)) }
        }

        var aliceSide: Call? { alice.agent.calls[call.handle] }
        var bobSide: Call? { bob.agent.calls[other.handle] }

        /// That both sides believe the same.
        func expectAgreement(sourceLocation: SourceLocation = #_sourceLocation) {
            #expect(aliceSide?.isHeld == bobSide?.isHeldByPeer, sourceLocation: sourceLocation)
            #expect(bobSide?.isHeld == aliceSide?.isHeldByPeer, sourceLocation: sourceLocation)
            #expect(
                aliceSide?.media?.direction == bobSide?.media?.direction.reversed, sourceLocation: sourceLocation)
        }
    }

    @Test func holdAndResume() throws {
        let talk = try Talk()
        talk.simulation.act(talk.alice) { $0.hold(talk.call.handle, at: $1) }
        talk.simulation.run(for: .seconds(1))
        #expect(talk.call.events.suffix(2) == ["mediaChanged", "hold true false"])
        #expect(talk.call.media.last?.direction == .sendonly)
        #expect(talk.other.events.suffix(2) == ["mediaChanged", "hold false true"])
        #expect(talk.other.media.last?.direction == .recvonly)
        talk.simulation.act(talk.alice) { $0.resume(talk.call.handle, at: $1) }
        talk.simulation.run(for: .seconds(1))
        #expect(talk.call.events.last == "hold false false")
        #expect(talk.other.events.last == "hold false false")
        #expect(talk.call.media.first == talk.call.media.last)
        talk.simulation.hangUp(talk.alice, talk.call)
        talk.simulation.expectClean()
    }

    /// Both hold at the same moment: both are refused, wait different times, and both hold in the end.
    @Test(arguments: [[SIPTransport.udp, .udp], [.tcp, .tcp], [.udp, .tcp]], 1...4)
    func bothHoldAtTheSameMoment(transports: [SIPTransport], seed: UInt64) throws {
        let talk = try Talk(
            seed: seed, conditions: LinkConditions(delay: .milliseconds(50) ... .milliseconds(50)),
            transports: transports)
        talk.simulation.act(talk.alice) { $0.hold(talk.call.handle, at: $1) }
        talk.simulation.act(talk.bob) { $0.hold(talk.other.handle, at: $1) }
        talk.simulation.run(for: .milliseconds(300))
        #expect(talk.alice.sent.contains { $0.status == 491 } && talk.bob.sent.contains { $0.status == 491 })
        talk.simulation.run(for: .seconds(8))
        #expect(talk.call.events.last == "hold true true" && talk.other.events.last == "hold true true")
        #expect(talk.call.media.last?.direction == .inactive)
        talk.expectAgreement()
        talk.simulation.act(talk.alice) { $0.resume(talk.call.handle, at: $1) }
        talk.simulation.act(talk.bob) { $0.resume(talk.other.handle, at: $1) }
        talk.simulation.run(for: .seconds(8))
        #expect(talk.call.events.last == "hold false false" && talk.other.events.last == "hold false false")
        #expect(talk.call.media.last == talk.call.media.first)
        talk.simulation.hangUp(talk.bob, talk.other)
        talk.simulation.expectClean()
    }

    @Test func holdCrossesTheHangUp() throws {
        let talk = try Talk(conditions: LinkConditions(delay: .milliseconds(50) ... .milliseconds(50)))
        talk.simulation.act(talk.alice) { $0.hold(talk.call.handle, at: $1) }
        talk.simulation.hangUp(talk.bob, talk.other)
        talk.simulation.run(for: .seconds(1))
        #expect(talk.call.reason == .hungUp && talk.other.reason == .hungUp)
        #expect(!talk.call.events.contains { $0.hasPrefix("changeFailed") })
        talk.simulation.expectClean(within: .seconds(70))
    }

    /// Each message of a hold is lost once; the outcome is the same.
    @Test(arguments: ["request INVITE", "response INVITE 200", "request ACK"])
    func eachMessageIsLostOnce(kind: String) throws {
        let talk = try Talk()
        var isLost = false
        talk.simulation.loses = { message, _ in
            let name =
                message.method.map { "request \($0.rawValue)" }
                ?? "response \(message.cseq?.method.rawValue ?? "") \(message.status ?? 0)"
            guard !isLost, name == kind else { return false }
            isLost = true
            return true
        }
        talk.simulation.act(talk.bob) { $0.hold(talk.other.handle, at: $1) }
        talk.simulation.run(for: .seconds(10))
        #expect(isLost)
        #expect(talk.other.events.last == "hold true false" && talk.call.events.last == "hold false true")
        talk.expectAgreement()
        talk.simulation.hangUp(talk.bob, talk.other)
        talk.simulation.expectClean(within: .seconds(70))
    }

    @Test func connectionBreaksDuringAHold() throws {
        let talk = try Talk(transports: [.tcp, .udp])
        talk.simulation.loses = { message, _ in message.method == .invite }
        talk.simulation.act(talk.alice) { $0.hold(talk.call.handle, at: $1) }
        talk.simulation.run(for: .seconds(1))
        talk.simulation.breakConnection(of: talk.alice)
        #expect(talk.call.events.last?.hasPrefix("changeFailed hold: ") == true)
        talk.simulation.loses = { _, _ in false }
        talk.simulation.run(for: .seconds(40))
        #expect(talk.call.termination == nil && talk.alice.agent.registrationState == .registered)
        talk.simulation.act(talk.alice) { $0.hold(talk.call.handle, at: $1) }
        talk.simulation.run(for: .seconds(1))
        #expect(talk.call.events.last == "hold true false" && talk.other.events.last == "hold false true")
        talk.simulation.hangUp(talk.alice, talk.call)
        talk.simulation.expectClean()
    }

    @Test func lostAcksOfAChangeEndTheCallInTheEnd() throws {
        let talk = try Talk()
        talk.simulation.loses = { message, _ in message.method == .ack }
        talk.simulation.act(talk.alice) { $0.hold(talk.call.handle, at: $1) }
        talk.simulation.run(for: .seconds(30))
        #expect(talk.call.events.last == "hold true false" && talk.other.termination == nil)
        talk.simulation.run(for: .seconds(5))
        #expect(talk.other.reason == .network && talk.call.reason == .hungUp)
        talk.simulation.expectClean(within: .seconds(70))
    }

    /// Wishes of both sides at random moments over a network that loses a fifth, doubles a fifth and reorders all: once it
    /// is calm, both sides believe the same, and what the user was told last is so.
    @Test(arguments: 1...60)
    func wishesOverABadNetwork(seed: UInt64) throws {
        let talk = try Talk(
            seed: seed, conditions: .bad, transports: seed % 4 == 0 ? [.udp, .tcp] : [.udp, .udp],
            configure: { if seed % 3 == 0 { $0.sessionExpires = .seconds(90) } })
        var random = RandomSource.seeded(seed &* 31)
        for _ in 0..<12 {
            let isAlice = random.next() & 1 == 0
            let (device, record) = isAlice ? (talk.alice, talk.call) : (talk.bob, talk.other)
            let holds = random.next() & 1 == 0
            talk.simulation.act(device) { holds ? $0.hold(record.handle, at: $1) : $0.resume(record.handle, at: $1) }
            talk.simulation.run(for: .milliseconds(Int64(random.next() % 3_000)))
        }
        talk.simulation.conditions = .perfect
        talk.settle()
        // A change may have got through without its answer: the next one puts that right, as long as the call is there.
        if talk.call.termination == nil, talk.other.termination == nil {
            for (device, record) in [(talk.alice, talk.call), (talk.bob, talk.other)] {
                let isHeld = device.agent.calls[record.handle]?.isHeld ?? false
                talk.simulation.act(device) {
                    isHeld ? $0.resume(record.handle, at: $1) : $0.hold(record.handle, at: $1)
                }
                talk.simulation.run(for: .seconds(1))
                talk.settle()
            }
            talk.expectAgreement()
            for (device, record) in [(talk.alice, talk.call), (talk.bob, talk.other)] {
                let call = try #require(device.agent.calls[record.handle])
                let told = record.events.last { $0.hasPrefix("hold") }
                #expect(told == "hold \(call.isHeld) \(call.isHeldByPeer)")
                #expect(record.media.last == call.media)
            }
        }
        talk.simulation.hangUp(talk.alice, talk.call)
        talk.simulation.run(for: .seconds(100))
        for record in talk.alice.records + talk.bob.records { #expect(record.termination != nil) }
        talk.simulation.expectClean()
    }
}
