import Audio
import Primitives
import SDP
import Testing

@testable import MediaSession

/// What a stream does before the answer, and on hold.
@Suite struct PhaseTests {
    @Test func beforeTheAnswerSoundIsHeardAndNothingIsSent() throws {
        let peer = try RawPeer()
        let port = try MediaPort(host: "127.0.0.1")
        let events = EventLog()
        let sink = SampleSink()
        let source = SampleSource([Int16](repeating: 8_000, count: 480_000))
        let stream = try MediaStream(
            port: port, settings: MediaStream.Settings(audio: peer.agreement(), phase: .early), source: source,
            sink: sink, recorder: nil
        ) { events.append($0) }
        var now = MonotonicTime(nanoseconds: 1_000_000_000_000)
        stream.begin(at: now)
        func run(_ steps: Int) {
            for _ in 0..<steps {
                now += .milliseconds(20)
                // A loud sample of mu-law.
                peer.send(peer.packet(payload: [UInt8](repeating: 0x10, count: 160)), to: port.local.rtpPort)
                stream.receive(isControl: false, at: now)
                _ = stream.process(at: now)
            }
        }
        run(50)
        #expect(level(sink.samples.suffix(4_800)) > 0.05, "the ringing tone is heard")
        #expect(stream.snapshot(at: now).packetsSent == 0)
        #expect(events.firstPackets == 0 && events.inactivities == 0)
        #expect(peer.receiveAll().isEmpty)
        stream.renegotiate(peer.agreement(), phase: .talking, at: now)
        run(10)
        #expect(events.firstPackets == 1)
        #expect(stream.snapshot(at: now).packetsSent >= 9)
        stream.finish(at: now)
    }

    @Test func whoIsHeldMayBeSilentForAsLongAsItLikes() throws {
        let peer = try RawPeer()
        let side = try Side(
            port: MediaPort(host: "127.0.0.1"), audio: peer.agreement(), inactivityTimeout: .seconds(3))
        let simulation = Simulation()
        simulation.add(side)
        peer.send(peer.packet(), to: side.port.local.rtpPort)
        simulation.run(.milliseconds(100))
        var held = side.audio
        held.direction = .recvonly
        side.stream.renegotiate(held, phase: .held, at: simulation.now)
        let sent = side.stream.snapshot(at: simulation.now).packetsSent
        simulation.run(.seconds(60))
        #expect(side.events.inactivities == 0)
        #expect(side.stream.snapshot(at: simulation.now).packetsSent == sent)
        // Then silence means something again.
        side.stream.renegotiate(side.audio, phase: .talking, at: simulation.now)
        simulation.run(.seconds(4))
        #expect(side.events.inactivities == 1)
    }
}
