import Audio
import Primitives
import RTP
import SDP
import Testing

@testable import MediaSession

@Suite struct FlowTests {
    @Test func packetsFlowBothWaysAtThePaceOfTheMedia() throws {
        let (simulation, near, far) = try Simulation.pair(source: ToneSource(frequency: 440))
        #expect(near.stream.snapshot(at: simulation.now).packetsSent == 1, "the first packet leaves at once")
        #expect(near.stream.snapshot(at: simulation.now).firstPacketSent == 0)
        simulation.run(.seconds(20))
        for side in [near, far] {
            let statistics = side.stream.snapshot(at: simulation.now)
            // 20 s of 20 ms, and the one at the start.
            #expect(statistics.packetsSent == 1_001)
            #expect(statistics.packetsReceived >= 999)
            #expect(statistics.packetsLost == 0)
            #expect(statistics.packetsLate == 0)
            #expect(statistics.packetsMalformed == 0)
            #expect(statistics.packetsFromStrangers == 0)
            #expect(statistics.totalSamplesReceived == 1_001 * 960)
            #expect(statistics.codec == "opus")
            #expect(side.events.firstPackets == 1)
            #expect(side.events.all.count == 1)
        }
        #expect(far.stream.snapshot(at: simulation.now).audioLevelReceived > 0.05)
        #expect(near.stream.snapshot(at: simulation.now).audioLevelReceived < 0.001)
        let concealed = far.stream.snapshot(at: simulation.now).concealedSamples
        #expect(concealed == 0, "nothing was lost, but \(concealed) samples were invented")
    }

    struct Format: CustomStringConvertible, Sendable {
        var codec: AudioCodec
        var ptime: Int
        var description: String { "\(codec.name) \(ptime) ms" }
    }

    static let formats: [Format] =
        [10, 20, 40, 60].map { Format(codec: Agreement.opus, ptime: $0) }
        + [10, 20, 30, 40, 60].flatMap {
            [Format(codec: Agreement.pcmu, ptime: $0), Format(codec: Agreement.pcma, ptime: $0)]
        }

    @Test(arguments: formats) func whatIsHeardIsWhatWasSent(_ format: Format) throws {
        // What is sent before the other side listens is lost.
        let speech = [Int16](repeating: 0, count: 9_600) + babble(seconds: 6)
        let sink = SampleSink()
        let (simulation, near, far) = try Simulation.pair(
            codec: format.codec, ptime: format.ptime, source: SampleSource(speech), farSink: sink)
        simulation.run(.seconds(7))
        let match = SignalMatch.compare(reference: speech, heard: sink.samples)
        #expect(match.score > (format.codec.isOpus ? 0.85 : 0.9), "\(match)")
        #expect(match.gaps.isEmpty, "\(match)")
        #expect(abs(match.levelDifference) < 1.5, "\(match)")
        // A packet's time, the delay asked for, one step of the simulation and the codec.
        #expect(match.offset < 0.001 * Double(2 * format.ptime) + 0.06, "\(match)")
        let sent = near.stream.snapshot(at: simulation.now).packetsSent
        #expect(sent == UInt64(7_000 / format.ptime + 1))
        #expect(far.stream.snapshot(at: simulation.now).concealedSamples == 0)
        #expect(near.events.exhaustions == 1)
    }

    @Test func echoComesBack() throws {
        let speech = babble(seconds: 5)
        let sink = SampleSink()
        let echo = try makeDevicePair(capture: .echo, playback: .echo)
        let (simulation, _, _) = try Simulation.pair(
            source: SampleSource(speech), sink: sink, farSource: echo.source, farSink: echo.sink)
        simulation.run(.seconds(6))
        let match = SignalMatch.compare(reference: speech, heard: sink.samples)
        #expect(match.score > SignalMatch.sameSignal, "\(match)")
        #expect(match.gaps.isEmpty, "\(match)")
    }

