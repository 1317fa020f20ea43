import Primitives
import SIP

/// The reliable provisional responses to one INVITE (RFC 3262, section 3): numbered, sent one after the other, each
/// repeated at doubling intervals until its PRACK comes.
struct ReliableProvisionals: Sendable {
    /// More than this do not wait behind one that is not acknowledged.
    static let maximumWaiting = 8

    /// What is to be done when time has passed.
    enum Due {
        case nothing
        case repeatResponse(SIPMessage)
        /// No PRACK came within 64 · T1: the INVITE is to be refused.
        case givenUp
    }

    private struct Outstanding {
        var response: SIPMessage
        var number: UInt32
        var interval: Duration
        var next: MonotonicTime
        var deadline: MonotonicTime
        var isRepeated = true
    }

    private let timers: SIPTimerSettings
    private var nextNumber: UInt32
    private var outstanding: Outstanding?
    private var waiting: [SIPMessage] = []
    private var isStopped = false

    /// - Parameter firstNumber: random, from 1 to 2^31 - 1.
    init(timers: SIPTimerSettings, firstNumber: UInt32) {
        self.timers = timers
        nextNumber = firstNumber
    }

    var nextTimeout: MonotonicTime? { outstanding.flatMap { $0.isRepeated ? $0.next : nil } }

    /// Whether a description is on its way that was not acknowledged; a 2xx must wait for it (section 3).
    var holdsUnacknowledgedSession: Bool {
        !isStopped && (waiting + (outstanding.map { [$0.response] } ?? [])).contains { !$0.body.isEmpty }
    }

    /// Takes a response in, and gives it back numbered when it can be sent now; otherwise it waits for its turn.
    mutating func send(_ response: SIPMessage, at now: MonotonicTime) -> SIPMessage? {
        guard !isStopped else { return nil }
        guard outstanding == nil else {
            if waiting.count < Self.maximumWaiting { waiting.append(response) }
            return nil
        }
        var response = response
        response.headers["Require"] = "100rel"
        response.rseq = nextNumber
        outstanding = Outstanding(
            response: response, number: nextNumber, interval: timers.t1, next: now + timers.t1,
            deadline: now + timers.transactionTimeout)
        nextNumber &+= 1
        return response
    }

    /// A PRACK came; false when it acknowledges nothing that is waiting (481). `next` is what can be sent now.
    mutating func acknowledge(_ rack: SIPRAck, invite: UInt32, at now: MonotonicTime) -> (
        known: Bool, next: SIPMessage?
    ) {
        guard let waited = outstanding, rack.responseNumber == waited.number, rack.cseq.method == .invite,
            rack.cseq.number == invite
        else { return (false, nil) }
        outstanding = nil
        guard !isStopped, !waiting.isEmpty else { return (true, nil) }
        return (true, send(waiting.removeFirst(), at: now))
    }

    /// The INVITE has its final response: nothing is repeated any more, though a late PRACK is still known.
    mutating func stop() {
        isStopped = true
        waiting = []
        outstanding?.isRepeated = false
    }

    mutating func timeout(at now: MonotonicTime) -> Due {
        guard var waited = outstanding, waited.isRepeated, waited.next <= now else { return .nothing }
        guard waited.deadline > now else {
            stop()
            return .givenUp
        }
        waited.interval *= 2
        waited.next = min(now + waited.interval, waited.deadline)
        outstanding = waited
        return .repeatResponse(waited.response)
    }
}
