import Primitives
import SIP

/// Decides which candidate is tried when and which one wins (RFC 8305, happy eyeballs; RFC 3263, 4.3 for fail-over).
///
/// The addresses of one server race: the next one starts when the one before has not opened after a quarter of a second, or
/// as soon as one fails. Another server is tried only when all addresses of the one before have failed, because the order of
/// servers is the domain's decision and a slow handshake is no reason to overrule it. A value without I/O or clock.
struct ConnectionRace: Sendable {
    /// What is to be done.
    enum Action: Hashable, Sendable {
        /// Start to open the candidate with this index.
        case open(Int)
        /// Give up opening this candidate: another one won, or time is up.
        case abandon(Int)
        /// This candidate is open. The last action but for `abandon`.
        case won(Int)
        /// All have failed, or time is up. The last action but for `abandon`.
        case lost
    }

    /// RFC 8305, section 5: the recommended delay between attempts.
    static let attemptDelay: Duration = .milliseconds(250)
    /// For all candidates together: whoever waits wants to know by then.
    static let timeLimit: Duration = .seconds(30)

    private let candidates: [ServerCandidate]
    private let end: MonotonicTime
    private var next = 0
    /// Attempts under way, by index.
    private(set) var running: Set<Int> = []
    private var nextAttempt: MonotonicTime?
    private var isOver = false
    private var actions: [Action] = []

    /// Starts a race.
    init(_ candidates: [ServerCandidate], at now: MonotonicTime) {
        self.candidates = candidates
        end = now + Self.timeLimit
        advance(at: now)
    }

    /// The next thing to do; nil when events are waited for.
    mutating func nextAction() -> Action? {
        actions.isEmpty ? nil : actions.removeFirst()
    }

    /// When to call `timeout`; nil when the race is over.
    var nextTimeout: MonotonicTime? { isOver ? nil : min(nextAttempt ?? end, end) }

    /// Whether the candidate was started; the others were never tried.
    func wasTried(_ index: Int) -> Bool { index < next }

    /// A candidate is open.
    mutating func opened(_ index: Int) {
        guard running.remove(index) != nil, !isOver else { return }
        actions.append(.won(index))
        finish()
    }

    /// A candidate could not be opened.
    mutating func failed(_ index: Int, at now: MonotonicTime) {
        guard running.remove(index) != nil, !isOver else { return }
        advance(at: now)
    }

    /// Time has passed.
    mutating func timeout(at now: MonotonicTime) {
        guard !isOver else { return }
        if now >= end {
            actions.append(.lost)
            finish()
        } else if let nextAttempt, now >= nextAttempt {
            advance(at: now)
        }
    }

    /// Starts the next candidate when it may start now.
    private mutating func advance(at now: MonotonicTime) {
        nextAttempt = nil
        guard next < candidates.count else {
            guard running.isEmpty else { return }
            actions.append(.lost)
            finish()
            return
        }
        guard running.isEmpty || races(next) else { return }
        running.insert(next)
        actions.append(.open(next))
        next += 1
        if races(next) { nextAttempt = now + Self.attemptDelay }
    }

    /// Whether the candidate may start beside the one before it. Datagrams open at once and so never race.
    private func races(_ index: Int) -> Bool {
        guard index > 0, index < candidates.count else { return false }
        return candidates[index].transport.isReliable && candidates[index].isSameServer(as: candidates[index - 1])
    }

    private mutating func finish() {
        isOver = true
        nextAttempt = nil
        actions += running.sorted().map { .abandon($0) }
        running = []
    }
}
