import Primitives

/// Bounds how often a device is restarted: an unplugged card answers every restart with the next error, and an
/// endless loop at real-time priority freezes the machine. Ten failures within a second without a frame moved in
/// between are too many.
struct RecoveryBudget: Sendable {
    static let limit = 10
    static let window = Duration.seconds(1)

    private var failures = 0
    private var firstFailure = MonotonicTime.zero

    /// A frame moved: earlier failures are forgiven.
    mutating func progressed() {
        failures = 0
    }

    /// Counts a failure; true when it is one too many.
    mutating func isExceeded(byFailureAt now: MonotonicTime) -> Bool {
        if failures == 0 || now - firstFailure > Self.window {
            failures = 0
            firstFailure = now
        }
        failures += 1
        return failures >= Self.limit
    }
}

/// Notices that a device moves no frames without saying why: a suspended stream, a capture that was never started.
/// The call must not stand still with it.
struct StallDetector: Sendable {
    /// Without a frame for this long, the call follows the timer instead.
    static let patience = Duration.milliseconds(200)
    /// How often a stalled device is restarted.
    static let restartInterval = Duration.seconds(1)

    private(set) var isStalled = false
    private var lastProgress: MonotonicTime?
    private var nextRestart = MonotonicTime.zero

    /// Takes note of a wake-up; true when the device should be restarted now.
    mutating func observe(progress: Bool, at now: MonotonicTime) -> Bool {
        guard let last = lastProgress, !progress else {
            lastProgress = now
            isStalled = false
            return false
        }
        guard now - last > Self.patience else { return false }
        if !isStalled {
            isStalled = true
            nextRestart = last + Self.restartInterval
        }
        guard now >= nextRestart else { return false }
        nextRestart = now + Self.restartInterval
        return true
    }
}
