import Audio
import Primitives
import RTP
import SDP
import Testing

@testable import MediaSession

@Suite struct EventTests {
    @Test func theEndOfTheSourceIsToldOnceAndSilenceFollows() throws {
        let sink = SampleSink()
        let (simulation, near, far) = try Simulation.pair(
            source: SampleSource([Int16](repeating: 8_000, count: 48_000)), farSink: sink)
        simulation.run(.seconds(3))
        #expect(near.events.exhaustions == 1)
        #expect(far.events.exhaustions == 0)
        #expect(near.stream.snapshot(at: simulation.now).packetsSent == 151)
        #expect(level(sink.samples.suffix(24_000)) < 0.001)
    }

    @Test func inactivityIsToldOnceForEachSilence() throws {
        let peer = try RawPeer()
        let side = try Side(
            port: MediaPort(host: "127.0.0.1"), audio: peer.agreement(), inactivityTimeout: .seconds(3))
        let simulation = Simulation()
        simulation.add(side)
        simulation.run(.seconds(5))
        #expect(side.events.inactivities == 0, "before the first packet, the call is not up")
        for silence in 1...2 {
            peer.send(peer.packet(), to: side.port.local.rtpPort)
            simulation.run(.milliseconds(2_900))
            #expect(side.events.inactivities == silence - 1)
            simulation.run(.seconds(8))
            #expect(side.events.inactivities == silence)
        }
        guard case .inactive(let duration) = side.events.all.last else {
            Issue.record("the last event is \(String(describing: side.events.all.last))")
            return
        }
        #expect(duration > .seconds(3))
        #expect(duration < .seconds(3) + .milliseconds(50))
    }

    @Test func aHoldIsNotInactivityAndAfterItTheTimeStartsAnew() throws {
        let peer = try RawPeer()
        let side = try Side(
            port: MediaPort(host: "127.0.0.1"), audio: peer.agreement(), inactivityTimeout: .seconds(3))
        let simulation = Simulation()
        simulation.add(side)
        peer.send(peer.packet(), to: side.port.local.rtpPort)
        simulation.run(.seconds(2))
        side.change(at: simulation.now) { $0.direction = .sendonly }
        simulation.run(.seconds(10))
        side.change(at: simulation.now) {
            $0.direction = .sendrecv
            $0.remoteAddress = "0.0.0.0"
        }
        simulation.run(.seconds(10))
        #expect(side.events.inactivities == 0)
        side.change(at: simulation.now) { $0.remoteAddress = "127.0.0.1" }
        simulation.run(.milliseconds(2_900))
        #expect(side.events.inactivities == 0)
        simulation.run(.milliseconds(200))
        #expect(side.events.inactivities == 1)
    }

    @Test func aLostDeviceIsToldOnceAndTheStreamGoesOn() throws {
        let card = FakeCard()
        let (simulation, near, far) = try Simulation.pair(source: card, sink: card)
        simulation.run(.seconds(2)) { _ in card.deliver(240) }
        let before = near.stream.snapshot(at: simulation.now)
        // The card's clock paces the stream: 2 s are 100 packets.
        #expect((99...101).contains(before.packetsSent))
        #expect(before.totalSamplesReceived > 90_000)
        #expect(far.stream.snapshot(at: simulation.now).audioLevelReceived > 0.02)
        card.lose()
        simulation.run(.seconds(2))
        let after = near.stream.snapshot(at: simulation.now)
        #expect(near.events.failures == 1)
        #expect((98...102).contains(after.packetsSent - before.packetsSent))
        #expect((94_000...98_000).contains(after.totalSamplesReceived - before.totalSamplesReceived))
        #expect(after.packetsReceived > before.packetsReceived + 95)
        #expect(far.events.failures == 0)
    }

    @Test func aCardThatRunsFastIsFollowed() throws {
        let card = FakeCard()
        let (simulation, near, far) = try Simulation.pair(source: card, sink: card)
        // One per cent fast: 101 packets in 2 s, and no more is heard as invented than the drift asks for.
        var rest = 0.0
        simulation.run(.seconds(60)) { _ in
            rest += 242.4
            card.deliver(Int(rest))
            rest -= rest.rounded(.down)
        }
        #expect((3_028...3_032).contains(near.stream.snapshot(at: simulation.now).packetsSent))
        #expect(near.stream.snapshot(at: simulation.now).xruns == 0)
        #expect(far.stream.snapshot(at: simulation.now).jitterBufferDelay < 0.08)
    }

    @Test func aFileThatCannotBeWrittenIsToldOnceAndTheStreamGoesOn() throws {
        let sink = FullDiskSink()
        let (simulation, near, _) = try Simulation.pair(sink: sink, farSource: ToneSource(frequency: 300))
        simulation.run(.seconds(1))
        #expect(near.events.failures == 0)
        sink.isFull = true
        simulation.run(.seconds(1))
        #expect(near.events.failures == 1)
        #expect(near.stream.snapshot(at: simulation.now).packetsReceived > 95)
    }
}
