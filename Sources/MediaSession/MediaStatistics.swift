import Primitives

/// What one call's media did so far. Names follow the W3C's webrtc-stats where it has one; times are seconds.
public struct MediaStatistics: Sendable, Equatable, Codable {
    /// The codec's name in SDP: `opus`, `PCMU`, `PCMA`.
    public var codec = ""
    /// What protects the packets: `none` is plain RTP, allowed on loopback only.
    public var security = "none"
    /// Where packets go.
    public var remoteAddress = ""
    /// RTP packets sent.
    public var packetsSent: UInt64 = 0
    /// Payload bytes sent.
    public var bytesSent: UInt64 = 0
    /// RTP packets received and accepted.
    public var packetsReceived: UInt64 = 0
    /// Payload bytes received.
    public var bytesReceived: UInt64 = 0
    /// Packets that never arrived (RFC 3550, A.3); negative when duplicates outweigh losses.
    public var packetsLost: Int64 = 0
    /// Packets that arrived too late to be played.
    public var packetsLate: UInt64 = 0
    /// Packets that arrived twice.
    public var packetsDuplicated: UInt64 = 0
    /// Packets from an address that is not our peer's, dropped.
    public var packetsFromStrangers: UInt64 = 0
    /// Packets that were no RTP of this stream, dropped.
    public var packetsMalformed: UInt64 = 0
    /// Interarrival jitter in seconds (RFC 3550, A.8).
    public var jitter = 0.0
    /// Round-trip time in seconds from RTCP; nil before the first report.
    public var roundTripTime: Double?
    /// Loss that the other side reports of our stream, 0…1; nil before its first report.
    public var remoteFractionLost: Double?
    /// The delay that the jitter buffer adds now, in seconds.
    public var jitterBufferDelay = 0.0
    /// The delay that the jitter buffer aims at, in seconds.
    public var jitterBufferTarget = 0.0
    /// Samples at 48 kHz that were played.
    public var totalSamplesReceived: UInt64 = 0
    /// Samples at 48 kHz among them that were invented for lost packets.
    public var concealedSamples: UInt64 = 0
    /// Lost frames rebuilt from the next packet's in-band redundancy.
    public var fecRecoveredFrames: UInt64 = 0
    /// Level of what we send now, 0…1 of full scale (root mean square of the last frame).
    public var audioLevelSent = 0.0
    /// Level of what we hear now, 0…1 of full scale.
    public var audioLevelReceived = 0.0
    /// Seconds from the stream's start to the first packet sent; nil before it.
    public var firstPacketSent: Double?
    /// Seconds from the stream's start to the first packet received; nil before it.
    public var firstPacketReceived: Double?
    /// Times that the capture or playback device ran over or empty.
    public var xruns: UInt64 = 0

    /// All zero.
    public init() {}

    /// Share of the expected packets that never arrived, 0…1.
    public var lossRatio: Double {
        let expected = Double(packetsReceived) + Double(max(0, packetsLost))
        return expected > 0 ? Double(max(0, packetsLost)) / expected : 0
    }
}
