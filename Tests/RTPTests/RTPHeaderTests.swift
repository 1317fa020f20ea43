import Primitives
import Testing

@testable import RTP

@Suite struct RTPHeaderTests {
    @Test func writesAndReads() {
        let header = RTPHeader(
            marker: true, payloadType: 111, sequenceNumber: 0xABCD, timestamp: 0x0123_4567, ssrc: 0x89AB_CDEF)
        var bytes = [UInt8](repeating: 0xEE, count: 20)
        #expect(header.write(into: &bytes) == 12)
        #expect(bytes.prefix(12) == [0x80, 0xEF, 0xAB, 0xCD, 1, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF])
        var expected = header
        expected.payloadLength = 8
        #expect(RTPHeader.parse(bytes) == expected)
        var short = [UInt8](repeating: 0, count: 11)
        #expect(header.write(into: &short) == 0)
    }

    @Test func skipsSourcesExtensionAndPadding() {
        var bytes: [UInt8] = [0xB2, 0x00, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]
        bytes += [0, 0, 0, 9, 0, 0, 0, 8]  // Two contributing sources.
        bytes += [0xBE, 0xDE, 0, 1, 1, 2, 3, 4]  // An extension of one word.
        bytes += [0x11, 0x22, 0x33]
        bytes += [0, 2]  // Padding.
        let header = RTPHeader.parse(bytes)
        #expect(header?.contributingSourceCount == 2)
        #expect(header?.extensionProfile == 0xBEDE)
        #expect(header?.payloadOffset == 28)
        #expect(header?.payloadLength == 3)
        #expect(header?.marker == false)
    }

    @Test(arguments: [
        [UInt8](), [0x80], [0x80, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0],
        [0x40, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],  // Version 1.
        [0xC0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],  // Version 3.
        [0x8F, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],  // 15 sources, none there.
        [0x90, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],  // An extension, none there.
        [0x90, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0xFF, 0xFF],  // An extension longer than the packet.
        [0xA0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],  // Padding of 3 in no payload.
        [0xA0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0],  // Padding of 0.
        [0xA0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 9, 9, 4],  // Padding longer than the payload.
    ])
    func refuses(bytes: [UInt8]) {
        #expect(RTPHeader.parse(bytes) == nil)
    }

    @Test func mutationsStayWithinThePacket() {
        var random = RandomSource.seeded(2)
        var parsed = 0
        for _ in 0..<50_000 {
            var bytes = (0..<Int(random.next() % 64)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            if !bytes.isEmpty, random.next() % 4 != 0 { bytes[0] = 0x80 | bytes[0] & 0x3F }
            guard let header = RTPHeader.parse(bytes) else { continue }
            parsed += 1
            #expect(header.payloadOffset >= 12 && header.payloadLength >= 0)
            #expect(header.payloadOffset + header.payloadLength <= bytes.count)
        }
        #expect(parsed > 3_000)
    }

    @Test func tellsWhatAPacketIs() {
        #expect(PacketKind([0x80, 0x6F]) == .rtp)
        #expect(PacketKind([0x80, 0xEF]) == .rtp)
        #expect(PacketKind([0x80, 200]) == .rtcp)
        #expect(PacketKind([0x81, 201]) == .rtcp)
        #expect(PacketKind([0x81, 205]) == .rtcp)
        #expect(PacketKind([0x80, 191]) == .rtp)
        #expect(PacketKind([0x80, 224]) == .rtp)
        #expect(PacketKind([0x00, 0x01]) == .stun)
        #expect(PacketKind([22, 254]) == .dtls)
        #expect(PacketKind([0xFF, 0]) == .unknown)
        #expect(PacketKind([0x80]) == .unknown)
    }
}

@Suite struct RTPSenderTests {
    @Test func numbersPacketsAndKeepsTheTimestampOfEvents() {
        var sender = RTPSender(payloadType: 111, clockRate: 48_000, random: .seeded(4))
        let first = sender.header(samples: 960, marker: true)
        let second = sender.header(samples: 960)
        #expect(second.sequenceNumber == first.sequenceNumber &+ 1)
        #expect(second.timestamp == first.timestamp &+ 960)
        #expect(first.marker && !second.marker)
        #expect(first.ssrc == second.ssrc)
        #expect(first.sequenceNumber < 0x8000)
        let start = sender.nextTimestamp
        let event = sender.header(payloadType: 101, timestamp: start, marker: true)
        #expect(event.payloadType == 101 && event.timestamp == start)
        #expect(sender.nextTimestamp == start)
        sender.skip(samples: 960)
        #expect(sender.header(samples: 960).timestamp == start &+ 960)
        sender.didSend(payloadBytes: 80)
        #expect(sender.packetCount == 1 && sender.octetCount == 80)
    }

    @Test func startsAtRandom() {
        var seen: Set<UInt32> = []
        for seed in 0..<50 {
            let sender = RTPSender(payloadType: 0, clockRate: 8_000, random: .seeded(UInt64(seed)))
            seen.insert(sender.nextTimestamp)
            seen.insert(sender.ssrc)
        }
        #expect(seen.count == 100)
    }

    @Test func timestampFollowsTheClock() {
        var sender = RTPSender(payloadType: 0, clockRate: 8_000, random: .seeded(1))
        #expect(sender.timestamp(at: .zero) == sender.nextTimestamp)
        let header = sender.header(samples: 160, at: MonotonicTime(nanoseconds: 1_000_000_000))
        #expect(sender.timestamp(at: MonotonicTime(nanoseconds: 1_500_000_000)) == header.timestamp &+ 4_000)
    }
}
