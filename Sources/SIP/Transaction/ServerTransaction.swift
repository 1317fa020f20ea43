import Primitives

/// A server transaction: RFC 3261 section 17.2 with the accepted state of RFC 6026.
struct ServerTransaction: TimedTransaction {
    enum State: Sendable {
        /// No response yet.
        case trying
        case proceeding
        /// An INVITE answered with 2xx; its user repeats the response until the ACK comes.
        case accepted
        case completed
        /// An INVITE refused and acknowledged.
        case confirmed
        case terminated
    }

    let id: TransactionID
    /// Where the request came from.
    let source: SIPFlow
    /// Where responses go: the same flow, or for UDP without `rport` the port of the Via (section 18.2.2).
    let responseFlow: SIPFlow
    let timers: SIPTimerSettings
    /// As received, with `received` and `rport` filled in, without its body.
    let request: SIPMessage
    private(set) var state = State.trying
    private(set) var lastResponse: SIPMessage?
    private(set) var isCancelled = false
    var isAcknowledged = false
    /// The 2xx responses sent, by what their ACKs will carry.
    var acknowledgementKeys: [AcknowledgementKey] = []
    /// The 100 after 200 ms.
    private var trying: MonotonicTime?
    /// Timer G.
    private var retransmission: MonotonicTime?
    private var interval: Duration
    /// Timer H, I, J or L, by state; for requests other than INVITE also the end of waiting for the user.
    private var deadline: MonotonicTime?

    var isInvite: Bool { id.method == .invite }
    var isTerminated: Bool { state == .terminated }
    var isPending: Bool { state == .trying || state == .proceeding }

    var nextDeadline: MonotonicTime? {
        [trying, retransmission, deadline].compactMap(\.self).min()
    }

    init(id: TransactionID, request: SIPMessage, source: SIPFlow, timers: SIPTimerSettings, at now: MonotonicTime) {
        self.id = id
        self.source = source
        responseFlow = source.responseFlow(for: request.topVia)
        self.timers = timers
        var stored = request
        stored.body = []
        self.request = stored
        interval = max(timers.t1, .milliseconds(1))
        if id.method == .invite {
            trying = now + timers.tryingDelay
        } else {
            // The client gives up after 64 · T1 and a 408 then is forbidden (RFC 4320): a user that forgot the
            // request must not hold the transaction for ever.
            deadline = now + timers.transactionTimeout * 2
        }
    }

    /// The same request again: the last response again, and nothing for the user.
    mutating func receiveRepetition(into actions: inout FIFO<TransactionLayer.Action>) {
        switch state {
        case .trying where isInvite:
            sendTrying(&actions)
        case .proceeding, .completed:
            if let lastResponse { actions.append(.transmit(lastResponse, responseFlow)) }
        case .trying, .accepted, .confirmed, .terminated:
            break
        }
    }

    /// Sends the user's response; false when the state no longer allows it.
    mutating func respond(
        _ response: SIPMessage, at now: MonotonicTime, into actions: inout FIFO<TransactionLayer.Action>
    ) -> Bool {
        guard let status = response.status else { return false }
        if state == .accepted, (200..<300).contains(status) {
            actions.append(.transmit(response, responseFlow))
            return true
        }
        guard isPending else { return false }
        trying = nil
        actions.append(.transmit(response, responseFlow))
        lastResponse = response
        if status < 200 {
            state = .proceeding
        } else if !isInvite {
            state = .completed
            let wait = source.transport.isReliable ? .zero : timers.transactionTimeout  // timer J
            deadline = now + wait
            if wait == .zero { terminate(&actions) }
        } else if status < 300 {
            state = .accepted
            lastResponse = nil
            deadline = now + timers.transactionTimeout  // timer L
        } else {
            state = .completed
            retransmission = source.transport.isReliable ? nil : now + interval  // timer G
            deadline = now + timers.transactionTimeout  // timer H
        }
        return true
    }

    /// Sends a refusal and ends; nothing when the request was answered already.
    mutating func refuse(_ response: SIPMessage, into actions: inout FIFO<TransactionLayer.Action>) {
        guard isPending else { return }
        actions.append(.transmit(response, responseFlow))
        terminate(&actions)
    }

    /// An ACK with this INVITE's branch; true when it is for the user.
    mutating func receiveAcknowledgement(
        at now: MonotonicTime, into actions: inout FIFO<TransactionLayer.Action>
    ) -> Bool {
        switch state {
        case .completed:
            state = .confirmed
            retransmission = nil
            let wait = source.transport.isReliable ? .zero : timers.t4  // timer I
            deadline = now + wait
            if wait == .zero { terminate(&actions) }
            return false
        case .accepted:
            isAcknowledged = true
            return true
        case .trying, .proceeding, .confirmed, .terminated:
            return false
        }
    }

    /// A CANCEL came; true when the user must hear of it.
    mutating func cancel() -> Bool {
        guard isInvite, isPending, !isCancelled else { return false }
        isCancelled = true
        return true
    }

    mutating func timeout(at now: MonotonicTime, into actions: inout FIFO<TransactionLayer.Action>) {
        if let deadline, deadline <= now {
            let isUnacknowledged = isInvite && (state == .completed || (state == .accepted && !isAcknowledged))
            if isUnacknowledged { actions.append(.failed(id, request: request, .ackTimeout)) }
            terminate(&actions)
            return
        }
        if let trying, trying <= now {
            sendTrying(&actions)
        }
        if let retransmission, retransmission <= now {
            if let lastResponse { actions.append(.transmit(lastResponse, responseFlow)) }
            interval = min(interval * 2, timers.t2)
            self.retransmission = now + interval
        }
    }

    /// The connection is gone: nobody can be answered on it.
    mutating func fail(_ reason: String, into actions: inout FIFO<TransactionLayer.Action>) {
        if isPending { actions.append(.failed(id, request: request, .transport(reason))) }
        terminate(&actions)
    }

    private mutating func sendTrying(_ actions: inout FIFO<TransactionLayer.Action>) {
        trying = nil
        var response = request.response(status: 100)
        if let timestamp = request.headers["Timestamp"] { response.headers["Timestamp"] = timestamp }
        state = .proceeding
        lastResponse = response
        actions.append(.transmit(response, responseFlow))
    }

    private mutating func terminate(_ actions: inout FIFO<TransactionLayer.Action>) {
        guard state != .terminated else { return }
        state = .terminated
        actions.append(.terminated(id))
    }
}

/// What the ACK of a 2xx has in common with it: it comes with a branch of its own.
struct AcknowledgementKey: Hashable, Sendable {
    let callID: String
    let fromTag: String
    let toTag: String
    let sequence: UInt32

    /// The key of a 2xx or an ACK.
    init?(_ message: SIPMessage) {
        guard let callID = message.callID, let sequence = message.cseq?.number else { return nil }
        self.callID = callID
        self.sequence = sequence
        fromTag = message.from?.tag ?? ""
        toTag = message.to?.tag ?? ""
    }
}

/// What a request that reaches us over two paths has in common with itself (RFC 3261 section 8.2.2.2).
struct MergeKey: Hashable, Sendable {
    let callID: String
    let fromTag: String
    let cseq: SIPCSeq

    /// The key of a request outside a dialog; nil for others.
    init?(_ request: SIPMessage) {
        guard request.to?.tag == nil, let callID = request.callID, let cseq = request.cseq else { return nil }
        self.callID = callID
        self.cseq = cseq
        fromTag = request.from?.tag ?? ""
    }
}
