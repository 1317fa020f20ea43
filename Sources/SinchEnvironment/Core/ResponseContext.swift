import Primitives
import SIP

/// What a stateful proxy remembers of one forwarded request (RFC 3261 section 16.7): the branches, and what each said.
///
/// It decides; the proxy sends. Every change returns the steps to take, in order.
struct ResponseContext: Sendable {
    /// What ended a branch.
    enum Outcome: Sendable {
        /// The device's final response, our Via removed.
        case response(SIPMessage)
        /// The proxy's own verdict: time ran out, or the device cannot be reached.
        case failure(status: Int, reason: String)

        /// The status it counts as.
        var status: Int {
            switch self {
            case .response(let message): message.status ?? 500
            case .failure(let status, _): status
            }
        }
    }

    /// What the proxy has to do.
    enum Step: Sendable {
        /// Send this response upstream.
        case forward(SIPMessage)
        /// Answer upstream for the device.
        case answer(status: Int, reason: String)
        /// Cancel this branch; `reason` is the Reason header's value (RFC 3326).
        case cancel(TransactionID, reason: String?)
        /// Look at the branch again at this time.
        case watch(TransactionID, until: MonotonicTime)
    }

    private struct Branch: Sendable {
        var client: TransactionID
        var isProceeding = false
        var isCancelled = false
        /// Timer C fired: the 487 that follows the CANCEL counts as 408.
        var rangTooLong = false
        /// Timer C. A cancelled branch has none: the transaction layer ends it (section 9.1).
        var deadline: MonotonicTime?
        var outcome: Outcome?
    }

    /// Whether the request is an INVITE: only those are cancelled, ring, and may get several 2xx.
    let isInvite: Bool
    private let ringTimeout: Duration
    private var branches: [Branch] = []
    /// Whether a final response went upstream.
    private(set) var isAnswered = false
    /// Whether the caller gave up.
    private(set) var isCancelled = false
    private var isDeclined = false

    init(isInvite: Bool, ringTimeout: Duration) {
        self.isInvite = isInvite
        self.ringTimeout = ringTimeout
    }

    /// Whether it makes sense to try another flow to a device whose flow failed (RFC 5626 section 5.3).
    var acceptsBranches: Bool { !isAnswered && !isCancelled && !isDeclined }

    /// Adds the branch of a request just sent.
    mutating func add(_ client: TransactionID, at now: MonotonicTime) -> [Step] {
        var branch = Branch(client: client)
        guard isInvite else {
            branches.append(branch)
            return []
        }
        let deadline = now + ringTimeout
        branch.deadline = deadline
        branches.append(branch)
        return [.watch(client, until: deadline)]
    }

    /// A response of a branch.
    mutating func receive(_ response: SIPMessage, from client: TransactionID, at now: MonotonicTime) -> [Step] {
        guard let index = branches.firstIndex(where: { $0.client == client }), let status = response.status else {
            return []
        }
        switch status {
        case ..<200:
            guard branches[index].outcome == nil else { return [] }
            branches[index].isProceeding = true
            guard status > 100 else { return [] }
            if isInvite && !branches[index].isCancelled { branches[index].deadline = now + ringTimeout }
            return isAnswered ? [] : [.forward(response)]
        case ..<300:
            let isFirst = branches[index].outcome == nil
            branches[index].outcome = .response(response)
            branches[index].deadline = nil
            // A retransmission, or the answer of a second device before its CANCEL: the caller deals with each (16.7 step 5).
            guard isInvite || (isFirst && !isAnswered) else { return [] }
            isAnswered = true
            return [.forward(response)] + cancelPending(reason: Self.completedElsewhere)
        default:
            guard branches[index].outcome == nil else { return [] }
            if branches[index].rangTooLong && status == 487 {
                return end(client, .failure(status: 408, reason: "No Answer"))
            }
            return end(client, .response(response))
        }
    }

    /// A device cannot be reached.
    mutating func fail(_ client: TransactionID, reason: String) -> [Step] {
        end(client, .failure(status: 430, reason: reason))
    }

    /// A device did not answer within its transaction's time, be it the request or the CANCEL that followed.
    mutating func giveUp(_ client: TransactionID) -> [Step] {
        guard let branch = branches.first(where: { $0.client == client }) else { return [] }
        let isTerminated = branch.isCancelled && !branch.rangTooLong
        let (status, reason) = isTerminated ? (487, "Request Terminated") : (408, "No Answer")
        return end(client, .failure(status: status, reason: reason))
    }

    /// The caller gave up: cancels all branches. The answer upstream is theirs (section 16.10).
    mutating func cancel(reason: String?) -> [Step] {
        guard isInvite, !isAnswered, !isCancelled else { return [] }
        isCancelled = true
        return cancelPending(reason: reason)
    }

    /// The deadline of a branch may have come.
    mutating func timeout(_ client: TransactionID, at now: MonotonicTime) -> [Step] {
        guard let index = branches.firstIndex(where: { $0.client == client }), branches[index].outcome == nil,
            let deadline = branches[index].deadline
        else { return [] }
        guard deadline <= now else { return [.watch(client, until: deadline)] }
        // Timer C (section 16.8). The answer upstream waits for the 487, so that a 200 which crosses the CANCEL still counts;
        // from a device that never reacted nothing need be waited for.
        branches[index].rangTooLong = true
        let steps = [cancel(branchAt: index, reason: Self.rangTooLong)]
        guard !branches[index].isProceeding else { return steps }
        return steps + end(client, .failure(status: 408, reason: "No Answer"))
    }

    // MARK: Reasons

    private static let completedElsewhere = "SIP;cause=200;text=\"Call completed elsewhere\""
    private static let rangTooLong = "SIP;cause=408;text=\"No answer\""

    private static func declinedElsewhere(_ status: Int) -> String {
        "SIP;cause=\(status);text=\"Declined elsewhere\""
    }

    // MARK: Branches

    private mutating func end(_ client: TransactionID, _ outcome: Outcome) -> [Step] {
        guard let index = branches.firstIndex(where: { $0.client == client }), branches[index].outcome == nil else {
            return []
        }
        branches[index].outcome = outcome
        branches[index].deadline = nil
        var steps: [Step] = []
        if outcome.status >= 600 && !isDeclined {
            // One device declined for all: the others stop ringing, and the caller learns it when they have (16.7 step 5).
            isDeclined = true
            if isInvite { steps += cancelPending(reason: Self.declinedElsewhere(outcome.status)) }
        }
        return steps + answerIfComplete()
    }

    private mutating func cancelPending(reason: String?) -> [Step] {
        guard isInvite else { return [] }
        var steps: [Step] = []
        for index in branches.indices where branches[index].outcome == nil && !branches[index].isCancelled {
            steps.append(cancel(branchAt: index, reason: reason))
        }
        return steps
    }

    private mutating func cancel(branchAt index: Int, reason: String?) -> Step {
        branches[index].isCancelled = true
        branches[index].deadline = nil
        return .cancel(branches[index].client, reason: reason)
    }

    /// When all branches have ended, the best of their outcomes goes upstream.
    private mutating func answerIfComplete() -> [Step] {
        guard !isAnswered else { return [] }
        let outcomes = branches.compactMap(\.outcome)
        guard outcomes.count == branches.count, let best = BestResponse.choose(outcomes, cancelled: isCancelled) else {
            return []
        }
        isAnswered = true
        return [BestResponse.step(for: best)]
    }
}
