import Primitives

/// The state of one outgoing RTP stream: numbers its packets and counts them.
public struct RTPSender: Sendable {
    /// The stream's source.
    public let ssrc: UInt32
    /// The payload type of audio packets; may be changed by a renegotiation.
    public var payloadType: UInt8
    /// Timestamp units a second.
    public let clockRate: Int
    /// The sequence number of the next packet.
    public private(set) var nextSequenceNumber: UInt16
    /// The timestamp of the next audio packet; telephone events start with it (RFC 4733 section 2.2).
    public private(set) var nextTimestamp: UInt32
    /// Packets sent so far.
    public private(set) var packetCount: UInt64 = 0
    /// Payload bytes sent so far, without headers.
    public private(set) var octetCount: UInt64 = 0

    private var lastTimestamp: UInt32
    private var lastTime: MonotonicTime?

    /// Starts a stream at a random sequence number and timestamp (RFC 3550 section 5.1).
    ///
    /// - Parameters:
    ///   - ssrc: A random source; nil takes one from `random`.
    ///   - payloadType: The payload type of audio packets.
    ///   - clockRate: Timestamp units a second: 48000 for Opus, 8000 for G.711.
    ///   - random: Where the start values come from.
    public init(ssrc: UInt32? = nil, payloadType: UInt8, clockRate: Int, random: RandomSource = .system) {
        var random = random
        self.ssrc = ssrc ?? UInt32(truncatingIfNeeded: random.next())
        self.payloadType = payloadType & 0x7F
        self.clockRate = max(1, clockRate)
        // The lower half of the range keeps the first wrap-around away from the first lost packets, which SRTP's
        // roll-over counter needs (RFC 3711 section 3.3.1).
        nextSequenceNumber = UInt16(truncatingIfNeeded: random.next() & 0x7FFF)
        nextTimestamp = UInt32(truncatingIfNeeded: random.next())
        lastTimestamp = nextTimestamp
    }

    /// The header of the next audio packet.
    ///
    /// - Parameters:
    ///   - samples: How many timestamp units its payload spans.
    ///   - marker: Whether it is the first after silence.
    ///   - now: When it is sent; lets `timestamp(at:)` answer exactly.
    public mutating func header(samples: UInt32, marker: Bool = false, at now: MonotonicTime? = nil) -> RTPHeader {
        let header = RTPHeader(
            marker: marker, payloadType: payloadType, sequenceNumber: nextSequenceNumber, timestamp: nextTimestamp,
            ssrc: ssrc)
        lastTimestamp = nextTimestamp
        lastTime = now
        nextSequenceNumber &+= 1
        nextTimestamp &+= samples
        return header
    }

    /// The header of a packet that does not move the timestamp, such as a telephone event.
    public mutating func header(payloadType: UInt8, timestamp: UInt32, marker: Bool) -> RTPHeader {
        let header = RTPHeader(
            marker: marker, payloadType: payloadType, sequenceNumber: nextSequenceNumber, timestamp: timestamp,
            ssrc: ssrc)
        nextSequenceNumber &+= 1
        return header
    }

    /// Lets time pass without an audio packet: silence suppressed, or a telephone event in its place.
    public mutating func skip(samples: UInt32) {
        nextTimestamp &+= samples
    }

    /// Counts a packet that went out.
    public mutating func didSend(payloadBytes: Int) {
        packetCount &+= 1
        octetCount &+= UInt64(clamping: payloadBytes)
    }

    /// The stream's timestamp at a point in time, for sender reports (RFC 3550 section 6.4.1).
    public func timestamp(at now: MonotonicTime) -> UInt32 {
        guard let lastTime else { return nextTimestamp }
        let elapsed = RTPClock.samples((now - lastTime).wholeNanoseconds, clockRate: clockRate)
        return lastTimestamp &+ UInt32(truncatingIfNeeded: elapsed)
    }
}

/// Conversions between time and timestamp units that cannot overflow.
enum RTPClock {
    static func samples(_ nanoseconds: Int64, clockRate: Int) -> Int64 {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return seconds &* Int64(clockRate) &+ rest &* Int64(clockRate) / 1_000_000_000
    }

    static func nanoseconds(_ samples: Int64, clockRate: Int) -> Int64 {
        let (seconds, rest) = samples.quotientAndRemainder(dividingBy: Int64(clockRate))
        return seconds &* 1_000_000_000 &+ rest &* 1_000_000_000 / Int64(clockRate)
    }
}
