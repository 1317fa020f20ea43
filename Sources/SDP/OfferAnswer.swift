/// One call's negotiation, RFC 3264: makes our offers and answers, judges the peer's.
///
/// A value: a fork of a call copies it for each early dialog. A method that throws leaves everything as it was, so a
/// refused re-offer does not touch the running session. One audio stream is negotiated; every other stream of an
/// offer is refused with port 0 in its place.
public struct OfferAnswer: Sendable {
    /// What we offer and accept; changes take effect with the next offer or answer.
    public var capabilities: AudioCapabilities
    /// Where we receive; changes take effect with the next offer or answer.
    public var local: LocalMedia

    /// Whether our latest offer still waits for its answer.
    public var hasPendingOffer: Bool { offer?.isAnswered == false }

    /// The latest agreement; nil before the first.
    public private(set) var agreed: NegotiatedAudio?

    private struct Offer {
        var codecs: [AudioCodec]
        var direction: MediaDirection
        var rtcpMux: Bool
        var isAnswered = false
        /// What an abandoned offer goes back to.
        var previousStreams: [MediaDescription]
        var previousAudioIndex: Int?
    }

    private let sessionID: UInt64
    private var version: UInt64 = 1
    private var lastSent: SessionDescription?
    private var streams: [MediaDescription] = []
    private var audioIndex: Int?
    private var payloadTypes = PayloadTypeMap()
    private var offer: Offer?

    /// Starts a negotiation.
    ///
    /// - Parameter sessionID: Should be random. Its upper two bits are cleared, because peers exist that read the
    ///   number into a signed 64-bit integer.
    public init(sessionID: UInt64, capabilities: AudioCapabilities, local: LocalMedia) {
        self.sessionID = sessionID & (1 << 62 - 1)
        self.capabilities = capabilities
        self.local = local
    }

    // MARK: Our offer

    /// Makes an offer: the first one, or one that changes the running session (hold, resume, a new address).
    ///
    /// The codec in use comes first, so that a hold does not change it.
    public mutating func makeOffer(direction: MediaDirection = .sendrecv) -> [UInt8] {
        if hasPendingOffer { abandonOffer() }
        var codecs = payloadTypes.assign(capabilities.codecs)
        if let current = agreed?.codec, let index = codecs.firstIndex(where: { $0.isSameFormat(as: current) }) {
            codecs.insert(codecs.remove(at: index), at: 0)
        }
        let newOffer = Offer(
            codecs: codecs, direction: direction, rtcpMux: capabilities.rtcpMux, previousStreams: streams,
            previousAudioIndex: audioIndex)
        var profile = "RTP/AVP"
        if let audioIndex { profile = streams[audioIndex].profile }
        let audio = audioDescription(
            codecs: codecs, profile: profile, direction: direction, rtcpMux: capabilities.rtcpMux,
            ptime: capabilities.ptime)
        streams = streams.map(\.rejected)
        if let audioIndex {
            streams[audioIndex] = audio
        } else {
            audioIndex = streams.count
            streams.append(audio)
        }
        offer = newOffer
        return encode()
    }

    /// Forgets our unanswered offer: the peer refused it (RFC 3264 section 5: the session stays as it was).
    public mutating func abandonOffer() {
        guard let pending = offer, !pending.isAnswered else { return }
        streams = pending.previousStreams
        audioIndex = pending.previousAudioIndex
        offer = nil
    }

