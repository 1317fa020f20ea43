import Primitives

/// Counts how many 10 ms blocks are due, for devices that follow the timer.
///
/// Time is counted from the first call, not from wake-up to wake-up, so that late or missed timers do not add up to
/// drift: 1 s of wall clock is 100 blocks. After a stall longer than `maximumBurst` blocks (a stopped process, a
/// suspended machine) the rest is skipped and counted instead of played in a rush.
public struct BlockClock: Sendable {
    /// Length of a block.
    public static let blockDuration = Duration.milliseconds(10)
    /// Most blocks given at once.
    public var maximumBurst: Int
    /// Blocks that were skipped after stalls.
    public private(set) var skippedBlocks: UInt64 = 0
    private var next: MonotonicTime?

    /// Creates a clock that starts with the first `blocksDue(at:)`.
    public init(maximumBurst: Int = 6) {
        self.maximumBurst = max(1, maximumBurst)
    }

    /// Blocks that became due since the last call; the first call gives 1.
    public mutating func blocksDue(at now: MonotonicTime) -> Int {
        guard let next else {
            self.next = now + Self.blockDuration
            return 1
        }
        guard now >= next else { return 0 }
        let step = Self.blockDuration.wholeNanoseconds
        let due = (now - next).wholeNanoseconds / step + 1
        self.next = MonotonicTime(nanoseconds: next.nanoseconds &+ due &* step)
        let given = min(due, Int64(maximumBurst))
        skippedBlocks &+= UInt64(due - given)
        return Int(given)
    }

    /// When the next block is due; nil before the first call.
    public var nextBlock: MonotonicTime? { next }
}
