import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// Early media and reliable ringing between devices through the environment.
struct SimulatedEarlyMediaTests {
    /// The device lets the caller hear something at once, and answers after a time.
    private func announces(_ device: SimulatedDevice, answerAfter delay: Duration) {
        device.onIncoming = { simulation, device, handle in
            simulation.act(device) { $0.startEarlyMedia(handle, media: device.media, at: $1) }
            simulation.after(delay) { simulation.answer(device, handle) }
        }
    }

    @Test(arguments: [SIPTransport.udp, .tcp], [true, false])
    func earlyMediaThenAnswer(transport: SIPTransport, requires: Bool) throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice", transport), try simulation.registered("bob", transport))
        announces(bob, answerAfter: .seconds(2))
        let call = simulation.call(alice, "bob", headers: requires ? [("Require", "100rel")] : [])
        simulation.run(for: .seconds(1))
        #expect(call.events == ["progressed", "rang", "earlyMedia 0"])
        #expect(bob.records.first?.events == ["incoming", "earlyMedia 0"])
        #expect(alice.sent(.prack).count == (requires ? 2 : 1))
        simulation.run(for: .seconds(2))
        #expect(call.events.last == "answered" && bob.records.first?.isAnswered == true)
        #expect(call.media.first == call.media.last)
        simulation.act(bob) { agent, now in
            if let record = bob.records.first { agent.hold(record.handle, at: now) }
        }
        simulation.run(for: .seconds(1))
        #expect(call.events.last == "hold false true")
        simulation.hangUp(alice, call)
        simulation.expectClean()
    }

    @Test func twoDevicesAnnounceAndOneAnswers() throws {
        let simulation = try Simulation(conditions: LinkConditions(delay: .milliseconds(5) ... .milliseconds(80)))
        let alice = try simulation.registered("alice")
        let (phone, desk) = (try simulation.registered("bob"), try simulation.registered("bob", .tcp))
        announces(phone, answerAfter: .seconds(100))
        announces(desk, answerAfter: .seconds(3))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(2))
        #expect(Set(call.events.filter { $0.hasPrefix("earlyMedia") }) == ["earlyMedia 0", "earlyMedia 1"])
        simulation.run(for: .seconds(3))
        #expect(call.events.last == "answered")
        #expect(call.media.last?.remoteRTPPort == desk.media.rtpPort)
        #expect(phone.records.first?.reason == .otherDeviceAnswered)
        simulation.hangUp(alice, call)
        simulation.expectClean()
    }

    @Test(arguments: [SIPTransport.udp, .tcp])
    func hangUpDuringEarlyMedia(transport: SIPTransport) throws {
        for milliseconds in stride(from: 0, to: 400, by: 20) {
            let simulation = try Simulation(conditions: LinkConditions(delay: .milliseconds(30) ... .milliseconds(30)))
            let alice = try simulation.registered("alice", transport)
            let bob = try simulation.registered("bob", transport)
            announces(bob, answerAfter: .milliseconds(150))
            let call = simulation.call(alice, "bob", headers: [("Require", "100rel")])
            simulation.run(for: .milliseconds(milliseconds))
            simulation.hangUp(alice, call)
            simulation.run(for: .seconds(2))
            #expect(call.termination != nil)
            #expect(bob.records.allSatisfy { $0.termination != nil }, "after \(milliseconds) ms")
            simulation.expectClean(within: .seconds(70))
        }
    }

    /// Delayed offers that are answered in the ACK or the PRACK, whoever hangs up.
    @Test(arguments: [true, false])
    func delayedOffer(announcing: Bool) throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        if announcing {
            announces(bob, answerAfter: .seconds(1))
        } else {
            simulation.answers(bob, after: .seconds(1))
        }
        let target = SIPURI(user: "bob", host: Simulation.realm)
        let handle = simulation.act(alice) { $0.call(target, media: alice.media, offersMedia: false, at: $1) }
        let call = alice.record(handle)
        simulation.run(for: .seconds(2))
        #expect(call.isAnswered && bob.records.first?.isAnswered == true)
        #expect(alice.sent(.invite).allSatisfy { $0.body.isEmpty })
        #expect(call.media.last?.remoteRTPPort == bob.media.rtpPort)
        #expect(bob.records.first?.media.last?.remoteRTPPort == alice.media.rtpPort)
        simulation.act(alice) { $0.hold(handle, at: $1) }
        simulation.run(for: .seconds(1))
        #expect(call.events.last == "hold true false")
        simulation.hangUp(alice, call)
        simulation.expectClean()
    }

    /// Whatever is lost, doubled or reordered: the call is answered or ends, and nothing is left of it.
    @Test(arguments: 1...60)
    func earlyMediaOverABadNetwork(seed: UInt64) throws {
        let simulation = try Simulation(seed: seed, conditions: .bad)
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        announces(bob, answerAfter: .milliseconds(Int64(seed * 67 % 4_000)))
        let desk = seed % 3 == 0 ? try simulation.registered("bob") : nil
        if let desk { announces(desk, answerAfter: .milliseconds(Int64(seed * 91 % 5_000))) }
        let target = SIPURI(user: "bob", host: Simulation.realm)
        let headers = seed % 2 == 0 ? [(name: "Require", value: "100rel")] : []
        let handle = simulation.act(alice) {
            $0.call(target, headers: headers, media: alice.media, offersMedia: seed % 5 != 0, at: $1)
        }
        let call = alice.record(handle)
        simulation.run(for: .seconds(20))
        // A caller who requires reliable ringing and offers nothing is not rung before the offer is there.
        #expect(call.isAnswered || call.termination != nil, "\(call.events)")
        if call.termination == nil { simulation.hangUp(alice, call) }
        simulation.run(for: .seconds(100))
        for device in simulation.devices {
            for record in device.records { #expect(record.termination != nil, "\(device.user) \(record.events)") }
        }
        simulation.expectClean()
    }
}