    /// Takes the answer to our latest offer.
    ///
    /// May be called again for the same offer: provisional and final responses may carry different answers, each
    /// judged alone.
    public mutating func receiveAnswer(_ sdp: [UInt8]) throws(SDPNegotiationError) -> NegotiatedAudio {
        guard let offer, let audioIndex else {
            throw SDPNegotiationError(code: .unexpectedAnswer, reason: "an SDP answer arrived without an offer")
        }
        let session = try Self.parse(sdp)
        guard session.media.indices.contains(audioIndex), session.media[audioIndex].media == "audio" else {
            throw SDPNegotiationError(
                code: .noAudio, reason: "the answer has no audio stream in the place of the offered one")
        }
        let media = session.media[audioIndex]
        guard media.port != 0 else {
            throw SDPNegotiationError(code: .rejected, reason: "the answer refuses the audio stream")
        }
        let remote = try RemoteAudio(media, in: session, localAddress: local.address)
        let muxed = offer.rtcpMux && remote.rtcpMux
        let common = Self.common(remote, with: offer.codecs, rtcpMux: muxed)
        guard let first = common.first(where: { !$0.mine.isTelephoneEvent }) else {
            throw SDPNegotiationError(code: .noCommonCodec, reason: "the answer has none of the offered codecs")
        }
        var receive: [UInt8: AudioCodec] = [:]
        for match in common { receive[match.mine.payloadType] = match.mine }
        // The peer should send with our numbers, but some send with those of their answer.
        for match in common where receive[match.theirs.payloadType] == nil {
            receive[match.theirs.payloadType] = match.theirs
        }
        let result = negotiated(
            remote, codec: first.theirs, receive: receive, events: common.map(\.theirs), rtcpMux: muxed,
            direction: offer.direction.limited(to: remote.direction.reversed))
        for match in common { payloadTypes.record(match.mine) }
        self.offer?.isAnswered = true
        agreed = result
        return result
    }

    // MARK: The peer's offer

    /// Answers an offer, the first or a later one.
    ///
    /// - Parameter direction: What we want; the answer is limited to what the offer allows.
    public mutating func receiveOffer(
        _ sdp: [UInt8], direction: MediaDirection = .sendrecv
    ) throws(SDPNegotiationError) -> (answer: [UInt8], audio: NegotiatedAudio) {
        guard !hasPendingOffer else {
            throw SDPNegotiationError(code: .offerPending, reason: "an offer arrived while ours waits for its answer")
        }
        let session = try Self.parse(sdp)
        var answered = session.media.map(\.rejected)
        let chosen = try choose(in: session)
        let wanted = direction.limited(to: chosen.remote.direction.reversed)
        let result = negotiated(
            chosen.remote, codec: chosen.codec, receive: chosen.receive, events: chosen.events,
            rtcpMux: chosen.rtcpMux, direction: wanted)
        var codecs = [chosen.codec]
        codecs += chosen.events.filter { $0.payloadType == result.telephoneEventPayloadType }
        codecs = codecs.map { codec in
            var mine = codec
            mine.formatParameters = capabilities.codecs.first { $0.isSameFormat(as: codec) }?.formatParameters
            return mine
        }
        answered[chosen.index] = audioDescription(
            codecs: codecs, profile: session.media[chosen.index].profile, direction: wanted,
            rtcpMux: chosen.rtcpMux, ptime: result.ptime)
        streams = answered
        audioIndex = chosen.index
        offer = nil
        for codec in codecs { payloadTypes.record(codec) }
        agreed = result
        return (encode(), result)
    }

    private struct Choice {
        var index: Int
        var remote: RemoteAudio
        var codec: AudioCodec
        var receive: [UInt8: AudioCodec]
        var events: [AudioCodec]
        var rtcpMux: Bool
    }

    /// The first acceptable audio stream; when there is none, why the first audio stream is not.
    private func choose(in session: SessionDescription) throws(SDPNegotiationError) -> Choice {
        var problem: SDPNegotiationError?
        for (index, media) in session.media.enumerated() where media.media == "audio" && media.port != 0 {
            do throws(SDPNegotiationError) {
                let remote = try RemoteAudio(media, in: session, localAddress: local.address)
                let muxed = capabilities.rtcpMux && remote.rtcpMux
                let common = Self.common(remote, with: capabilities.codecs, rtcpMux: muxed).map(\.theirs)
                guard let codec = common.first(where: { !$0.isTelephoneEvent }) else {
                    throw SDPNegotiationError(
                        code: .noCommonCodec,
                        reason: "none of the offered audio formats (\(media.formats.prefix(16).joined(separator: " ")))"
                            + " is supported: Opus, PCMU and PCMA are")
                }
                let events = common.filter { $0.isTelephoneEvent && $0.clockRate == codec.clockRate }
                var receive = [codec.payloadType: codec]
                if let event = events.first { receive[event.payloadType] = event }
                return Choice(
                    index: index, remote: remote, codec: codec, receive: receive, events: Array(events.prefix(1)),
                    rtcpMux: muxed)
            } catch {
                if problem == nil { problem = error }
            }
        }
        throw problem ?? SDPNegotiationError(code: .noAudio, reason: "the offer has no active audio stream")
    }

