import Primitives

/// A client transaction: RFC 3261 section 17.1 with the accepted state of RFC 6026.
struct ClientTransaction: TimedTransaction {
    enum State: Sendable {
        /// Sent, nothing heard: "calling" of an INVITE, "trying" of other requests.
        case calling
        case proceeding
        /// An INVITE with a 2xx: further 2xx may come.
        case accepted
        case completed
        case terminated
    }

    enum Cancellation: Sendable, Equatable {
        case none
        /// CANCEL may be sent only after a provisional response (section 9.1).
        case waiting(reason: String?)
        case sent
    }

    /// What the layer must do after a change.
    enum Demand: Sendable {
        case nothing
        case sendCancel(reason: String?)
    }

    let id: TransactionID
    let flow: SIPFlow
    let timers: SIPTimerSettings
    /// As sent, with our Via.
    private(set) var request: SIPMessage
    private(set) var state = State.calling
    private(set) var cancellation = Cancellation.none
    /// Timer A or E.
    private var retransmission: MonotonicTime?
    private var interval: Duration
    /// Timer B, D, F, K or M, by state; the end of waiting after a CANCEL.
    private var deadline: MonotonicTime?
    private let timerC: Duration?
    private var timerCDeadline: MonotonicTime?

    var isInvite: Bool { id.method == .invite }
    var isTerminated: Bool { state == .terminated }

    /// Whether a final response has come.
    var isFinal: Bool { state == .accepted || state == .completed || state == .terminated }

    var nextDeadline: MonotonicTime? {
        [retransmission, deadline, timerCDeadline].compactMap(\.self).min()
    }

    init(
        id: TransactionID, request: SIPMessage, flow: SIPFlow, timers: SIPTimerSettings, timerC: Duration?,
        at now: MonotonicTime
    ) {
        self.id = id
        self.request = request
        self.flow = flow
        self.timers = timers
        self.timerC = timerC
        interval = max(timers.t1, .milliseconds(1))
        retransmission = flow.transport.isReliable ? nil : now + interval
        deadline = now + timers.transactionTimeout
        timerCDeadline = timerC.map { now + $0 }
    }

    mutating func receive(
        _ response: SIPMessage, from source: SIPFlow, at now: MonotonicTime,
        into actions: inout FIFO<TransactionLayer.Action>
    ) -> Demand {
        // The branch makes the match (17.1.3). An answer to something else under our branch must not end the
        // transaction either: whoever waits for the right one would wait for ever.
        guard let status = response.status, response.callID == request.callID,
            response.cseq?.number == request.cseq?.number
        else { return .nothing }
        return isInvite
            ? receiveForInvite(response, status, source, now, &actions)
            : receiveForOther(response, status, source, now, &actions)
    }

    private mutating func receiveForInvite(
        _ response: SIPMessage, _ status: Int, _ source: SIPFlow, _ now: MonotonicTime,
        _ actions: inout FIFO<TransactionLayer.Action>
    ) -> Demand {
        switch (state, status) {
        case (.calling, ..<200), (.proceeding, ..<200):
            return receiveProvisional(response, status, source, now, &actions)
        case (.calling, ..<300), (.proceeding, ..<300):
            finish(in: .accepted, until: now + timers.transactionTimeout)  // timer M
            actions.append(.response(response, id, source))
        case (.calling, _), (.proceeding, _):
            let wait = flow.transport.isReliable ? .zero : timers.responseWait  // timer D
            actions.append(.transmit(acknowledgement(of: response), flow))
            actions.append(.response(response, id, source))
            finish(in: .completed, until: now + wait)
            if wait == .zero { terminate(&actions) }
        case (.accepted, 200..<300):
            actions.append(.response(response, id, source))
        case (.completed, 300...):
            // The ACK was lost: the same again, and nothing for the user.
            actions.append(.transmit(acknowledgement(of: response), flow))
        default:
            break
        }
        return .nothing
    }

