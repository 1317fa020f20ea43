import Primitives
import SIP

/// How fast something may happen: `perSecond` in the long run, `burst` at once.
public struct RateLimit: Sendable, Equatable {
    /// Events allowed each second in the long run.
    public var perSecond: Double
    /// Events allowed at once after a pause.
    public var burst: Double

    /// Creates a limit.
    public init(perSecond: Double, burst: Double) {
        self.perSecond = perSecond
        self.burst = burst
    }
}

/// A token bucket: filled by time, emptied by events.
struct TokenBucket: Sendable {
    private var level: Double
    private var updated: MonotonicTime

    /// A full bucket.
    init(_ limit: RateLimit, at now: MonotonicTime) {
        level = limit.burst
        updated = now
    }

    private mutating func fill(_ limit: RateLimit, at now: MonotonicTime) {
        // A clock that is read on two threads may seem to step back by a little: such a step adds nothing.
        let elapsed = max(0, (now - updated).seconds)
        level = min(limit.burst, level + elapsed * limit.perSecond)
        updated = max(updated, now)
    }

    /// Takes one event out of the bucket; false when it is empty.
    mutating func take(_ limit: RateLimit, at now: MonotonicTime) -> Bool {
        fill(limit, at: now)
        guard level >= 1 else { return false }
        level -= 1
        return true
    }

    /// Whether nothing was taken for so long that the bucket is full again, and so worth no memory.
    mutating func isFull(_ limit: RateLimit, at now: MonotonicTime) -> Bool {
        fill(limit, at: now)
        return level >= limit.burst
    }
}

/// Keeps one source from starving the others: a bucket of messages and one of calls for each flow.
///
/// A source is a flow, that is one stream connection or one UDP address and port; on loopback every client has the same
/// host, so the host alone would make all of them pay for one. The number of sources kept is bounded: when it is
/// reached, those that were quiet are forgotten, and when none was, newcomers share one bucket.
struct SourceLimiter: Sendable {
    /// What to do with a message.
    enum Verdict: Equatable, Sendable {
        /// Process it.
        case accept
        /// Answer a request with 503 and Retry-After without processing it. `first` is true when the source was within its
        /// limits until now (or for a while), so that the log tells of a flood once and not for every message.
        case refuse(first: Bool)
        /// Say nothing: answering all of a flood doubles it.
        case drop
    }

    private struct Source: Sendable {
        var messages: TokenBucket
        var calls: TokenBucket
        var refusals: TokenBucket
        var lastReport: MonotonicTime?
    }

    /// What a request counts as.
    enum Kind: Sendable {
        case message
        case newCall
    }

    /// After this long a flood that still goes on is reported again.
    static let reportInterval: Duration = .seconds(10)

    private let messages: RateLimit
    private let calls: RateLimit
    private let refusals: RateLimit
    private let maxSources: Int
    private var sources: [SIPFlow: Source] = [:]
    private var crowd: Source?

    init(messages: RateLimit, calls: RateLimit, refusals: RateLimit, maxSources: Int) {
        self.messages = messages
        self.calls = calls
        self.refusals = refusals
        self.maxSources = max(1, maxSources)
    }

    /// How many sources are remembered.
    var count: Int { sources.count }

    /// Counts one message from `flow`.
    mutating func count(_ kind: Kind, from flow: SIPFlow, at now: MonotonicTime) -> Verdict {
        if var source = sources[flow] {
            // Taken out while it is changed, so that the dictionary is not copied.
            sources[flow] = nil
            defer { sources[flow] = source }
            return judge(kind, &source, at: now)
        }
        if sources.count >= maxSources {
            forgetQuietSources(at: now)
        }
        var source = Source(
            messages: TokenBucket(messages, at: now), calls: TokenBucket(calls, at: now),
            refusals: TokenBucket(refusals, at: now), lastReport: nil)
        if sources.count >= maxSources {
            source = crowd ?? source
            let verdict = judge(kind, &source, at: now)
            crowd = source
            return verdict
        }
        let verdict = judge(kind, &source, at: now)
        sources[flow] = source
        return verdict
    }

    /// Forgets a closed connection.
    mutating func forget(_ flow: SIPFlow) {
        sources[flow] = nil
    }

    private func judge(_ kind: Kind, _ source: inout Source, at now: MonotonicTime) -> Verdict {
        let allowed =
            switch kind {
            case .message: source.messages.take(messages, at: now)
            case .newCall: source.calls.take(calls, at: now)
            }
        if allowed { return .accept }
        guard source.refusals.take(refusals, at: now) else { return .drop }
        let first = source.lastReport.map { now - $0 >= Self.reportInterval } ?? true
        if first { source.lastReport = now }
        return .refuse(first: first)
    }

    private mutating func forgetQuietSources(at now: MonotonicTime) {
        var kept: [SIPFlow: Source] = [:]
        for (flow, source) in sources {
            var copy = source
            if copy.messages.isFull(messages, at: now) && copy.calls.isFull(calls, at: now) { continue }
            kept[flow] = source
        }
        sources = kept
    }
}
