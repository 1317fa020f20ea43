import Primitives

/// Reception statistics of one incoming stream, RFC 3550 appendices A.1 (validity), A.3 (loss) and A.8 (jitter).
///
/// A new source counts after two packets in sequence; so does a jump in the sequence, and a new source in the place
/// of the old one. The counters of a report start again with the source; `totalReceived` and `totalLost` go on.
public struct RTPReceiverStatistics: Sendable {
    /// What a packet turned out to be.
    public enum Verdict: Sendable, Equatable {
        /// Part of the current stream.
        case valid
        /// Perhaps the first of a new stream: the next one tells.
        case probation
        /// The second of a new stream, which is the current one from now on.
        case restarted
        /// Far from the current sequence: counted only if the next one follows it.
        case outOfRange
    }

    /// Packets in sequence before a source counts.
    static let minimumSequential = 2
    /// The greatest gap forward that is still taken as loss.
    static let maximumDropout: UInt16 = 3_000
    /// The greatest step back that is still taken as reordering.
    static let maximumMisorder: UInt16 = 100

    /// Timestamp units a second.
    public let clockRate: Int
    /// The current source; nil before the first valid packet.
    public private(set) var ssrc: UInt32?
    /// Packets of the current source, duplicates and late ones included (as RFC 3550 section 6.4.1 counts).
    public private(set) var received: UInt64 = 0
    /// How often a stream began anew: a new source or a jump in the sequence.
    public private(set) var restarts: UInt64 = 0

    private var baseSequence: UInt16 = 0
    private var maxSequence: UInt16 = 0
    private var cycles: UInt64 = 0
    private var badSequence: UInt16?
    private var candidate: (ssrc: UInt32, next: UInt16, sequential: Int)?
    private var expectedPrior: UInt64 = 0
    private var receivedPrior: UInt64 = 0
    private var earlierReceived: UInt64 = 0
    private var earlierExpected: UInt64 = 0
    private var lastTimestamp: UInt32 = 0
    private var transit: UInt32?
    private var scaledJitter: UInt64 = 0
    private var lastReport: (ntp: UInt32, time: MonotonicTime)?

    /// Creates statistics for a stream.
    public init(clockRate: Int) {
        self.clockRate = max(1, clockRate)
    }

    /// Counts a packet.
    ///
    /// Call for every packet of the stream in the order of arrival, telephone events included.
    @discardableResult
    public mutating func receive(_ header: RTPHeader, at now: MonotonicTime) -> Verdict {
        guard header.ssrc == ssrc else { return probe(header, at: now) }
        candidate = nil
        let step = header.sequenceNumber &- maxSequence
        if step < Self.maximumDropout {
            if header.sequenceNumber < maxSequence { cycles &+= 1 }
            maxSequence = header.sequenceNumber
        } else if step <= UInt16.max &- Self.maximumMisorder {
            // A very large jump: two packets in sequence say that the sender started again.
            if header.sequenceNumber == badSequence {
                start(header, at: now)
                return .restarted
            }
            badSequence = header.sequenceNumber &+ 1
            return .outOfRange
        }
        received &+= 1
        updateJitter(header, at: now)
        return .valid
    }

    private mutating func probe(_ header: RTPHeader, at now: MonotonicTime) -> Verdict {
        if let seen = candidate, seen.ssrc == header.ssrc, seen.next == header.sequenceNumber {
            candidate?.next = header.sequenceNumber &+ 1
            candidate?.sequential = seen.sequential + 1
        } else {
            candidate = (header.ssrc, header.sequenceNumber &+ 1, 1)
        }
        guard let candidate, candidate.sequential >= Self.minimumSequential else { return .probation }
        start(header, at: now)
        return .restarted
    }

