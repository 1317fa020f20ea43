/// An audio format: a payload type and what it stands for (RFC 8866 section 6.6).
public struct AudioCodec: Equatable, Sendable {
    /// The encoding's name: `opus`, `PCMU`, `PCMA`, `telephone-event`; compare with `isSameFormat(as:)`.
    public var name: String
    /// Timestamp units a second.
    public var clockRate: Int
    /// Channels on the wire; Opus always says 2 (RFC 7587 section 7).
    public var channels: Int
    /// The number in the RTP header, 0 to 127.
    public var payloadType: UInt8
    /// The value of `a=fmtp` without the payload type.
    public var formatParameters: String?

    /// Creates a codec.
    public init(name: String, clockRate: Int, channels: Int = 1, payloadType: UInt8, formatParameters: String? = nil) {
        self.name = name
        self.clockRate = clockRate
        self.channels = channels
        self.payloadType = payloadType
        self.formatParameters = formatParameters
    }

    /// Whether this is RFC 4733's telephone-event and no audio.
    public var isTelephoneEvent: Bool { name.lowercased() == "telephone-event" }

    /// Whether this is Opus.
    public var isOpus: Bool { name.lowercased() == "opus" }

    /// Whether both are the same encoding at the same clock, whatever their payload types.
    ///
    /// Names are case-insensitive. Opus matches whatever the number of channels says: RFC 7587 fixes it to 2, some
    /// peers leave it out, and the stream does not depend on it.
    public func isSameFormat(as other: AudioCodec) -> Bool {
        guard name.lowercased() == other.name.lowercased(), clockRate == other.clockRate else { return false }
        return isOpus || channels == other.channels
    }

    /// The value of `a=rtpmap`.
    var mapping: String {
        channels == 1 ? "\(payloadType) \(name)/\(clockRate)" : "\(payloadType) \(name)/\(clockRate)/\(channels)"
    }

    /// The codecs whose payload type is fixed, so that an offer may leave out `a=rtpmap` (RFC 3551 section 6).
    static func staticCodec(_ payloadType: UInt8) -> AudioCodec? {
        switch payloadType {
        case 0: AudioCodec(name: "PCMU", clockRate: 8_000, payloadType: 0)
        case 8: AudioCodec(name: "PCMA", clockRate: 8_000, payloadType: 8)
        default: nil
        }
    }
}

/// What this side can do with audio.
public struct AudioCapabilities: Equatable, Sendable {
    /// The codecs in order of preference, telephone-event among them; payload types are those of our offers.
    public var codecs: [AudioCodec]
    /// Milliseconds of audio in a packet that we ask for.
    public var ptime: Int
    /// The most milliseconds in a packet that we take.
    public var maxptime: Int
    /// What we want to do where a call does not say otherwise.
    public var direction: MediaDirection
    /// Whether RTP and RTCP may share a port (RFC 5761).
    public var rtcpMux: Bool

    /// Creates capabilities.
    public init(
        codecs: [AudioCodec], ptime: Int = 20, maxptime: Int = 60, direction: MediaDirection = .sendrecv,
        rtcpMux: Bool = true
    ) {
        self.codecs = codecs
        self.ptime = ptime
        self.maxptime = maxptime
        self.direction = direction
        self.rtcpMux = rtcpMux
    }

    /// Opus before G.711, telephone-event at both clocks.
    public static let `default` = AudioCapabilities(codecs: [
        AudioCodec(
            name: "opus", clockRate: 48_000, channels: 2, payloadType: 111,
            formatParameters: "minptime=10;useinbandfec=1;maxaveragebitrate=32000"),
        AudioCodec(name: "PCMU", clockRate: 8_000, payloadType: 0),
        AudioCodec(name: "PCMA", clockRate: 8_000, payloadType: 8),
        AudioCodec(name: "telephone-event", clockRate: 48_000, payloadType: 110, formatParameters: "0-15"),
        AudioCodec(name: "telephone-event", clockRate: 8_000, payloadType: 101, formatParameters: "0-15"),
    ])
}

/// Where this side receives.
public struct LocalMedia: Equatable, Sendable {
    /// The numeric address that the peer sends to.
    public var address: String
    /// The port for RTP.
    public var rtpPort: UInt16
    /// The port for RTCP; the same as `rtpPort` when there is only one socket.
    public var rtcpPort: UInt16

    /// Creates the place.
    public init(address: String, rtpPort: UInt16, rtcpPort: UInt16) {
        self.address = address
        self.rtpPort = rtpPort
        self.rtcpPort = rtcpPort
    }
}