    @Test func muteSendsSilenceAndKeepsThePace() throws {
        let sink = SampleSink()
        let (simulation, near, far) = try Simulation.pair(source: ToneSource(frequency: 300), farSink: sink)
        simulation.run(.seconds(2))
        let before = near.stream.snapshot(at: simulation.now).packetsSent
        near.stream.isMuted = true
        simulation.run(.seconds(2))
        let muted = near.stream.snapshot(at: simulation.now)
        #expect(muted.packetsSent - before == 100)
        #expect(muted.audioLevelSent == 0)
        #expect(level(sink.samples.suffix(24_000)) < 0.001)
        near.stream.isMuted = false
        simulation.run(.seconds(2))
        #expect(level(sink.samples.suffix(24_000)) > 0.05)
        #expect(far.stream.snapshot(at: simulation.now).concealedSamples == 0)
    }

    @Test func aStreamCanBeginMuted() throws {
        let port = try MediaPort(host: "127.0.0.1")
        let farPort = try MediaPort(host: "127.0.0.1")
        let sink = SampleSink()
        let near = try Side(
            port: port, audio: Agreement.with(farPort), source: ToneSource(frequency: 300), isMuted: true)
        let far = try Side(port: farPort, audio: Agreement.with(port), sink: sink)
        let simulation = Simulation()
        simulation.add(near, far)
        simulation.run(.seconds(1))
        #expect(near.stream.snapshot(at: simulation.now).packetsSent == 51)
        #expect(level(sink.samples) < 0.001)
    }

