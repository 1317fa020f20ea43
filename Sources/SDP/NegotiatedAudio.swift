/// What offer and answer agreed on for the one audio stream of a call.
public struct NegotiatedAudio: Equatable, Sendable {
    /// What to send, with the payload type to put on it.
    public var codec: AudioCodec
    /// What may arrive, by payload type, telephone-event among it.
    public var receivePayloadTypes: [UInt8: AudioCodec]
    /// The payload type to send telephone events with; its clock is the codec's. Nil when the peer takes none.
    public var telephoneEventPayloadType: UInt8?
    /// Where to send RTP; numeric, or `0.0.0.0`, `::` or a name under `.invalid` while `direction` does not send.
    public var remoteAddress: String
    /// The port to send RTP to.
    public var remoteRTPPort: UInt16
    /// Where to send RTCP; `remoteAddress` unless RFC 3605's attribute names another.
    public var remoteRTCPAddress: String
    /// The port to send RTCP to, the RTP port with `rtcpMux`; 0 when there is none.
    public var remoteRTCPPort: UInt16
    /// Whether RTP and RTCP share a port (RFC 5761).
    public var rtcpMux: Bool
    /// What this side does.
    public var direction: MediaDirection
    /// Milliseconds of audio to put in a packet: 10, 20, 40 or 60, with G.711 also 30.
    public var ptime: Int
    /// The most milliseconds the peer takes in a packet; nil when it does not say.
    public var maxptime: Int?
    /// The peer's wishes for our Opus encoder; the defaults with another codec.
    public var opus: OpusParameters

    /// Creates an agreement.
    public init(
        codec: AudioCodec, receivePayloadTypes: [UInt8: AudioCodec]? = nil, telephoneEventPayloadType: UInt8? = nil,
        remoteAddress: String, remoteRTPPort: UInt16, remoteRTCPAddress: String? = nil, remoteRTCPPort: UInt16,
        rtcpMux: Bool = false, direction: MediaDirection = .sendrecv, ptime: Int = 20, maxptime: Int? = nil,
        opus: OpusParameters = OpusParameters()
    ) {
        self.codec = codec
        self.receivePayloadTypes = receivePayloadTypes ?? [codec.payloadType: codec]
        self.telephoneEventPayloadType = telephoneEventPayloadType
        self.remoteAddress = remoteAddress
        self.remoteRTPPort = remoteRTPPort
        self.remoteRTCPAddress = remoteRTCPAddress ?? remoteAddress
        self.remoteRTCPPort = remoteRTCPPort
        self.rtcpMux = rtcpMux
        self.direction = direction
        self.ptime = ptime
        self.maxptime = maxptime
        self.opus = opus
    }

    /// Whether the peer makes use of in-band forward error correction.
    public var useInbandFEC: Bool { opus.useInbandFEC }
    /// Whether the peer asks for discontinuous transmission.
    public var useDTX: Bool { opus.useDTX }
    /// The highest average bit rate the peer wants, in bits a second.
    public var maxAverageBitrate: Int? { opus.maxAverageBitrate }
    /// Whether the peer prefers stereo.
    public var stereo: Bool { opus.stereo }
    /// Whether the peer asks for a constant bit rate.
    public var cbr: Bool { opus.cbr }
}

/// Why two sides do not come to terms.
public struct SDPNegotiationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Code: String, Sendable {
        /// The body is no session description (400).
        case malformed
        /// No audio stream, or only removed ones (488).
        case noAudio
        /// Audio, but no codec that both sides have (488).
        case noCommonCodec
        /// Audio only over a profile that is not supported, such as SRTP (488).
        case unsupportedProfile
        /// An address or port that media cannot or must not be sent to (488).
        case unusableAddress
        /// The peer's answer refuses the stream (488).
        case rejected
        /// An offer arrived while ours is not answered (491, RFC 3261 section 14.2).
        case offerPending
        /// An answer without an offer (400).
        case unexpectedAnswer
    }

    /// The kind of failure.
    public var code: Code
    /// The SIP status to refuse an offer with.
    public var status: Int
    /// What failed and why.
    public var reason: String

    /// Creates an error with the code's status.
    public init(code: Code, reason: String) {
        self.code = code
        self.reason = reason
        switch code {
        case .malformed, .unexpectedAnswer: status = 400
        case .offerPending: status = 491
        case .noAudio, .noCommonCodec, .unsupportedProfile, .unusableAddress, .rejected: status = 488
        }
    }

    /// One line for people.
    public var description: String { reason }
}
