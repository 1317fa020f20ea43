import Primitives

/// When to send RTCP in a call of two, RFC 3550 sections 6.2 and 6.3.
///
/// With two members the share of bandwidth never asks for more than the minimum interval of 5 s unless the stream is
/// tiny, so this is appendix A.7 without member counting: half the minimum before the first report, then random
/// between half and one and a half intervals, divided by e − 3/2.
public struct RTCPScheduler: Sendable {
    /// The least time between two reports on average.
    public static let minimumInterval: Duration = .seconds(5)

    /// When the next report is due; nil when stopped.
    public private(set) var nextReport: MonotonicTime?

    private let bytesPerSecond: Double
    private var averageSize: Double
    private var isInitial = true
    private var random: RandomSource

    /// Creates a scheduler.
    ///
    /// - Parameters:
    ///   - sessionBandwidth: Of the media in bits a second; RTCP takes 5 % of it.
    ///   - random: Keeps the two sides from reporting in step.
    public init(sessionBandwidth: Int = 64_000, random: RandomSource = .system) {
        bytesPerSecond = max(1, Double(sessionBandwidth) * 0.05 / 8)
        averageSize = 128
        self.random = random
    }

    /// The stream begins at `now`.
    public mutating func start(at now: MonotonicTime) {
        isInitial = true
        nextReport = now + interval()
    }

    /// Nothing is reported any more.
    public mutating func stop() {
        nextReport = nil
    }

    /// A report of `bytes` (UDP and IP headers excluded) was sent at `now`: plans the next.
    public mutating func didSend(bytes: Int, at now: MonotonicTime) {
        noteSize(bytes)
        isInitial = false
        nextReport = now + interval()
    }

    /// A report of `bytes` came: its size counts in the average (section 6.3.3).
    public mutating func didReceive(bytes: Int) {
        noteSize(bytes)
    }

    private mutating func noteSize(_ bytes: Int) {
        averageSize += (Double(min(max(bytes, 0), 65_535) + 28) - averageSize) / 16
    }

    private mutating func interval() -> Duration {
        let minimum = Self.minimumInterval.seconds / (isInitial ? 2 : 1)
        let mean = max(minimum, 2 * averageSize / bytesPerSecond)
        let seconds = mean * (random.unitInterval() + 0.5) / 1.21828
        return .nanoseconds(Int64(min(seconds, 3_600) * 1_000_000_000))
    }
}
