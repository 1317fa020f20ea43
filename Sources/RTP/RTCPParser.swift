/// Why a datagram is no RTCP compound.
public struct RTCPParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong.
    public var reason: String
    /// The packet it was found in, as a byte offset.
    public var offset: Int

    /// One line for people.
    public var description: String { "RTCP at byte \(offset): \(reason)" }
}

extension RTCPPacket {
    /// Reads a compound packet, checked as RFC 3550 appendix A.2 asks: version 2 throughout, lengths that add up,
    /// padding on the last packet only.
    ///
    /// - Parameter allowsReducedSize: Whether the compound may begin with other than a report (RFC 5506).
    public static func parseCompound(
        _ bytes: Span<UInt8>, allowsReducedSize: Bool = false
    ) throws(RTCPParseError) -> [RTCPPacket] {
        guard bytes.count >= 4 else { throw RTCPParseError(reason: "shorter than a header", offset: 0) }
        var packets: [RTCPPacket] = []
        var offset = 0
        while offset < bytes.count {
            guard bytes.count - offset >= 4 else { throw RTCPParseError(reason: "a header is cut off", offset: offset) }
            let first = bytes[offset]
            let type = bytes[offset + 1]
            let length = 4 + 4 * Int(bytes.bigEndian16(at: offset + 2))
            guard first >> 6 == 2 else { throw RTCPParseError(reason: "version is not 2", offset: offset) }
            guard length <= bytes.count - offset else {
                throw RTCPParseError(reason: "claims \(length) bytes of \(bytes.count - offset)", offset: offset)
            }
            if offset == 0, !allowsReducedSize, type != 200, type != 201 {
                throw RTCPParseError(reason: "begins with type \(type), no report", offset: offset)
            }
            var end = offset + length
            if first & 0x20 != 0 {
                guard end == bytes.count else { throw RTCPParseError(reason: "padding before the end", offset: offset) }
                let padding = Int(bytes[end - 1])
                guard padding > 0, padding % 4 == 0, padding <= length - 4 else {
                    throw RTCPParseError(reason: "\(padding) bytes of padding in \(length)", offset: offset)
                }
                end -= padding
            }
            let body = bytes.extracting((offset + 4)..<end)
            guard let packet = RTCPPacket(type: type, count: first & 0x1F, body: body) else {
                throw RTCPParseError(reason: "type \(type) is shorter than its count claims", offset: offset)
            }
            packets.append(packet)
            offset += length
        }
        return packets
    }

    /// Reads a compound packet.
    public static func parseCompound(
        _ bytes: [UInt8], allowsReducedSize: Bool = false
    ) throws(RTCPParseError) -> [RTCPPacket] {
        try parseCompound(bytes.span, allowsReducedSize: allowsReducedSize)
    }

    private init?(type: UInt8, count: UInt8, body: Span<UInt8>) {
        switch type {
        case 200:
            guard body.count >= 24, let blocks = RTCPReportBlock.parse(body, at: 24, count: count) else { return nil }
            self = .senderReport(
                RTCPSenderReport(
                    ssrc: body.bigEndian32(at: 0),
                    ntpTimestamp: NTPTimestamp(
                        rawValue: UInt64(body.bigEndian32(at: 4)) << 32 | UInt64(body.bigEndian32(at: 8))),
                    rtpTimestamp: body.bigEndian32(at: 12), packetCount: body.bigEndian32(at: 16),
                    octetCount: body.bigEndian32(at: 20), blocks: blocks))
        case 201:
            guard body.count >= 4, let blocks = RTCPReportBlock.parse(body, at: 4, count: count) else { return nil }
            self = .receiverReport(RTCPReceiverReport(ssrc: body.bigEndian32(at: 0), blocks: blocks))
        case 202:
            guard let chunks = RTCPSourceDescription.parse(body, count: count) else { return nil }
            self = .sourceDescription(chunks)
        case 203:
            guard let goodbye = RTCPGoodbye(body, count: count) else { return nil }
            self = .goodbye(goodbye)
        default:
            self = .other(type: type, count: count, body: body.bytes(0..<body.count))
        }
    }
}

extension RTCPReportBlock {
    fileprivate static func parse(_ body: Span<UInt8>, at start: Int, count: UInt8) -> [RTCPReportBlock]? {
        guard body.count >= start + 24 * Int(count) else { return nil }
        var blocks: [RTCPReportBlock] = []
        blocks.reserveCapacity(Int(count))
        for index in 0..<Int(count) {
            let offset = start + 24 * index
            var block = RTCPReportBlock(ssrc: body.bigEndian32(at: offset))
            let loss = body.bigEndian32(at: offset + 4)
            block.fractionLost = UInt8(truncatingIfNeeded: loss >> 24)
            // The lower 24 bits are signed: shifted up and down again, the sign spreads.
            block.cumulativeLost = Int32(bitPattern: loss << 8) >> 8
            block.extendedHighestSequence = body.bigEndian32(at: offset + 8)
            block.jitter = body.bigEndian32(at: offset + 12)
            block.lastSenderReport = body.bigEndian32(at: offset + 16)
            block.delaySinceLastSenderReport = body.bigEndian32(at: offset + 20)
            blocks.append(block)
        }
        return blocks
    }
}

extension RTCPSourceDescription {
    fileprivate static func parse(_ body: Span<UInt8>, count: UInt8) -> [RTCPSourceDescription]? {
        var chunks: [RTCPSourceDescription] = []
        var offset = 0
        for _ in 0..<count {
            guard body.count - offset >= 4 else { return nil }
            var chunk = RTCPSourceDescription(ssrc: body.bigEndian32(at: offset), items: [])
            offset += 4
            // The list ends with one null byte at least, then nulls up to the next word.
            while true {
                guard offset < body.count else { return nil }
                let type = body[offset]
                if type == 0 { break }
                guard offset + 1 < body.count else { return nil }
                let end = offset + 2 + Int(body[offset + 1])
                guard end <= body.count else { return nil }
                let text = String(decoding: body.bytes((offset + 2)..<end), as: UTF8.self)
                chunk.items.append(Item(type: type, text: text))
                offset = end
            }
            offset = (offset / 4 + 1) * 4
            guard offset <= body.count else { return nil }
            chunks.append(chunk)
        }
        return chunks
    }
}

extension RTCPGoodbye {
    fileprivate init?(_ body: Span<UInt8>, count: UInt8) {
        let end = 4 * Int(count)
        guard body.count >= end else { return nil }
        sources = []
        for index in 0..<Int(count) { sources.append(body.bigEndian32(at: 4 * index)) }
        if body.count > end {
            let length = Int(body[end])
            guard end + 1 + length <= body.count else { return nil }
            reason = String(decoding: body.bytes((end + 1)..<(end + 1 + length)), as: UTF8.self)
        }
    }
}

extension Span<UInt8> {
    /// A copy of part of the bytes; the caller has checked the range.
    func bytes(_ range: Range<Int>) -> [UInt8] {
        var copy: [UInt8] = []
        copy.reserveCapacity(range.count)
        for index in range { copy.append(self[index]) }
        return copy
    }
}
