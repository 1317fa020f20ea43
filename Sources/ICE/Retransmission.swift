import Primitives

/// A request that is sent again until it is answered (RFC 8489, section 6.2.1).
struct Retransmission: Sendable {
    let bytes: [UInt8]
    /// When it is sent again, or given up.
    private(set) var next: MonotonicTime
    private var interval: Duration
    private var left: Int
    private let last: Duration

    /// What to do when the time has come.
    enum Step {
        case send
        case giveUp
    }

    /// A request that goes out now.
    ///
    /// - Parameters:
    ///   - interval: until it is sent again the first time; doubles each time.
    ///   - tries: how often it is sent in all.
    ///   - last: how long an answer to the last one is waited for.
    init(_ bytes: [UInt8], interval: Duration, tries: Int = 7, last: Duration = .seconds(8), at now: MonotonicTime) {
        self.bytes = bytes
        self.interval = interval
        self.last = last
        left = tries - 1
        next = now + (left > 0 ? interval : last)
    }

    /// Its time has come.
    mutating func step(at now: MonotonicTime) -> Step {
        guard left > 0 else { return .giveUp }
        left -= 1
        interval = interval * 2
        next = now + (left > 0 ? interval : last)
        return .send
    }
}
