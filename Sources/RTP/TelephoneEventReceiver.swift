import Primitives

/// Turns telephone-event packets into keys pressed, each once, RFC 4733 section 2.5.2.
///
/// The packets of an event share a timestamp, so repeats, duplicates and reordered ones are recognised by it; any
/// one of them is enough to report the key. An event whose end is lost ends by `timeout`.
public struct TelephoneEventReceiver: Sendable {
    /// What happened.
    public enum Report: Equatable, Sendable {
        /// A key went down, or another event began.
        case began(event: UInt8)
        /// It went up again.
        case ended(event: UInt8, duration: Duration)
    }

    /// How long an event may be silent before it counts as over.
    static let silence: Duration = .milliseconds(300)

    private struct Current {
        var event: UInt8
        var ssrc: UInt32
        var timestamp: UInt32
        /// Of the segments before this one (RFC 4733 section 2.5.1.3).
        var earlier: Int64 = 0
        var duration: UInt16
        var isOver = false
        var heard: MonotonicTime
    }

    private let clockRate: Int
    private var current: Current?

    /// Creates a receiver; `clockRate` is that of the payload type.
    public init(clockRate: Int) {
        self.clockRate = max(1, clockRate)
    }

    /// When `timeout(at:)` wants to be called; nil when no event is open.
    public var nextTimeout: MonotonicTime? {
        guard let current, !current.isOver else { return nil }
        return current.heard + Self.silence
    }

    /// Takes a packet of a telephone-event payload type.
    ///
    /// - Returns: What the packet tells that is new; mostly nothing.
    public mutating func receive(
        _ header: RTPHeader, payload: Span<UInt8>, at now: MonotonicTime
    ) -> [Report] {
        guard let packet = TelephoneEvent.parse(payload) else { return [] }
        var reports: [Report] = []
        if var known = current, known.ssrc == header.ssrc {
            let step = Int32(bitPattern: header.timestamp &- known.timestamp)
            if step == 0 {
                guard packet.event == known.event else { return [] }
                known.duration = max(known.duration, packet.duration)
                if !known.isOver {
                    known.heard = now
                    if packet.isEnd {
                        known.isOver = true
                        reports.append(end(of: known))
                    }
                }
                current = known
                return reports
            }
            // Older than the latest, within what reordering can do: a straggler of an event already reported.
            if step < 0, Int64(step) > -10 * Int64(clockRate) { return [] }
            // A long event goes on in a new segment where the last one was full.
            let isSegment =
                !known.isOver && packet.event == known.event && !header.marker
                && known.duration >= 0xF000 && Int64(step) <= 0x1_0000
            if isSegment {
                known.earlier += Int64(step)
                known.timestamp = header.timestamp
                known.duration = packet.duration
                known.heard = now
                known.isOver = packet.isEnd
                if packet.isEnd { reports.append(end(of: known)) }
                current = known
                return reports
            }
            if !known.isOver { reports.append(end(of: known)) }
        } else if let known = current, !known.isOver {
            reports.append(end(of: known))
        }
        let begun = Current(
            event: packet.event, ssrc: header.ssrc, timestamp: header.timestamp, duration: packet.duration,
            isOver: packet.isEnd, heard: now)
        reports.append(.began(event: packet.event))
        if packet.isEnd { reports.append(end(of: begun)) }
        current = begun
        return reports
    }

    /// Ends an event that fell silent.
    public mutating func timeout(at now: MonotonicTime) -> Report? {
        guard let due = nextTimeout, now >= due, let known = current else { return nil }
        current?.isOver = true
        return end(of: known)
    }

    private func end(of event: Current) -> Report {
        let samples = event.earlier + Int64(event.duration)
        return .ended(event: event.event, duration: .nanoseconds(RTPClock.nanoseconds(samples, clockRate: clockRate)))
    }
}
