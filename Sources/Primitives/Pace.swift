/// How often something may happen: once each interval in the long run, and a burst at once.
///
/// For what a peer may ask for or tell, where every time costs something and nobody honest needs more.
public struct Pace: Sendable {
    private let interval: Duration
    private let burst: Int
    /// Up to here, what has happened has used the time.
    private var usedUntil = MonotonicTime.zero

    /// Creates a pace.
    public init(interval: Duration, burst: Int) {
        self.interval = interval
        self.burst = burst
    }

    /// No keypad is faster.
    public static var keypad: Pace { Pace(interval: .milliseconds(50), burst: 16) }

    /// Whether it may happen now; if so, it counts.
    public mutating func allows(at now: MonotonicTime) -> Bool {
        let next = max(usedUntil, now) + interval
        guard next - now <= interval * burst else { return false }
        usedUntil = next
        return true
    }
}
