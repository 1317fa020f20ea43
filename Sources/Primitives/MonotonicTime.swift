/// A point on a clock that only moves forward, in nanoseconds since an arbitrary start.
///
/// The protocol cores never read a clock: whoever drives them passes the time in, the event loop from
/// `CLOCK_MONOTONIC` and the tests from a simulation.
public struct MonotonicTime: Comparable, Hashable, Sendable {
    /// Nanoseconds since the clock's start.
    public var nanoseconds: Int64

    /// The clock's start.
    public static let zero = MonotonicTime(nanoseconds: 0)

    /// A time that no clock reaches: "never".
    public static let distantFuture = MonotonicTime(nanoseconds: .max)

    /// Creates a point in time from nanoseconds since the clock's start.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Orders two points in time.
    public static func < (left: MonotonicTime, right: MonotonicTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// The time `duration` later; saturates instead of overflowing.
    public static func + (time: MonotonicTime, duration: Duration) -> MonotonicTime {
        let (sum, overflow) = time.nanoseconds.addingReportingOverflow(duration.wholeNanoseconds)
        return MonotonicTime(nanoseconds: overflow ? (duration < .zero ? .min : .max) : sum)
    }

    /// The time `duration` earlier; saturates instead of overflowing.
    public static func - (time: MonotonicTime, duration: Duration) -> MonotonicTime {
        time + (.zero - duration)
    }

    /// The time that passed between two points; saturates instead of overflowing.
    public static func - (left: MonotonicTime, right: MonotonicTime) -> Duration {
        let (difference, overflow) = left.nanoseconds.subtractingReportingOverflow(right.nanoseconds)
        return .nanoseconds(overflow ? (left < right ? .min : .max) : difference)
    }

    /// Moves the time forward.
    public static func += (time: inout MonotonicTime, duration: Duration) {
        time = time + duration
    }
}

extension Duration {
    /// The duration in whole nanoseconds, saturated to what an `Int64` holds (292 years).
    public var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflow || carried ? (seconds < 0 ? .min : .max) : sum
    }

    /// The duration in milliseconds, with fraction, for reports.
    public var milliseconds: Double {
        Double(wholeNanoseconds) / 1_000_000
    }

    /// The duration in seconds, with fraction, for reports.
    public var seconds: Double {
        Double(wholeNanoseconds) / 1_000_000_000
    }
}