    @Test func packetsBeforeTheStartAreStale() throws {
        let peer = try RawPeer()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: peer.agreement())
        for _ in 0..<40 { peer.send(peer.packet(), to: side.port.local.rtpPort) }
        let simulation = Simulation()
        simulation.add(side)
        simulation.run(.milliseconds(20))
        #expect(side.stream.snapshot(at: simulation.now).packetsReceived == 0)
        peer.send(peer.packet(), to: side.port.local.rtpPort)
        simulation.run(.milliseconds(20))
        #expect(side.stream.snapshot(at: simulation.now).packetsReceived == 1)
    }

    @Test func aStallIsSkippedAndTheTimestampsGoOn() throws {
        let peer = try RawPeer()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: peer.agreement())
        let simulation = Simulation()
        simulation.add(side)
        simulation.run(.milliseconds(100))
        let first = peer.receiveAll().compactMap { RTPHeader.parse($0) }
        simulation.stall(.milliseconds(1_000))
        simulation.run(.milliseconds(100))
        let later = peer.receiveAll().compactMap { RTPHeader.parse($0) }
        let start = try #require(first.first)
        let end = try #require(later.last)
        // 1.2 s are 1200 ms × 8 of timestamp, but 960 ms of packets (eight times 120 ms) never left.
        #expect(end.timestamp &- start.timestamp == 9_600)
        #expect(end.sequenceNumber &- start.sequenceNumber == 60 - 48)
        #expect(later.first?.marker == true)
        #expect(later.dropFirst().allSatisfy { !$0.marker })
    }

    @Test func telephoneEventsLeaveNoHole() throws {
        let peer = try RawPeer()
        var audio = peer.agreement()
        audio.receivePayloadTypes[101] = AudioCodec(name: "telephone-event", clockRate: 8_000, payloadType: 101)
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: audio)
        let simulation = Simulation()
        simulation.add(side)
        for packet in 0..<100 {
            // Three events of the same time among the audio.
            for _ in 0..<(packet == 50 ? 3 : 0) {
                let event = peer.packet(payloadType: 101, payload: []) + [1, 0x8A, 3, 0x20]
                peer.send(event, to: side.port.local.rtpPort)
            }
            peer.send(peer.packet(), to: side.port.local.rtpPort)
            simulation.run(.milliseconds(20))
        }
        let statistics = side.stream.snapshot(at: simulation.now)
        #expect(statistics.packetsReceived == 103)
        #expect(statistics.packetsLost == 0)
        #expect(statistics.concealedSamples == 0)
    }

    @Test func aPeerMayChangeToAnotherAgreedCodec() throws {
        let peer = try RawPeer()
        var audio = peer.agreement(codec: Agreement.opus)
        audio.receivePayloadTypes = [111: Agreement.opus, 0: Agreement.pcmu]
        let sink = SampleSink()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: audio, sink: sink)
        let simulation = Simulation()
        simulation.add(side)
        // Not silence: a loud square wave in µ-law.
        let loud = (0..<160).map { UInt8($0 % 16 < 8 ? 0x90 : 0x10) }
        for _ in 0..<100 {
            peer.send(peer.packet(payload: loud), to: side.port.local.rtpPort)
            simulation.run(.milliseconds(20))
        }
        #expect(level(sink.samples.suffix(48_000)) > 0.1)
        #expect(side.stream.snapshot(at: simulation.now).packetsLost == 0)
    }

    @Test func lossIsConcealedAndCounted() throws {
        let peer = try RawPeer()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: peer.agreement())
        let simulation = Simulation()
        simulation.add(side)
        for packet in 0..<200 {
            let bytes = peer.packet()
            if packet % 10 != 9 { peer.send(bytes, to: side.port.local.rtpPort) }
            simulation.run(.milliseconds(20))
        }
        let statistics = side.stream.snapshot(at: simulation.now)
        #expect(statistics.packetsReceived == 180)
        #expect((19...20).contains(statistics.packetsLost))
        #expect(statistics.concealedSamples >= 19 * 960)
    }

    @Test func redundancyBringsLostOpusPacketsBack() throws {
        // A network between the two that loses every eighth packet.
        let relay = try RawPeer()
        let speech = [Int16](repeating: 0, count: 9_600) + babble(seconds: 8)
        let sink = SampleSink()
        var toRelay = relay.agreement(codec: Agreement.opus)
        toRelay.opus.useInbandFEC = true
        let near = try Side(port: MediaPort(host: "127.0.0.1"), audio: toRelay, source: SampleSource(speech))
        let far = try Side(
            port: MediaPort(host: "127.0.0.1"), audio: relay.agreement(codec: Agreement.opus), sink: sink)
        let simulation = Simulation()
        simulation.add(near, far)
        let farRTP = far.port.local.rtpPort
        let nearRTP = near.port.local.rtpPort
        var spoken = 0
        simulation.run(.seconds(9)) { _ in
            for packet in relay.receiveAll() {
                // Both sides send to the relay; the payload tells speech from the other side's silence.
                guard let header = RTPHeader.parse(packet), header.ssrc == near.stream.sourceIdentifier else {
                    relay.send(packet, to: nearRTP)
                    continue
                }
                // Counted from the first: whether that one is lost decides when playing begins.
                spoken += 1
                if spoken % 8 != 0 { relay.send(packet, to: farRTP) }
            }
        }
        let statistics = far.stream.snapshot(at: simulation.now)
        #expect((54...58).contains(statistics.packetsLost))
        #expect(statistics.fecRecoveredFrames >= 50)
        let match = SignalMatch.compare(reference: speech, heard: sink.samples)
        #expect(match.score > 0.75, "\(match)")
        #expect(match.longestGap < 0.04, "\(match)")
    }

    @Test func theSixthVersionOfTheProtocolWorksToo() throws {
        let near = try MediaPort(host: "::1")
        let far = try MediaPort(host: "::1")
        let sides = (
            try Side(port: near, audio: Agreement.with(far)), try Side(port: far, audio: Agreement.with(near))
        )
        let simulation = Simulation()
        simulation.add(sides.0, sides.1)
        simulation.run(.seconds(5))
        let statistics = sides.1.stream.snapshot(at: simulation.now)
        // Of 251, the first came before the other side began, and the last is on its way.
        #expect(statistics.packetsReceived == 249)
        #expect(statistics.remoteAddress == "[::1]:\(near.local.rtpPort)")
        #expect(statistics.remoteFractionLost == 0)
    }
}
