/// The fixed header of an RTP packet and where its payload lies, RFC 3550 section 5.1.
public struct RTPHeader: Equatable, Sendable {
    /// The length without contributing sources and extension.
    public static let minimumLength = 12

    /// With audio: the first packet after silence (RFC 3551 section 4.1).
    public var marker: Bool
    /// What the payload is, 0 to 127.
    public var payloadType: UInt8
    /// Rises by one for each packet.
    public var sequenceNumber: UInt16
    /// The sampling instant of the payload's first sample, in the payload's clock.
    public var timestamp: UInt32
    /// The source of the stream.
    public var ssrc: UInt32
    /// How many contributing sources the header lists.
    public var contributingSourceCount: Int
    /// The profile-defined identifier of the header extension; nil without one.
    public var extensionProfile: UInt16?
    /// Where the payload begins in the packet, in bytes.
    public var payloadOffset: Int
    /// The payload's length in bytes, without padding.
    public var payloadLength: Int

    /// Creates a header without contributing sources or extension.
    public init(
        marker: Bool = false, payloadType: UInt8, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32,
        payloadLength: Int = 0
    ) {
        self.marker = marker
        self.payloadType = payloadType & 0x7F
        self.sequenceNumber = sequenceNumber
        self.timestamp = timestamp
        self.ssrc = ssrc
        contributingSourceCount = 0
        extensionProfile = nil
        payloadOffset = RTPHeader.minimumLength
        self.payloadLength = payloadLength
    }

    /// Reads the header of a datagram; nil when it is no RTP packet.
    ///
    /// Checked as RFC 3550 appendix A.1 asks: version 2, room for what the header claims (contributing sources,
    /// extension, padding), padding not empty and not longer than the payload.
    public static func parse(_ bytes: Span<UInt8>) -> RTPHeader? {
        guard bytes.count >= minimumLength, bytes[0] >> 6 == 2 else { return nil }
        let sources = Int(bytes[0] & 0x0F)
        var header = RTPHeader(
            marker: bytes[1] & 0x80 != 0, payloadType: bytes[1], sequenceNumber: bytes.bigEndian16(at: 2),
            timestamp: bytes.bigEndian32(at: 4), ssrc: bytes.bigEndian32(at: 8))
        header.contributingSourceCount = sources
        var offset = minimumLength + 4 * sources
        guard bytes.count >= offset else { return nil }
        if bytes[0] & 0x10 != 0 {
            guard bytes.count >= offset + 4 else { return nil }
            header.extensionProfile = bytes.bigEndian16(at: offset)
            offset += 4 + 4 * Int(bytes.bigEndian16(at: offset + 2))
            guard bytes.count >= offset else { return nil }
        }
        var end = bytes.count
        if bytes[0] & 0x20 != 0 {
            let padding = Int(bytes[end - 1])
            guard padding > 0, padding <= end - offset else { return nil }
            end -= padding
        }
        header.payloadOffset = offset
        header.payloadLength = end - offset
        return header
    }

    /// Reads the header of a datagram; nil when it is no RTP packet.
    public static func parse(_ bytes: [UInt8]) -> RTPHeader? {
        parse(bytes.span)
    }

    /// Writes the twelve bytes of a header without contributing sources or extension.
    ///
    /// - Returns: 12, or 0 when there is no room.
    public func write(into bytes: inout MutableSpan<UInt8>) -> Int {
        guard bytes.count >= RTPHeader.minimumLength else { return 0 }
        bytes[0] = 0x80
        bytes[1] = (marker ? 0x80 : 0) | (payloadType & 0x7F)
        bytes.setBigEndian16(sequenceNumber, at: 2)
        bytes.setBigEndian32(timestamp, at: 4)
        bytes.setBigEndian32(ssrc, at: 8)
        return RTPHeader.minimumLength
    }

    /// Writes the header to the front of an array that has room for it.
    ///
    /// - Returns: 12, or 0 when there is no room.
    public func write(into bytes: inout [UInt8]) -> Int {
        var span = bytes.mutableSpan
        return write(into: &span)
    }
}
