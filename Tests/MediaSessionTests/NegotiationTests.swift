import Audio
import Primitives
import RTP
import SDP
import Testing

@testable import MediaSession

@Suite struct NegotiationTests {
    struct Hold: CustomStringConvertible, Sendable {
        var near: MediaDirection
        var far: MediaDirection
        var description: String { "\(near) and \(far)" }
    }

    @Test(arguments: [
        Hold(near: .sendonly, far: .recvonly), Hold(near: .recvonly, far: .sendonly),
        Hold(near: .inactive, far: .inactive),
    ])
    func holdAndResume(_ hold: Hold) throws {
        let nearSink = SampleSink()
        let farSink = SampleSink()
        let (simulation, near, far) = try Simulation.pair(
            source: ToneSource(frequency: 300), sink: nearSink, farSource: ToneSource(frequency: 500),
            farSink: farSink)
        simulation.run(.seconds(2))
        near.change(at: simulation.now) { $0.direction = hold.near }
        far.change(at: simulation.now) { $0.direction = hold.far }
        let before = (
            near.stream.snapshot(at: simulation.now).packetsSent, far.stream.snapshot(at: simulation.now).packetsSent
        )
        simulation.run(.seconds(3))
        let during = (
            near.stream.snapshot(at: simulation.now).packetsSent, far.stream.snapshot(at: simulation.now).packetsSent
        )
        #expect(during.0 - before.0 == (hold.near == .sendonly ? 150 : 0))
        #expect(during.1 - before.1 == (hold.far == .sendonly ? 150 : 0))
        #expect((level(nearSink.samples.suffix(48_000)) > 0.05) == (hold.near == .recvonly))
        #expect((level(farSink.samples.suffix(48_000)) > 0.05) == (hold.far == .recvonly))

        near.change(at: simulation.now) { $0.direction = .sendrecv }
        far.change(at: simulation.now) { $0.direction = .sendrecv }
        simulation.run(.seconds(2))
        for sink in [nearSink, farSink] {
            #expect(level(sink.samples.suffix(48_000)) > 0.05)
            // Ever since the start, the sink was fed at its pace.
            #expect(sink.samples.count == 960 * 351)
        }
        for side in [near, far] {
            let statistics = side.stream.snapshot(at: simulation.now)
            #expect(statistics.packetsLost == 0)
            #expect(statistics.packetsFromStrangers == 0)
        }
    }

    @Test func aPeerThatStillSendsWhileOnHoldIsNotHeard() throws {
        let sink = SampleSink()
        let (simulation, near, _) = try Simulation.pair(sink: sink, farSource: ToneSource(frequency: 500))
        simulation.run(.seconds(1))
        near.change(at: simulation.now) { $0.direction = .inactive }
        simulation.run(.seconds(2))
        #expect(level(sink.samples.suffix(48_000)) < 0.001)
        let statistics = near.stream.snapshot(at: simulation.now)
        #expect(statistics.packetsReceived > 145, "still counted")
        #expect(statistics.packetsLost == 0)
    }