    private mutating func receiveProvisional(
        _ response: SIPMessage, _ status: Int, _ source: SIPFlow, _ now: MonotonicTime,
        _ actions: inout FIFO<TransactionLayer.Action>
    ) -> Demand {
        if state == .calling {
            state = .proceeding
            retransmission = nil
            deadline = nil
        }
        // A proxy starts timer C anew on every provisional response but 100 (section 16.7 step 2).
        if let timerC, status > 100, cancellation == .none { timerCDeadline = now + timerC }
        actions.append(.response(response, id, source))
        guard case .waiting(let reason) = cancellation else { return .nothing }
        markCancelled(at: now)
        return .sendCancel(reason: reason)
    }

    private mutating func receiveForOther(
        _ response: SIPMessage, _ status: Int, _ source: SIPFlow, _ now: MonotonicTime,
        _ actions: inout FIFO<TransactionLayer.Action>
    ) -> Demand {
        guard state == .calling || state == .proceeding else { return .nothing }
        actions.append(.response(response, id, source))
        if status < 200 {
            state = .proceeding
            if retransmission != nil { interval = timers.t2 }
        } else {
            let wait = flow.transport.isReliable ? .zero : timers.t4  // timer K
            finish(in: .completed, until: now + wait)
            if wait == .zero { terminate(&actions) }
        }
        return .nothing
    }

    /// Asks for a CANCEL: now, after the next provisional response, or never since the request has been answered.
    mutating func cancel(reason: String?, at now: MonotonicTime) -> Demand {
        guard isInvite, !isFinal, cancellation == .none else { return .nothing }
        if state == .proceeding {
            markCancelled(at: now)
            return .sendCancel(reason: reason)
        }
        cancellation = .waiting(reason: reason)
        return .nothing
    }

    /// After 64 · T1 without a final response a cancelled INVITE is given up (section 9.1).
    private mutating func markCancelled(at now: MonotonicTime) {
        cancellation = .sent
        timerCDeadline = nil
        deadline = now + timers.transactionTimeout
    }

    mutating func timeout(at now: MonotonicTime, into actions: inout FIFO<TransactionLayer.Action>) -> Demand {
        if let deadline, deadline <= now {
            if isFinal {
                terminate(&actions)
            } else {
                fail(.timeout, &actions)
            }
            return .nothing
        }
        if let timerCDeadline, timerCDeadline <= now {
            self.timerCDeadline = nil
            // Without a provisional response timer B ends the transaction; section 16.8 treats that as a 408.
            guard state == .proceeding else {
                fail(.timeout, &actions)
                return .nothing
            }
            markCancelled(at: now)
            return .sendCancel(reason: nil)
        }
        if let retransmission, retransmission <= now {
            actions.append(.transmit(request, flow))
            if isInvite {
                interval *= 2  // timer A
            } else {
                interval = state == .proceeding ? timers.t2 : min(interval * 2, timers.t2)  // timer E
            }
            self.retransmission = now + interval
        }
        return .nothing
    }

    mutating func fail(_ failure: TransactionFailure, _ actions: inout FIFO<TransactionLayer.Action>) {
        if !isFinal { actions.append(.failed(id, request: request, failure)) }
        terminate(&actions)
    }

    private mutating func finish(in next: State, until end: MonotonicTime) {
        state = next
        retransmission = nil
        timerCDeadline = nil
        deadline = end
        request.body = []  // never sent again: only the ACK is built from it
    }

    private mutating func terminate(_ actions: inout FIFO<TransactionLayer.Action>) {
        guard state != .terminated else { return }
        state = .terminated
        actions.append(.terminated(id))
    }

    /// The ACK of a 3xx–6xx, which belongs to this transaction (section 17.1.1.3).
    private func acknowledgement(of response: SIPMessage) -> SIPMessage {
        var ack = request.companion(.ack)
        ack.headers["To"] = response.headers["To"]
        return ack
    }
}

extension SIPMessage {
    /// A CANCEL or ACK for this request: same request URI, top Via, From, To, Call-ID, CSeq number and Route.
    func companion(_ method: SIPMethod) -> SIPMessage {
        guard let uri = requestURI else { return self }
        var message = SIPMessage(request: method, uri: uri)
        message.vias = Array(vias.prefix(1))
        message.maxForwards = 70
        for route in headers.all("Route") { message.headers.append("Route", route) }
        for name in ["From", "To", "Call-ID"] { message.headers[name] = headers[name] }
        if let number = cseq?.number { message.cseq = SIPCSeq(number: number, method: method) }
        return message
    }
}
