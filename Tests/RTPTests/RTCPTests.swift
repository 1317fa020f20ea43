import Primitives
import Testing

@testable import RTP

private func block(_ ssrc: UInt32, lost: Int32) -> RTCPReportBlock {
    var block = RTCPReportBlock(ssrc: ssrc)
    block.fractionLost = 200
    block.cumulativeLost = lost
    block.extendedHighestSequence = 0x0001_FFFF
    block.jitter = 77
    block.lastSenderReport = 0xAABB_CCDD
    block.delaySinceLastSenderReport = 0x1_0000
    return block
}

private func reason(_ bytes: [UInt8]) -> String? {
    do {
        _ = try RTCPPacket.parseCompound(bytes)
        return nil
    } catch {
        return error.reason
    }
}

private let compound: [RTCPPacket] = [
    .senderReport(
        RTCPSenderReport(
            ssrc: 7, ntpTimestamp: NTPTimestamp(rawValue: 0x0123_4567_89AB_CDEF), rtpTimestamp: 1, packetCount: 2,
            octetCount: 3, blocks: [block(9, lost: -5), block(10, lost: 0x7F_FFFF)])),
    .sourceDescription([
        RTCPSourceDescription(ssrc: 7, canonicalName: "abc"),
        RTCPSourceDescription(ssrc: 8, items: [.init(type: 1, text: "abcdef"), .init(type: 6, text: "")]),
    ]),
    .other(type: 206, count: 15, body: [1, 2, 3, 4]),
    .goodbye(RTCPGoodbye(sources: [7, 8], reason: "done")),
]

@Suite struct RTCPTests {
    @Test func compoundsComeBackAsTheyWere() throws {
        let bytes = RTCPPacket.encodeCompound(compound)
        #expect(bytes.count % 4 == 0)
        #expect(try RTCPPacket.parseCompound(bytes) == compound)
        let report: [RTCPPacket] = [.receiverReport(RTCPReceiverReport(ssrc: 1, blocks: [block(2, lost: -0x80_0000)]))]
        #expect(try RTCPPacket.parseCompound(RTCPPacket.encodeCompound(report)) == report)
    }

    @Test func bytesOfAReceiverReport() {
        let bytes = RTCPPacket.encodeCompound([
            .receiverReport(RTCPReceiverReport(ssrc: 0x0102_0304, blocks: [block(5, lost: -1)]))
        ])
        let expected: [UInt8] = [
            0x81, 201, 0, 7, 1, 2, 3, 4, 0, 0, 0, 5, 200, 0xFF, 0xFF, 0xFF, 0, 1, 0xFF, 0xFF, 0, 0, 0, 77,
            0xAA, 0xBB, 0xCC, 0xDD, 0, 1, 0, 0,
        ]
        #expect(bytes == expected)
    }

    @Test func thirtyOneReportsAreTheMost() throws {
        let many = (0..<40).map { block(UInt32($0), lost: 0) }
        let bytes = RTCPPacket.encodeCompound([.receiverReport(RTCPReceiverReport(ssrc: 1, blocks: many))])
        guard case .receiverReport(let report) = try RTCPPacket.parseCompound(bytes).first else {
            Issue.record("no report")
            return
        }
        #expect(report.blocks == Array(many.prefix(31)))
    }

    @Test func lossBeyond24BitsIsHeld() throws {
        for (lost, expected) in [(Int32.max, Int32(0x7F_FFFF)), (.min, -0x80_0000)] {
            let bytes = RTCPPacket.encodeCompound([
                .receiverReport(RTCPReceiverReport(ssrc: 1, blocks: [block(2, lost: lost)]))
            ])
            guard case .receiverReport(let report) = try RTCPPacket.parseCompound(bytes).first else { continue }
            #expect(report.blocks.first?.cumulativeLost == expected)
        }
    }

    @Test(arguments: [
        [UInt8](), [0x80, 201, 0],
        [0x00, 201, 0, 1, 0, 0, 0, 1],  // Version 0.
        [0x80, 201, 0, 2, 0, 0, 0, 1],  // Longer than the datagram.
        [0x80, 201, 0xFF, 0xFF, 0, 0, 0, 1],
        [0x80, 201, 0, 0],  // No room for the source.
        [0x81, 201, 0, 1, 0, 0, 0, 1],  // One block, none there.
        [0x9F, 201, 0, 7] + [UInt8](repeating: 0, count: 28),  // 31 blocks in the room of one.
        [0x80, 200, 0, 1, 0, 0, 0, 1],  // A sender report without its numbers.
        [0x80, 202, 0, 0],  // Begins with no report.
        [0x80, 201, 0, 1, 0, 0, 0, 1, 0x80, 202],  // Something cut off at the end.
        [0x80, 201, 0, 1, 0, 0, 0, 1, 0x81, 202, 0, 1, 0, 0, 0, 1],  // Items without an end.
        [0x80, 201, 0, 1, 0, 0, 0, 1, 0x81, 202, 0, 2, 0, 0, 0, 1, 1, 200, 65, 0],  // An item that is too long.
        [0x80, 201, 0, 1, 0, 0, 0, 1, 0x82, 203, 0, 1, 0, 0, 0, 1],  // Two sources, one there.
        [0x80, 201, 0, 1, 0, 0, 0, 1, 0x80, 203, 0, 1, 9, 65, 65, 65],  // A reason that is too long.
        [0xA0, 201, 0, 1, 0, 0, 0, 1, 0x80, 203, 0, 0],  // Padding before the end.
        [0xA0, 201, 0, 1, 0, 0, 0, 1],  // Padding of 1.
        [0xA0, 201, 0, 1, 0, 0, 0, 8],  // Padding of more than the packet.
        [0xA0, 201, 0, 0],
    ])
    func refuses(bytes: [UInt8]) {
        #expect(reason(bytes) != nil)
    }

