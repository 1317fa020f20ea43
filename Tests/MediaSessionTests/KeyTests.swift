import Audio
import Primitives
import RTP
import SDP
import Testing

@testable import MediaSession

extension EventLog {
    var keys: String {
        String(all.compactMap { if case .keyReceived(let key) = $0 { key } else { nil } })
    }

    var keysSent: Int { count { if case .keysSent = $0 { true } else { false } } }
}

extension Agreement {
    /// With telephone events beside the codec.
    static func withKeys(_ audio: NegotiatedAudio) -> NegotiatedAudio {
        var audio = audio
        let event = AudioCodec(name: "telephone-event", clockRate: audio.codec.clockRate, payloadType: 110)
        audio.telephoneEventPayloadType = event.payloadType
        audio.receivePayloadTypes[event.payloadType] = event
        return audio
    }
}

@Suite struct KeyTests {
    private func pair(codec: AudioCodec, ptime: Int = 20) throws -> (Simulation, Side, Side) {
        let nearPort = try MediaPort(host: "127.0.0.1")
        let farPort = try MediaPort(host: "127.0.0.1")
        let near = try Side(
            port: nearPort, audio: Agreement.withKeys(Agreement.with(farPort, codec: codec, ptime: ptime)),
            source: ToneSource(frequency: 300))
        let far = try Side(
            port: farPort, audio: Agreement.withKeys(Agreement.with(nearPort, codec: codec, ptime: ptime)))
        let simulation = Simulation()
        simulation.add(near, far)
        return (simulation, near, far)
    }

    @Test(arguments: [(Agreement.opus, 20), (Agreement.pcmu, 20), (Agreement.pcma, 10), (Agreement.opus, 60)])
    func everyKeyArrivesOnceAndInOrder(codec: AudioCodec, ptime: Int) throws {
        let (simulation, near, far) = try pair(codec: codec, ptime: ptime)
        simulation.run(.milliseconds(500))
        #expect(near.stream.send(keys: "0123456789*#ABCD11"))
        #expect(near.events.keysSent == 0)
        simulation.run(.seconds(7))
        #expect(far.events.keys == "0123456789*#ABCD11")
        #expect(near.events.keysSent == 1)
        #expect(near.events.keys.isEmpty)
        // Sound goes on afterwards, and events are no lost packets.
        let statistics = far.stream.snapshot(at: simulation.now)
        #expect(statistics.audioLevelReceived > 0.05)
        #expect(statistics.packetsLost == 0)
        #expect(statistics.packetsMalformed == 0)
    }

    @Test func keysPassAMutedMicrophoneAndWaitWhileOnHold() throws {
        let (simulation, near, far) = try pair(codec: Agreement.opus)
        near.stream.isMuted = true
        simulation.run(.milliseconds(200))
        #expect(near.stream.send(keys: "5"))
        simulation.run(.milliseconds(400))
        #expect(far.events.keys == "5")
        near.change(at: simulation.now) { $0.direction = .inactive }
        #expect(near.stream.send(keys: "6"))
        simulation.run(.seconds(1))
        #expect(far.events.keys == "5")
        near.change(at: simulation.now) { $0.direction = .sendrecv }
        simulation.run(.seconds(1))
        #expect(far.events.keys == "56")
        #expect(near.events.keysSent == 2)
    }

    @Test func waitingKeysSurviveAChangeOfTheClock() throws {
        let (simulation, near, far) = try pair(codec: Agreement.opus)
        simulation.run(.milliseconds(200))
        #expect(near.stream.send(keys: "123"))
        simulation.run(.milliseconds(100))
        let event = AudioCodec(name: "telephone-event", clockRate: 8_000, payloadType: 101)
        for side in [near, far] {
            side.change(at: simulation.now) {
                $0.codec = Agreement.pcmu
                $0.receivePayloadTypes = [0: Agreement.pcmu, 101: event]
                $0.telephoneEventPayloadType = 101
            }
        }
        simulation.run(.seconds(2))
        #expect(far.events.keys == "123")
    }

    @Test func whatCannotBeSentIsRefused() throws {
        let (simulation, near, _) = try pair(codec: Agreement.opus)
        simulation.run(.milliseconds(100))
        #expect(!near.stream.send(keys: "12x"))
        #expect(!near.stream.send(keys: String(repeating: "1", count: 129)))
        near.change(at: simulation.now) { $0.telephoneEventPayloadType = nil }
        #expect(!near.stream.send(keys: "1"))
        simulation.run(.seconds(1))
        #expect(near.events.keysSent == 0)
    }

    @Test func aFloodOfKeysIsCutToWhatAKeypadCanDo() throws {
        let peer = try RawPeer()
        let side = try Side(
            port: MediaPort(host: "127.0.0.1"), audio: Agreement.withKeys(peer.agreement()))
        let simulation = Simulation()
        simulation.add(side)
        var timestamp: UInt32 = 1_000
        var sequence: UInt16 = 1
        simulation.run(.seconds(10)) { _ in
            for _ in 0..<4 {
                let header = RTPHeader(
                    marker: true, payloadType: 110, sequenceNumber: sequence, timestamp: timestamp, ssrc: 9)
                var bytes = [UInt8](repeating: 0, count: RTPHeader.minimumLength)
                _ = header.write(into: &bytes)
                peer.send(bytes + TelephoneEvent(event: 7, duration: 160).encoded, to: side.port.local.rtpPort)
                timestamp &+= 320
                sequence &+= 1
            }
        }
        // Ten seconds of a key each 50 ms, and the burst.
        #expect((190...220).contains(side.events.keys.count), "\(side.events.keys.count)")
    }
}
