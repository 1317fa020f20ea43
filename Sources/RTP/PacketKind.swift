/// What a datagram on a media port is, told from its first two bytes (RFC 7983, RFC 5761 section 4).
public enum PacketKind: Sendable, Equatable {
    /// RTP.
    case rtp
    /// RTCP.
    case rtcp
    /// A STUN message.
    case stun
    /// A DTLS record.
    case dtls
    /// None of these.
    case unknown

    /// Classifies a datagram. Only the class is certain: the packet must still be parsed.
    public init(_ bytes: Span<UInt8>) {
        guard bytes.count >= 2 else {
            self = .unknown
            return
        }
        switch bytes[0] {
        case 0...3: self = .stun
        case 20...63: self = .dtls
        // RTCP packet types 192 to 223 are RTP payload types 64 to 95 with the marker, which shared ports do not use.
        case 128...191: self = (192...223).contains(bytes[1]) ? .rtcp : .rtp
        default: self = .unknown
        }
    }

    /// Classifies a datagram.
    public init(_ bytes: [UInt8]) {
        self.init(bytes.span)
    }
}
