import Audio
import Primitives

/// Counts the frames that are due on a device without a clock of its own.
///
/// Time is counted from the first frame, so that late wake-ups do not add up to drift. After a stall the stream skips
/// what nobody waits for any more (`StallClock`).
struct FrameClock {
    private let period: Duration
    private(set) var next: MonotonicTime?

    init(frameSamples: Int, next: MonotonicTime? = nil) {
        self.next = next
        period = .nanoseconds(Int64(max(1, frameSamples)) * 1_000_000_000 / Int64(AudioFormat.sampleRate))
    }

    /// Frames due since the last call; the first call gives one.
    mutating func framesDue(at now: MonotonicTime) -> Int {
        guard var due = next else {
            next = now + period
            return 1
        }
        var frames = 0
        while due <= now {
            due += period
            frames += 1
        }
        next = due
        return frames
    }

    /// Leaves out what would have been due within `duration`.
    mutating func skip(_ duration: Duration) {
        next = next.map { $0 + duration }
    }
}

/// Notices that the media thread stood still (a stopped process, a suspended machine), and tells how much to leave out.
///
/// Both directions leave out the same time, a multiple of every packet length that is in use, so neither the recording
/// nor the stream loses its time base. What remains is at most 120 ms and is caught up in one go.
struct StallClock {
    /// The least common multiple of 10, 20, 30, 40 and 60 ms.
    static let unit = Duration.milliseconds(120)
    private var last: MonotonicTime?

    /// The time to leave out before doing what is due at `now`; mostly zero.
    mutating func skipped(at now: MonotonicTime) -> Duration {
        defer { last = now }
        guard let last, now > last else { return .zero }
        let units = (now - last).wholeNanoseconds / Self.unit.wholeNanoseconds
        return .nanoseconds(units &* Self.unit.wholeNanoseconds)
    }
}
