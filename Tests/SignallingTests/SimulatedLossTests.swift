import Primitives
import SIP
import Testing

@testable import Signalling

/// Messages that get lost, one by one and at random.
struct SimulatedLossTests {
    /// Loses the first `count` messages that `matches`.
    private func lose(_ simulation: Simulation, first count: Int, _ matches: @escaping (SIPMessage) -> Bool) {
        var left = count
        simulation.loses = { message, _ in
            guard left > 0, matches(message) else { return false }
            left -= 1
            return true
        }
    }

    @Test func lostAckIsSentAgainForTheRepeatedAnswer() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        simulation.answers(bob, after: .seconds(1))
        lose(simulation, first: 3) { $0.method == .ack }
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(10))
        #expect(alice.sent(.ack).count == 4)
        #expect(Set(alice.sent(.ack).compactMap { $0.topVia?.branch }).count == 1)
        #expect(bob.agent.calls.values.first?.phase == .confirmed)
        #expect(call.termination == nil && bob.records.first?.termination == nil)
        simulation.hangUp(alice, call)
        simulation.expectClean()
    }

    @Test func answerThatIsNeverAcknowledgedEndsTheCall() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        simulation.answers(bob, after: .seconds(1))
        simulation.loses = { message, _ in message.method == .ack }
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(30))
        #expect(bob.records.first?.events == ["incoming", "answered"])
        let answers = bob.sent.filter { $0.status == 200 && $0.cseq?.method == .invite }
        // 0, 0.5, 1.5, 3.5, 7.5, 11.5, … seconds after the answer.
        #expect(answers.count == 10, "\(answers.count)")
        simulation.run(for: .seconds(5))
        #expect(bob.records.first?.events == ["incoming", "answered", "ended"])
        #expect(bob.records.first?.reason == .network)
        #expect(call.reason == .hungUp)
        #expect(bob.sent(.bye).count == 1)
        simulation.expectClean()
    }

    @Test func lostAnswerIsRepeated() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        simulation.answers(bob, after: .seconds(1))
        lose(simulation, first: 3) { $0.status == 200 && $0.cseq?.method == .invite }
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(10))
        #expect(call.events == ["progressed", "rang", "answered"])
        #expect(bob.agent.calls.values.first?.phase == .confirmed)
        simulation.hangUp(alice, call)
        simulation.expectClean()
    }

    @Test func lostByeResponse() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        simulation.answers(bob, after: .seconds(1))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(5))
        simulation.loses = { message, _ in message.cseq?.method == .bye && !message.isRequest }
        simulation.hangUp(alice, call)
        simulation.run(for: .seconds(1))
        #expect(bob.records.first?.reason == .hungUp)
        #expect(call.events.last == "ended")
        simulation.run(for: .seconds(32))
        #expect(alice.agent.calls.isEmpty)
        #expect(alice.sent(.bye).count > 5)
        simulation.loses = { _, _ in false }
        simulation.expectClean()
    }

    @Test func lateStrayAnswerIsAcknowledged() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        simulation.answers(bob, after: .seconds(1))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(60))
        // The INVITE's transaction is long gone when a copy of the answer turns up.
        let invite = try #require(alice.sent(.invite).first)
        let answer = try #require(bob.sent.first { $0.status == 200 && $0.cseq?.method == .invite })
        var copy = answer
        copy.vias = invite.vias
        let path = try #require(alice.agent.path)
        let before = alice.sent(.ack).count
        simulation.act(alice) { $0.receive(copy, from: path.flow, at: $1) }
        #expect(alice.sent(.ack).count == before + 1)
        #expect(call.termination == nil)
        // An unknown device's answer is ended, ours goes on.
        copy.headers["To"] = "<sip:bob@\(Simulation.realm)>;tag=stranger"
        simulation.act(alice) { $0.receive(copy, from: path.flow, at: $1) }
        #expect(alice.sent(.bye).last?.to?.tag == "stranger")
        #expect(call.termination == nil)
    }

    /// A call over a network that loses a fifth, doubles a fifth and reorders everything always comes to an end that both
    /// sides know, and leaves nothing.
    @Test(arguments: 1...60)
    func callsOverABadNetwork(seed: UInt64) throws {
        let simulation = try Simulation(seed: seed, conditions: .bad)
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        let desk = seed % 3 == 0 ? try simulation.registered("bob") : nil
        var random = RandomSource.seeded(seed)
        simulation.answers(bob, after: .milliseconds(Int64(random.next() % 3_000)))
        if let desk { simulation.answers(desk, after: .milliseconds(Int64(random.next() % 3_000))) }
        let call = simulation.call(alice, "bob")
        let hangUpAfter = Duration.milliseconds(Int64(random.next() % 8_000))
        simulation.run(for: hangUpAfter)
        let isCaller = random.next() & 1 == 0
        if isCaller {
            simulation.hangUp(alice, call)
        } else {
            for record in bob.records { simulation.hangUp(bob, record) }
        }
        simulation.run(for: .seconds(10))
        if call.termination == nil { simulation.hangUp(alice, call) }
        // Two timers of 64 · T1 in a row: an answer that is never acknowledged, and its BYE.
        simulation.run(for: .seconds(100))
        for device in simulation.devices {
            for record in device.records {
                #expect(record.termination != nil, "\(device.user) \(record.events)")
                let isOrdered = record.events.filter { $0 != "progressed" && $0 != "rang" && $0 != "incoming" }
                #expect(isOrdered == ["ended"] || isOrdered == ["answered", "ended"], "\(record.events)")
            }
        }
        simulation.expectClean()
        #expect(simulation.core.forwardingCount == 0)
    }
}