    @Test func takesPaddingAtTheEndAndReducedSize() throws {
        let bytes: [UInt8] = [0x80, 201, 0, 1, 0, 0, 0, 1, 0xA1, 203, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4]
        #expect(try RTCPPacket.parseCompound(bytes).last == .goodbye(RTCPGoodbye(sources: [1])))
        #expect(try RTCPPacket.parseCompound([0x80, 203, 0, 0], allowsReducedSize: true).count == 1)
    }

    @Test func mutationsNeverTrapAndWhatIsReadCanBeWritten() throws {
        var random = RandomSource.seeded(6)
        let original = RTCPPacket.encodeCompound(compound)
        var parsed = 0
        for _ in 0..<50_000 {
            var bytes = original
            for _ in 0...(random.next() % 4) {
                let position = Int(random.next() % UInt64(bytes.count))
                switch random.next() % 3 {
                case 0: bytes[position] = UInt8(truncatingIfNeeded: random.next())
                case 1: bytes.removeSubrange(position..<min(bytes.count, position + 4))
                default: bytes.insert(contentsOf: [0x9F, 200, 0, 1], at: position)
                }
                if bytes.isEmpty { bytes = original }
            }
            guard let packets = try? RTCPPacket.parseCompound(bytes, allowsReducedSize: true) else { continue }
            parsed += 1
            // Texts that are no UTF-8 grow when repaired, so only the kinds are compared.
            let again = try RTCPPacket.parseCompound(RTCPPacket.encodeCompound(packets), allowsReducedSize: true)
            #expect(again.count == packets.count)
        }
        #expect(parsed > 1_000)
    }

    @Test func roundTripTime() {
        // The example of RFC 3550 figure 2: 10.125 s, 6.125 s of them on the way.
        var example = RTCPReportBlock(ssrc: 1)
        example.lastSenderReport = 0xB705_2000
        example.delaySinceLastSenderReport = 0x0005_4000
        let arrival = NTPTimestamp(rawValue: 0xB710_8000 << 16)
        #expect(example.roundTripTime(arrival: arrival) == .milliseconds(6_125))
        example.delaySinceLastSenderReport = 0x000C_0000
        #expect(example.roundTripTime(arrival: arrival) == nil)
        example.delaySinceLastSenderReport = 0x000B_6001
        #expect(example.roundTripTime(arrival: arrival) == .zero)
        example.lastSenderReport = 0
        #expect(example.roundTripTime(arrival: arrival) == nil)
    }

    @Test func ntpTimestamps() {
        #expect(NTPTimestamp(unixNanoseconds: 0).rawValue == 0x83AA_7E80_0000_0000)
        #expect(NTPTimestamp(unixNanoseconds: 1_500_000_000).rawValue == 0x83AA_7E81_8000_0000)
        #expect(NTPTimestamp(unixNanoseconds: -500_000_000).rawValue == 0x83AA_7E7F_8000_0000)
        #expect(NTPTimestamp.shortUnits(.seconds(-1)) == 0)
        #expect(NTPTimestamp.shortUnits(.seconds(70_000)) == .max)
    }

    @Test func reportsAreRandomAroundFiveSecondsAndHalfAtFirst() {
        var sum = 0.0
        for seed in 0..<200 {
            var scheduler = RTCPScheduler(random: .seeded(UInt64(seed)))
            #expect(scheduler.nextReport == nil)
            scheduler.start(at: .zero)
            guard let first = scheduler.nextReport else { continue }
            #expect(first > MonotonicTime(nanoseconds: 1_000_000_000))
            #expect(first < MonotonicTime(nanoseconds: 3_100_000_000))
            scheduler.didReceive(bytes: 100)
            scheduler.didSend(bytes: 100, at: first)
            guard let second = scheduler.nextReport else { continue }
            let interval = (second - first).seconds
            #expect(interval > 2.0 && interval < 6.2)
            sum += interval
            scheduler.stop()
            #expect(scheduler.nextReport == nil)
        }
        #expect(abs(sum / 200 - 5 / 1.21828) < 0.25)
    }
}
