/// What the peer's Opus decoder asks of our encoder: the `a=fmtp` parameters of RFC 7587 section 6.1.
///
/// Values out of range are taken as absent: they are the peer's wishes, no reason to refuse a call.
public struct OpusParameters: Equatable, Sendable {
    /// The highest sampling rate worth sending, in hertz (8000 to 48000).
    public var maxPlaybackRate = 48_000
    /// The highest average bit rate the peer wants, in bits a second (6000 to 510000); nil when it does not say.
    public var maxAverageBitrate: Int?
    /// Whether the peer prefers stereo.
    public var stereo = false
    /// Whether the peer is likely to send stereo.
    public var sendsStereo = false
    /// Whether the peer asks for a constant bit rate.
    public var cbr = false
    /// Whether the peer makes use of in-band forward error correction.
    public var useInbandFEC = false
    /// Whether the peer asks for discontinuous transmission.
    public var useDTX = false
    /// The shortest packet the peer wants, in milliseconds; nil when it does not say.
    public var minptime: Int?

    /// Creates the defaults of RFC 7587: what holds when nothing is said.
    public init() {}

    /// Reads the parameters from the value of `a=fmtp` without its payload type.
    public init(formatParameters: String?) {
        guard let formatParameters else { return }
        for parameter in formatParameters.split(separator: ";") {
            let parts = parameter.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { continue }
            let value = parts[1].trimmed
            switch parts[0].trimmed.lowercased() {
            case "maxplaybackrate":
                maxPlaybackRate = SDPNumber.integer(value, in: 8_000...48_000) ?? maxPlaybackRate
            case "maxaveragebitrate": maxAverageBitrate = SDPNumber.integer(value, in: 6_000...510_000)
            case "stereo": stereo = value == "1"
            case "sprop-stereo": sendsStereo = value == "1"
            case "cbr": cbr = value == "1"
            case "useinbandfec": useInbandFEC = value == "1"
            case "usedtx": useDTX = value == "1"
            case "minptime": minptime = SDPNumber.integer(value, in: 3...120)
            default: continue
            }
        }
    }
}
