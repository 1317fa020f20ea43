extension RTCPPacket {
    /// Writes a compound packet. The first should be a report, followed by a source description with the canonical
    /// name (RFC 3550 section 6.1).
    ///
    /// Counts beyond what the header's five bits can say (31) and texts beyond 255 bytes are cut.
    public static func encodeCompound(_ packets: [RTCPPacket]) -> [UInt8] {
        var bytes: [UInt8] = []
        for packet in packets { packet.write(to: &bytes) }
        return bytes
    }

    private func write(to bytes: inout [UInt8]) {
        let start = bytes.count
        bytes.append(contentsOf: [0, 0, 0, 0])
        let type: UInt8
        var count = 0
        switch self {
        case .senderReport(let report):
            type = 200
            bytes.appendBigEndian(report.ssrc)
            bytes.appendBigEndian(UInt32(truncatingIfNeeded: report.ntpTimestamp.rawValue >> 32))
            bytes.appendBigEndian(UInt32(truncatingIfNeeded: report.ntpTimestamp.rawValue))
            bytes.appendBigEndian(report.rtpTimestamp)
            bytes.appendBigEndian(report.packetCount)
            bytes.appendBigEndian(report.octetCount)
            count = Self.write(report.blocks, to: &bytes)
        case .receiverReport(let report):
            type = 201
            bytes.appendBigEndian(report.ssrc)
            count = Self.write(report.blocks, to: &bytes)
        case .sourceDescription(let chunks):
            type = 202
            count = min(chunks.count, 31)
            for chunk in chunks.prefix(31) {
                bytes.appendBigEndian(chunk.ssrc)
                for item in chunk.items where item.type != 0 {
                    bytes.append(item.type)
                    Self.write(item.text, to: &bytes)
                }
                bytes.append(0)
                Self.pad(&bytes, from: start)
            }
        case .goodbye(let goodbye):
            type = 203
            count = min(goodbye.sources.count, 31)
            for source in goodbye.sources.prefix(31) { bytes.appendBigEndian(source) }
            if let reason = goodbye.reason {
                Self.write(reason, to: &bytes)
                Self.pad(&bytes, from: start)
            }
        case .other(let otherType, let otherCount, let body):
            type = otherType
            count = Int(otherCount & 0x1F)
            bytes.append(contentsOf: body.prefix(4 * 0xFFFF))
            Self.pad(&bytes, from: start)
        }
        let words = UInt16(clamping: (bytes.count - start) / 4 - 1)
        bytes[start] = 0x80 | UInt8(truncatingIfNeeded: count)
        bytes[start + 1] = type
        bytes[start + 2] = UInt8(truncatingIfNeeded: words >> 8)
        bytes[start + 3] = UInt8(truncatingIfNeeded: words)
    }

    private static func write(_ blocks: [RTCPReportBlock], to bytes: inout [UInt8]) -> Int {
        for block in blocks.prefix(31) {
            bytes.appendBigEndian(block.ssrc)
            let lost = min(max(block.cumulativeLost, -0x80_0000), 0x7F_FFFF)
            bytes.appendBigEndian(UInt32(block.fractionLost) << 24 | UInt32(bitPattern: lost) & 0xFF_FFFF)
            bytes.appendBigEndian(block.extendedHighestSequence)
            bytes.appendBigEndian(block.jitter)
            bytes.appendBigEndian(block.lastSenderReport)
            bytes.appendBigEndian(block.delaySinceLastSenderReport)
        }
        return min(blocks.count, 31)
    }

    private static func write(_ text: String, to bytes: inout [UInt8]) {
        let cut = text.utf8.prefix(255)
        bytes.append(UInt8(clamping: cut.count))
        bytes.append(contentsOf: cut)
    }

    private static func pad(_ bytes: inout [UInt8], from start: Int) {
        while (bytes.count - start) % 4 != 0 { bytes.append(0) }
    }
}