    // MARK: Shared

    private static func parse(_ sdp: [UInt8]) throws(SDPNegotiationError) -> SessionDescription {
        do {
            return try SessionDescription.parse(sdp)
        } catch {
            throw SDPNegotiationError(code: .malformed, reason: error.description)
        }
    }

    /// The formats of `remote` that are also in `codecs`, in the peer's order (RFC 3264 section 6.1).
    ///
    /// `theirs` has the peer's number and parameters, both have our spelling of the name. Numbers that look like RTCP
    /// on a shared port (RFC 5761 section 4) are left out there.
    private static func common(
        _ remote: RemoteAudio, with codecs: [AudioCodec], rtcpMux: Bool
    ) -> [(theirs: AudioCodec, mine: AudioCodec)] {
        remote.formats.compactMap { format in
            guard !(rtcpMux && (64...95).contains(format.payloadType)),
                let mine = codecs.first(where: { $0.isSameFormat(as: format) })
            else { return nil }
            var theirs = format
            theirs.name = mine.name
            theirs.channels = mine.channels
            return (theirs, mine)
        }
    }

    private func negotiated(
        _ remote: RemoteAudio, codec: AudioCodec, receive: [UInt8: AudioCodec], events: [AudioCodec], rtcpMux: Bool,
        direction: MediaDirection
    ) -> NegotiatedAudio {
        let event = events.first { $0.isTelephoneEvent && $0.clockRate == codec.clockRate }
        return NegotiatedAudio(
            codec: codec, receivePayloadTypes: receive, telephoneEventPayloadType: event?.payloadType,
            remoteAddress: remote.address, remoteRTPPort: remote.rtpPort,
            remoteRTCPAddress: rtcpMux ? remote.address : remote.rtcpAddress,
            remoteRTCPPort: rtcpMux ? remote.rtpPort : remote.rtcpPort, rtcpMux: rtcpMux, direction: direction,
            ptime: packetTime(remote, codec: codec), maxptime: remote.maxptime,
            opus: codec.isOpus ? OpusParameters(formatParameters: codec.formatParameters) : OpusParameters())
    }

    /// The longest packet the encoder makes that is not longer than the peer wants.
    private func packetTime(_ remote: RemoteAudio, codec: AudioCodec) -> Int {
        let wanted = min(remote.ptime ?? capabilities.ptime, remote.maxptime ?? .max)
        let possible = codec.isOpus ? [10, 20, 40, 60] : [10, 20, 30, 40, 60]
        return possible.last { $0 <= wanted } ?? 10
    }

    private func audioDescription(
        codecs: [AudioCodec], profile: String, direction: MediaDirection, rtcpMux: Bool, ptime: Int
    ) -> MediaDescription {
        var attributes: [SDPAttribute] = []
        for codec in codecs {
            attributes.append(SDPAttribute("rtpmap", codec.mapping))
            if let parameters = codec.formatParameters {
                attributes.append(SDPAttribute("fmtp", "\(codec.payloadType) \(parameters)"))
            }
        }
        attributes.append(SDPAttribute("ptime", "\(ptime)"))
        attributes.append(SDPAttribute("maxptime", "\(max(ptime, capabilities.maxptime))"))
        attributes.append(SDPAttribute(direction.rawValue))
        if local.rtcpPort != local.rtpPort &+ 1 || local.rtpPort == .max {
            attributes.append(SDPAttribute("rtcp", "\(local.rtcpPort)"))
        }
        if rtcpMux { attributes.append(SDPAttribute("rtcp-mux")) }
        return MediaDescription(
            media: "audio", port: local.rtpPort, profile: profile, formats: codecs.map { "\($0.payloadType)" },
            attributes: attributes)
    }

    /// Our description with the current streams; its version rises only when something else in it changed.
    private mutating func encode() -> [UInt8] {
        var session = SessionDescription(
            origin: SDPOrigin(sessionID: sessionID, sessionVersion: version, address: local.address),
            connection: SDPConnection(address: local.address), media: streams)
        if let lastSent, lastSent != session {
            version &+= 1
            session.origin.sessionVersion = version
        }
        lastSent = session
        return session.encoded()
    }
}
