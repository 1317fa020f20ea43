/// What a peer's description says about one audio stream, checked: only what is usable is in here.
struct RemoteAudio {
    /// The formats that could be understood, in the peer's order.
    var formats: [AudioCodec]
    var address: String
    var rtpPort: UInt16
    var rtcpAddress: String
    var rtcpPort: UInt16
    var rtcpMux: Bool
    /// Seen from the peer; without `receives` when its address says "do not send".
    var direction: MediaDirection
    var ptime: Int?
    var maxptime: Int?

    /// Media never go to the well-known ports: a description must not aim streams at a name or time server.
    /// ICE's placeholder port 9 is among them; it is not followed without ICE either.
    static let lowestPort: UInt16 = 1_024

    /// Reads a stream that is not removed (port 0) and whose media is audio.
    ///
    /// - Parameter localAddress: ours, because a socket reaches one address family only.
    init(
        _ media: MediaDescription, in session: SessionDescription, localAddress: String
    ) throws(SDPNegotiationError) {
        guard ["RTP/AVP", "RTP/AVPF"].contains(media.profile.uppercased()) else {
            throw SDPNegotiationError(
                code: .unsupportedProfile,
                reason: "the profile \(media.profile) is not supported: only RTP/AVP and RTP/AVPF are")
        }
        guard media.connections.count <= 1, let connection = media.connections.first ?? session.connection else {
            throw SDPNegotiationError(
                code: .unusableAddress,
                reason: media.connections.isEmpty
                    ? "the audio stream has no c= line (RFC 8866 section 5.7)"
                    : "the audio stream has \(media.connections.count) c= lines, which only multicast may have")
        }
        let written = RemoteAudio.direction(of: media, in: session)
        switch MediaAddress.classify(connection) {
        case .hold:
            direction = MediaDirection(sends: written.sends, receives: false)
        case .unicast:
            guard media.port >= RemoteAudio.lowestPort else {
                throw SDPNegotiationError(
                    code: .unusableAddress, reason: "media would go to the reserved port \(media.port)")
            }
            guard SDPConnection.addressType(of: localAddress) == SDPConnection.addressType(of: connection.address)
            else {
                throw SDPNegotiationError(
                    code: .unusableAddress,
                    reason: "media would go to \(connection.address), but this side's address is \(localAddress)")
            }
            direction = written
        case .unusable:
            throw SDPNegotiationError(
                code: .unusableAddress,
                reason: "media cannot go to \(connection.networkType) \(connection.addressType) "
                    + "\(connection.address): not the numeric address of one host")
        }
        address = connection.address
        rtpPort = media.port
        rtcpMux = media.hasAttribute("rtcp-mux")
        (rtcpAddress, rtcpPort) = RemoteAudio.rtcp(of: media, connection: connection)
        ptime = media.attribute("ptime").flatMap { SDPNumber.integer($0.trimmed, in: 1...200) }
        maxptime = media.attribute("maxptime").flatMap { SDPNumber.integer($0.trimmed, in: 1...200) }
        formats = RemoteAudio.formats(of: media)
    }

    private static func direction(of media: MediaDescription, in session: SessionDescription) -> MediaDirection {
        for attributes in [media.attributes, session.attributes] {
            for attribute in attributes {
                if attribute.value == nil, let direction = MediaDirection(rawValue: attribute.name) {
                    return direction
                }
            }
        }
        return .sendrecv
    }

    /// RFC 3605: `a=rtcp:PORT [IN IP4 ADDRESS]`; otherwise the port after RTP's (RFC 3550 section 11).
    private static func rtcp(of media: MediaDescription, connection: SDPConnection) -> (String, UInt16) {
        let next: UInt16 = media.port == .max ? 0 : media.port &+ 1
        let fields = media.attribute("rtcp")?.split(separator: " ") ?? []
        guard let port = fields.first.flatMap(SDPNumber.port), port >= lowestPort else {
            return (connection.address, next)
        }
        if fields.count == 4 {
            let other = SDPConnection(
                networkType: String(fields[1]), addressType: String(fields[2]), address: String(fields[3]))
            guard MediaAddress.classify(other) == .unicast, other.addressType == connection.addressType else {
                return (connection.address, next)
            }
            return (other.address, port)
        }
        return (connection.address, port)
    }

    /// The formats of the `m=` line with their `a=rtpmap` and `a=fmtp`; what is malformed is left out.
    private static func formats(of media: MediaDescription) -> [AudioCodec] {
        var mappings: [UInt8: AudioCodec?] = [:]
        var parameters: [UInt8: String] = [:]
        for attribute in media.attributes {
            guard let value = attribute.value else { continue }
            let fields = value.trimmed.split(separator: " ", maxSplits: 1)
            guard let payloadType = fields.first.flatMap(SDPNumber.payloadType) else { continue }
            switch attribute.name {
            case "rtpmap" where mappings[payloadType] == nil:
                // A malformed mapping is remembered too, so that a static type does not hide it.
                mappings[payloadType] = .some(fields.count == 2 ? mapping(fields[1], payloadType) : nil)
            case "fmtp" where parameters[payloadType] == nil && fields.count == 2:
                parameters[payloadType] = String(fields[1].trimmed)
            default: continue
            }
        }
        var seen: Set<UInt8> = []
        var formats: [AudioCodec] = []
        for format in media.formats {
            guard let payloadType = SDPNumber.payloadType(format), seen.insert(payloadType).inserted else { continue }
            let known = mappings[payloadType] ?? AudioCodec.staticCodec(payloadType)
            guard var codec = known else { continue }
            codec.formatParameters = parameters[payloadType]
            formats.append(codec)
        }
        return formats
    }

    /// `NAME/CLOCK[/CHANNELS]`, RFC 8866 section 6.6.
    private static func mapping(_ text: Substring, _ payloadType: UInt8) -> AudioCodec? {
        let parts = text.trimmed.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 || parts.count == 3, !parts[0].isEmpty,
            let clockRate = SDPNumber.integer(parts[1], in: 1_000...384_000)
        else { return nil }
        var channels = 1
        if parts.count == 3 {
            guard let written = SDPNumber.integer(parts[2], in: 1...32) else { return nil }
            channels = written
        }
        return AudioCodec(name: String(parts[0]), clockRate: clockRate, channels: channels, payloadType: payloadType)
    }
}