    @Test func afterAHoldTheFirstPacketHasTheMarkerAndTheTimestampsGoOn() throws {
        let peer = try RawPeer()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: peer.agreement())
        let simulation = Simulation()
        simulation.add(side)
        simulation.run(.seconds(1))
        let last = try #require(peer.receiveAll().compactMap { RTPHeader.parse($0) }.last)
        side.change(at: simulation.now) { $0.direction = .inactive }
        simulation.run(.seconds(1))
        #expect(peer.receiveAll().isEmpty)
        side.change(at: simulation.now) { $0.direction = .sendrecv }
        simulation.run(.milliseconds(40))
        let resumed = peer.receiveAll().compactMap { RTPHeader.parse($0) }
        let first = try #require(resumed.first)
        #expect(first.marker)
        #expect(first.ssrc == last.ssrc)
        #expect(first.sequenceNumber == last.sequenceNumber &+ 1)
        #expect(first.timestamp &- last.timestamp == 8_160)
        #expect(resumed.dropFirst().first?.marker == false)
    }

    /// Addresses are only looked at here: should the check ever break, no packet leaves the machine because of a test.
    @Test(arguments: ["192.0.2.1", "255.255.255.255", "224.0.0.1", "10.0.0.1", "::ffff:192.0.2.1", "2001:db8::1"])
    func anAddressBeyondLoopbackIsNoTarget(_ host: String) throws {
        var audio = try RawPeer().agreement()
        audio.remoteAddress = host
        #expect(PeerAddress(audio).rtp == nil)
        #expect(PeerAddress(audio).control == nil)
    }

    @Test(arguments: ["0.0.0.0", "::", "hold.invalid", "", "peer"])
    func nothingIsSentToAPeerOnHoldByAddress(_ host: String) throws {
        let peer = try RawPeer()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: peer.agreement())
        let simulation = Simulation()
        simulation.add(side)
        simulation.run(.milliseconds(100))
        #expect(peer.receiveAll().count == 6)
        // On hold as RFC 2543 had it: the direction still says sendrecv. RTCP stays silent too, wherever it is.
        side.change(at: simulation.now) { $0.remoteAddress = host }
        let before = side.stream.snapshot(at: simulation.now).packetsSent
        simulation.run(.seconds(8))
        side.stream.finish(at: simulation.now)
        #expect(peer.receiveAll().isEmpty)
        let statistics = side.stream.snapshot(at: simulation.now)
        #expect(statistics.packetsSent == before)
        #expect(statistics.remoteAddress == "")
    }

    @Test func anotherHostForControlGetsNothing() throws {
        let peer = try RawPeer()
        var audio = peer.agreement()
        audio.remoteRTCPAddress = "192.0.2.1"
        #expect(PeerAddress(audio).control == nil)
        #expect(PeerAddress(audio).rtp != nil)
        audio.remoteRTPPort = 0
        #expect(PeerAddress(audio).rtp == nil)
    }

    @Test func theStreamFollowsToAnotherPort() throws {
        let first = try RawPeer()
        let second = try RawPeer()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: first.agreement())
        let simulation = Simulation()
        simulation.add(side)
        for _ in 0..<10 {
            first.send(first.packet(), to: side.port.local.rtpPort)
            simulation.run(.milliseconds(20))
        }
        #expect(first.receiveAll().count == 11)
        side.change(at: simulation.now) { $0.remoteRTPPort = second.address.port }
        for _ in 0..<10 {
            first.send(first.packet(), to: side.port.local.rtpPort)
            second.send(second.packet(ssrc: 99), to: side.port.local.rtpPort)
            simulation.run(.milliseconds(20))
        }
        #expect(first.receiveAll().isEmpty)
        #expect(second.receiveAll().count == 10)
        let statistics = side.stream.snapshot(at: simulation.now)
        #expect(statistics.remoteAddress == second.address.description)
        #expect(statistics.packetsFromStrangers >= 9, "what the old port sends is a stranger's once the new one spoke")
        #expect(side.events.firstPackets == 1)
    }

    @Test func aRefreshKeepsTheLearntPort() throws {
        let named = try RawPeer()
        let real = try RawPeer()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: named.agreement())
        let simulation = Simulation()
        simulation.add(side)
        real.send(real.packet(), to: side.port.local.rtpPort)
        simulation.run(.milliseconds(20))
        side.change(at: simulation.now) { $0.direction = .sendonly }
        _ = real.receiveAll()
        simulation.run(.milliseconds(100))
        #expect(real.receiveAll().count == 5)
    }

    @Test func codecAndPacketLengthMayChange() throws {
        let sink = SampleSink()
        let (simulation, near, far) = try Simulation.pair(source: ToneSource(frequency: 300), farSink: sink)
        simulation.run(.seconds(2))
        for (codec, ptime, interval) in [
            (Agreement.pcma, 20, 50), (Agreement.pcma, 40, 25), (Agreement.opus, 60, 17), (Agreement.opus, 10, 100),
        ] {
            for side in [near, far] {
                side.change(at: simulation.now) {
                    $0.codec = codec
                    $0.receivePayloadTypes = [codec.payloadType: codec]
                    $0.ptime = ptime
                }
            }
            simulation.run(.milliseconds(500))
            let before = near.stream.snapshot(at: simulation.now).packetsSent
            let concealed = far.stream.snapshot(at: simulation.now).concealedSamples
            simulation.run(.seconds(1))
            let statistics = near.stream.snapshot(at: simulation.now)
            #expect(abs(Int(statistics.packetsSent - before) - interval) <= 1, "\(codec.name) \(ptime)")
            #expect(statistics.codec == codec.name)
            #expect(level(sink.samples.suffix(24_000)) > 0.05, "\(codec.name) \(ptime)")
            #expect(far.stream.snapshot(at: simulation.now).concealedSamples == concealed, "\(codec.name) \(ptime)")
        }
    }

    @Test func thePayloadTypeMayChangeAlone() throws {
        let peer = try RawPeer()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: peer.agreement(codec: Agreement.opus))
        let simulation = Simulation()
        simulation.add(side)
        simulation.run(.milliseconds(100))
        let before = try #require(peer.receiveAll().compactMap { RTPHeader.parse($0) }.last)
        side.change(at: simulation.now) { $0.codec.payloadType = 96 }
        simulation.run(.milliseconds(20))
        let after = try #require(peer.receiveAll().compactMap { RTPHeader.parse($0) }.first)
        #expect(after.payloadType == 96)
        #expect(after.ssrc == before.ssrc)
        #expect(after.sequenceNumber == before.sequenceNumber &+ 1)
    }
}
