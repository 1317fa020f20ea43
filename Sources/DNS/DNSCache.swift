import Primitives

/// Answers that still hold, also negative ones (RFC 2308), bounded in number and time.
public struct DNSCache: Sendable {
    /// The longest time that records are kept, whatever their time to live says: a move of a service is noticed.
    public static let longestLifetime: Duration = .seconds(3_600)
    /// The same for "there is none": a mistake that was mended is noticed soon.
    public static let longestNegativeLifetime: Duration = .seconds(60)

    private struct Entry {
        var answer: DNSAnswer
        var end: MonotonicTime
    }

    private let capacity: Int
    private var entries: [DNSQuestion: Entry] = [:]

    /// Creates an empty cache for at most `capacity` answers.
    public init(capacity: Int = 256) {
        self.capacity = capacity
    }

    /// How many answers are kept.
    public var count: Int { entries.count }

    /// The answer to a question, as long as it holds.
    public func answer(to question: DNSQuestion, at now: MonotonicTime) -> DNSAnswer? {
        entries[question].flatMap { $0.end > now ? $0.answer : nil }
    }

    /// Keeps an answer for as long as it holds; failures are not kept.
    public mutating func store(_ reply: DNSReply, to question: DNSQuestion, at now: MonotonicTime) {
        let limit: Duration
        switch reply.answer {
        case .records: limit = Self.longestLifetime
        case .noSuchName, .noData: limit = Self.longestNegativeLifetime
        case .failed: return
        }
        let lifetime = min(reply.lifetime, limit)
        guard lifetime > .zero, capacity > 0 else { return }
        if entries[question] == nil, entries.count >= capacity { makeRoom(at: now) }
        entries[question] = Entry(answer: reply.answer, end: now + lifetime)
    }

    /// Forgets everything.
    public mutating func removeAll() {
        entries = [:]
    }

    /// Drops what has expired or else what expires first.
    private mutating func makeRoom(at now: MonotonicTime) {
        entries = entries.filter { $0.value.end > now }
        guard entries.count >= capacity, let first = entries.min(by: { $0.value.end < $1.value.end }) else { return }
        entries[first.key] = nil
    }
}
