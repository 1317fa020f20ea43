/// One `m=` line with what belongs to it, RFC 8866 section 5.14.
public struct MediaDescription: Equatable, Sendable {
    /// `audio`, `video`, `application`, …
    public var media: String
    /// Where it is received; 0 for a stream that is refused or removed (RFC 3264 sections 6 and 8.2).
    public var port: UInt16
    /// How many ports from `port` on; nil when not written.
    public var portCount: Int?
    /// The transport profile, such as `RTP/AVP`.
    public var profile: String
    /// The formats as written: payload types for RTP profiles.
    public var formats: [String]
    /// Connection data of this stream; more than one is meant for layered multicast only.
    public var connections: [SDPConnection]
    /// Bandwidth limits.
    public var bandwidth: [SDPBandwidth]
    /// Attributes in order.
    public var attributes: [SDPAttribute]
    /// Lines of other types (`i=`, `k=`, unknown), in order.
    public var otherLines: [SDPLine]

    /// Creates a media description.
    public init(
        media: String, port: UInt16, portCount: Int? = nil, profile: String, formats: [String],
        connections: [SDPConnection] = [], bandwidth: [SDPBandwidth] = [], attributes: [SDPAttribute] = [],
        otherLines: [SDPLine] = []
    ) {
        self.media = media
        self.port = port
        self.portCount = portCount
        self.profile = profile
        self.formats = formats
        self.connections = connections
        self.bandwidth = bandwidth
        self.attributes = attributes
        self.otherLines = otherLines
    }

    /// The same stream refused: port 0, profile and formats as they were (RFC 3264 section 6).
    public var rejected: MediaDescription {
        MediaDescription(media: media, port: 0, profile: profile, formats: formats)
    }

    /// Whether a property attribute of this name is present.
    public func hasAttribute(_ name: String) -> Bool {
        attributes.contains { $0.name == name }
    }

    /// The value of the first attribute of this name.
    public func attribute(_ name: String) -> String? {
        attributes.first { $0.name == name }?.value
    }
}

/// Who sends in a stream, RFC 8866 section 6.7, seen from the side that wrote it.
public enum MediaDirection: String, Sendable, Equatable {
    /// Both ways.
    case sendrecv
    /// The writer only sends: it holds the other side.
    case sendonly
    /// The writer only receives.
    case recvonly
    /// Nothing flows.
    case inactive

    /// Creates a direction from whether each way is open.
    public init(sends: Bool, receives: Bool) {
        switch (sends, receives) {
        case (true, true): self = .sendrecv
        case (true, false): self = .sendonly
        case (false, true): self = .recvonly
        case (false, false): self = .inactive
        }
    }

    /// Whether the writer sends.
    public var sends: Bool { self == .sendrecv || self == .sendonly }

    /// Whether the writer receives.
    public var receives: Bool { self == .sendrecv || self == .recvonly }

    /// The same stream seen from the other side.
    public var reversed: MediaDirection { MediaDirection(sends: receives, receives: sends) }

    /// What both this and `other` allow.
    public func limited(to other: MediaDirection) -> MediaDirection {
        MediaDirection(sends: sends && other.sends, receives: receives && other.receives)
    }
}