    private mutating func start(_ header: RTPHeader, at now: MonotonicTime) {
        if ssrc != nil {
            earlierReceived &+= received
            earlierExpected &+= expected
            restarts &+= 1
        }
        if ssrc != header.ssrc { lastReport = nil }
        ssrc = header.ssrc
        baseSequence = header.sequenceNumber
        maxSequence = header.sequenceNumber
        cycles = 0
        badSequence = nil
        candidate = nil
        received = 1
        expectedPrior = 0
        receivedPrior = 0
        transit = nil
        scaledJitter = 0
        updateJitter(header, at: now)
    }

    // MARK: Loss

    /// The highest sequence number, with the number of wrap-arounds in the upper half (modulo 2^32).
    public var extendedHighestSequence: UInt32 {
        UInt32(truncatingIfNeeded: cycles) << 16 | UInt32(maxSequence)
    }

    /// How many packets the current source should have sent.
    public var expected: UInt64 {
        guard ssrc != nil else { return 0 }
        return (cycles << 16 &+ UInt64(maxSequence)) &- UInt64(baseSequence) &+ 1
    }

    /// Packets lost of the current source, as a report carries it: negative with duplicates, held to 24 bits.
    public var cumulativeLost: Int32 {
        let lost = Int64(clamping: expected) &- Int64(clamping: received)
        return Int32(min(max(lost, -0x80_0000), 0x7F_FFFF))
    }

    /// Packets received over all sources of the stream.
    public var totalReceived: UInt64 { earlierReceived &+ received }

    /// Packets lost over all sources of the stream, never negative.
    public var totalLost: UInt64 {
        let expected = earlierExpected &+ expected
        return expected > totalReceived ? expected &- totalReceived : 0
    }

    // MARK: Jitter

    /// The interarrival jitter in timestamp units.
    public var jitter: UInt32 { UInt32(clamping: scaledJitter >> 4) }

    /// The interarrival jitter as a time.
    public var jitterDuration: Duration {
        .nanoseconds(RTPClock.nanoseconds(Int64(jitter), clockRate: clockRate))
    }

    private mutating func updateJitter(_ header: RTPHeader, at now: MonotonicTime) {
        // The packets of one telephone event carry one timestamp: their spacing is no jitter.
        if transit != nil, header.timestamp == lastTimestamp { return }
        lastTimestamp = header.timestamp
        let arrival = UInt32(truncatingIfNeeded: RTPClock.samples(now.nanoseconds, clockRate: clockRate))
        let newTransit = arrival &- header.timestamp
        defer { transit = newTransit }
        guard let transit else { return }
        let difference = UInt64(Int32(bitPattern: newTransit &- transit).magnitude)
        // A change this large is a new timestamp base, no delay.
        guard difference < 2 * UInt64(clockRate) else { return }
        scaledJitter = scaledJitter &+ difference &- ((scaledJitter &+ 8) >> 4)
    }

    // MARK: Reports

    /// Notes a sender report of the peer, which the next report block refers to.
    public mutating func receive(_ report: RTCPSenderReport, at now: MonotonicTime) {
        guard report.ssrc == ssrc || ssrc == nil else { return }
        lastReport = (report.ntpTimestamp.middle, now)
    }

    /// The block to report with now; nil before the first valid packet. Starts the next interval of `fractionLost`.
    public mutating func reportBlock(at now: MonotonicTime) -> RTCPReportBlock? {
        guard let ssrc else { return nil }
        let expectedInterval = expected &- expectedPrior
        let receivedInterval = received &- receivedPrior
        expectedPrior = expected
        receivedPrior = received
        var fraction: UInt64 = 0
        if expectedInterval > receivedInterval {
            fraction = min(255, ((expectedInterval &- receivedInterval) << 8) / expectedInterval)
        }
        var block = RTCPReportBlock(ssrc: ssrc)
        block.fractionLost = UInt8(clamping: fraction)
        block.cumulativeLost = cumulativeLost
        block.extendedHighestSequence = extendedHighestSequence
        block.jitter = jitter
        if let lastReport {
            block.lastSenderReport = lastReport.ntp
            block.delaySinceLastSenderReport = NTPTimestamp.shortUnits(now - lastReport.time)
        }
        return block
    }
}
