import Audio
import Network
import Primitives
import RTP
import SDP
import Testing

@testable import MediaSession

/// RTP bleed and injection: what a third party on the network must not be able to do.
@Suite struct StrangerTests {
    /// A loud square wave, which is heard when it is played.
    static let loud = (0..<160).map { UInt8($0 % 16 < 8 ? 0x90 : 0x10) }

    @Test func aThirdPartyNeitherEntersNorMovesTheStream() throws {
        let peer = try RawPeer()
        let samePort = try RawPeer()
        let otherHost = try RawPeer(host: "127.0.0.2")
        let sink = SampleSink()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: peer.agreement(), sink: sink)
        let simulation = Simulation()
        simulation.add(side)
        for _ in 0..<100 {
            let packet = peer.packet()
            peer.send(packet, to: side.port.local.rtpPort)
            simulation.run(.milliseconds(5))
            // The same source, the next sequence numbers and timestamps, from elsewhere.
            for stranger in [samePort, otherHost] {
                var forged = packet
                forged[3] &+= 1
                forged.replaceSubrange(12..., with: Self.loud)
                stranger.send(forged, to: side.port.local.rtpPort)
            }
            simulation.run(.milliseconds(15))
        }
        let statistics = side.stream.snapshot(at: simulation.now)
        #expect(statistics.packetsReceived == 100)
        #expect(statistics.packetsFromStrangers == 200)
        #expect(statistics.packetsMalformed == 0)
        #expect(statistics.remoteAddress == peer.address.description)
        #expect(level(sink.samples) < 0.001)
        #expect(samePort.receiveAll().isEmpty)
        #expect(otherHost.receiveAll().isEmpty)
        #expect(peer.receiveAll().count == 101)
    }

    @Test func anotherHostIsNeverTakenForThePeer() throws {
        let peer = try RawPeer()
        let otherHost = try RawPeer(host: "127.0.0.2")
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: peer.agreement())
        let simulation = Simulation()
        simulation.add(side)
        for _ in 0..<50 {
            otherHost.send(otherHost.packet(), to: side.port.local.rtpPort)
            simulation.run(.milliseconds(20))
        }
        let statistics = side.stream.snapshot(at: simulation.now)
        #expect(statistics.packetsReceived == 0)
        #expect(statistics.packetsFromStrangers == 50)
        #expect(side.events.all.isEmpty)
        #expect(otherHost.receiveAll().isEmpty)
    }

    @Test func theFirstPacketFixesThePortOfTheNamedHost() throws {
        let named = try RawPeer()
        let real = try RawPeer()
        let late = try RawPeer()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: named.agreement())
        let simulation = Simulation()
        simulation.add(side)
        simulation.run(.milliseconds(100))
        #expect(named.receiveAll().count == 6)
        real.send(real.packet(), to: side.port.local.rtpPort)
        simulation.run(.milliseconds(100))
        #expect(named.receiveAll().isEmpty)
        #expect(real.receiveAll().count == 5)
        late.send(late.packet(), to: side.port.local.rtpPort)
        simulation.run(.milliseconds(100))
        #expect(late.receiveAll().isEmpty)
        #expect(real.receiveAll().count == 5)
        #expect(side.stream.snapshot(at: simulation.now).packetsFromStrangers == 1)
        // Only the address that the peer named itself takes the stream back.
        named.send(named.packet(ssrc: 5), to: side.port.local.rtpPort)
        simulation.run(.milliseconds(100))
        #expect(named.receiveAll().count == 5)
        real.send(real.packet(), to: side.port.local.rtpPort)
        simulation.run(.milliseconds(100))
        #expect(real.receiveAll().isEmpty)
        #expect(side.stream.snapshot(at: simulation.now).packetsFromStrangers == 2)
    }

    @Test func whatWasNotAgreedOnFixesNothing() throws {
        let named = try RawPeer()
        let other = try RawPeer()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: named.agreement())
        let simulation = Simulation()
        simulation.add(side)
        other.send(other.packet(payloadType: 77), to: side.port.local.rtpPort)
        other.send([0x80, 0, 0], to: side.port.local.rtpPort)
        simulation.run(.milliseconds(100))
        #expect(other.receiveAll().isEmpty)
        let statistics = side.stream.snapshot(at: simulation.now)
        #expect(statistics.packetsMalformed == 2)
        #expect(statistics.remoteAddress == named.address.description)
        #expect(side.events.all.isEmpty)
    }

    @Test func whatIsNoRTPIsCountedAndDropped() throws {
        let peer = try RawPeer()
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: peer.agreement())
        let simulation = Simulation()
        simulation.add(side)
        peer.send(peer.packet(), to: side.port.local.rtpPort)
        simulation.run(.milliseconds(20))
        var padded = peer.packet(payload: [0xFF, 0xFF, 9])
        padded[0] |= 0x20
        var extended = peer.packet(payload: [0, 0, 0xFF, 0xFF])
        extended[0] |= 0x10
        var sources = peer.packet(payload: [1, 2, 3])
        sources[0] |= 0x0F
        let bad: [[UInt8]] = [
            [], [0x80], [UInt8](repeating: 0x80, count: 11), [UInt8](repeating: 0, count: 20),
            [UInt8](repeating: 0x40, count: 200), [UInt8](repeating: 0x16, count: 60), padded, extended, sources,
            // RTCP on the RTP port without rtcp-mux, and longer than any packet may be.
            [0x80, 201, 0, 1, 0, 0, 0, 1], [0x80] + [UInt8](repeating: 0, count: 3_000),
        ]
        for bytes in bad { peer.send(bytes, to: side.port.local.rtpPort) }
        // RTP and nonsense on the RTCP port.
        peer.send(peer.packet(), to: side.port.local.rtcpPort)
        peer.send([0x80, 200, 0xFF, 0xFF, 0, 0, 0, 1], to: side.port.local.rtcpPort)
        simulation.run(.milliseconds(20))
        let statistics = side.stream.snapshot(at: simulation.now)
        #expect(statistics.packetsMalformed == UInt64(bad.count + 2))
        #expect(statistics.packetsReceived == 1)
        #expect(statistics.packetsFromStrangers == 0)
    }

    @Test func everyCutAndEveryFlippedByteOfAPacketIsSurvived() throws {
        let peer = try RawPeer()
        var audio = peer.agreement(codec: Agreement.opus)
        audio.receivePayloadTypes = [111: Agreement.opus, 0: Agreement.pcmu, 8: Agreement.pcma]
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: audio)
        let simulation = Simulation()
        simulation.add(side)
        var random = RandomSource.seeded(3)
        for round in 0..<2_000 {
            var packet = peer.packet(
                payloadType: [111, 0, 8, 13][round % 4],
                payload: (0..<Int(random.next() % 200)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
            for _ in 0..<Int(random.next() % 4) {
                packet[Int(random.next() % UInt64(packet.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            packet.removeLast(Int(random.next() % UInt64(packet.count)))
            peer.send(packet, to: round % 7 == 0 ? side.port.local.rtcpPort : side.port.local.rtpPort)
            if round % 3 == 0 { simulation.run(.milliseconds(10)) }
        }
        simulation.run(.milliseconds(10))
        let statistics = side.stream.snapshot(at: simulation.now)
        #expect(statistics.packetsReceived + statistics.packetsMalformed + statistics.packetsFromStrangers == 2_000)
        #expect(statistics.packetsReceived > 300)
    }

    @Test func aPacketsKindOfAddressMatters() throws {
        let v4 = try SocketAddress(TransportAddress(host: "127.0.0.1", port: 5))
        let v6 = try SocketAddress(TransportAddress(host: "::1", port: 5))
        #expect(!v4.hasSameHost(as: v6))
        let moved = try SocketAddress(TransportAddress(host: "127.0.0.1", port: 6))
        #expect(v4.hasSameHost(as: moved))
    }
}
