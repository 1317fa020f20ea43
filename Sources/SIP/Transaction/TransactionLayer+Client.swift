import Primitives

extension TransactionLayer {
    /// Sends a request in a new client transaction.
    ///
    /// The layer adds a Via made of `sentBy` with a fresh branch, and Max-Forwards when it is missing. An ACK (for a
    /// 2xx) has no transaction: it is sent as by ``sendStateless(_:over:sentBy:)``.
    ///
    /// - Parameter sentBy: transport, host, port and parameters (`rport`) of the Via.
    /// - Parameter timerC: for a proxy's INVITE, how long it may go without a final response (RFC 3261 section 16.6
    ///   step 11: more than 3 min). Every provisional response above 100 starts it anew. When it ends the layer
    ///   cancels the INVITE, and fails it with ``TransactionFailure/timeout`` if that brings no final response
    ///   within 64 · T1.
    /// - Returns: the transaction; if the layer is full it has failed already (a ``Action/failed(_:request:_:)``
    ///   follows).
    @discardableResult
    public mutating func send(
        _ request: SIPMessage, over flow: SIPFlow, sentBy: SIPVia, timerC: Duration? = nil, at now: MonotonicTime
    ) -> TransactionID {
        var via = sentBy
        let branch = makeBranch()
        via.branch = branch
        var outgoing = request
        outgoing.prependVia(via)
        if outgoing.maxForwards == nil { outgoing.maxForwards = 70 }
        let id = TransactionID(clientBranch: branch, method: request.method ?? "")
        if id.method == .ack {
            actions.append(.transmit(outgoing, flow))
        } else {
            start(outgoing, id: id, over: flow, timerC: id.method == .invite ? timerC : nil, at: now)
        }
        return id
    }

    /// Sends a message without a transaction: the ACK of a 2xx, or what a proxy forwards statelessly.
    ///
    /// - Parameter sentBy: when given, a Via made of it with a fresh branch is added (an ACK of a 2xx needs one).
    public mutating func sendStateless(_ message: SIPMessage, over flow: SIPFlow, sentBy: SIPVia? = nil) {
        var outgoing = message
        if var via = sentBy {
            via.branch = makeBranch()
            outgoing.prependVia(via)
        }
        actions.append(.transmit(outgoing, flow))
    }

    /// Cancels an INVITE that has no final response yet.
    ///
    /// The CANCEL goes out now, or with the first provisional response (RFC 3261 section 9.1); if a final response
    /// comes first there is no CANCEL. The INVITE ends with the 487, or any other final response, a 2xx included; it
    /// fails with ``TransactionFailure/timeout`` when none comes within 64 · T1 after the CANCEL.
    ///
    /// - Parameter reason: the value of a Reason header (RFC 3326).
    /// - Returns: the CANCEL's transaction, also when it is sent later or was sent before; nil when there is nothing
    ///   to cancel.
    @discardableResult
    public mutating func cancel(_ id: TransactionID, reason: String? = nil, at now: MonotonicTime) -> TransactionID? {
        guard let invite = clients[id], invite.isInvite, !invite.isFinal else { return nil }
        let demand = clients.update(id, &actions) { transaction, _ in transaction.cancel(reason: reason, at: now) }
        fulfil(demand, of: id, at: now)
        return id.with(method: .cancel)
    }

    mutating func fulfil(_ demand: ClientTransaction.Demand?, of id: TransactionID, at now: MonotonicTime) {
        guard case .sendCancel(let reason) = demand, let invite = clients[id] else { return }
        var cancel = invite.request.companion(.cancel)
        if let reason { cancel.headers["Reason"] = reason }
        start(cancel, id: id.with(method: .cancel), over: invite.flow, timerC: nil, at: now)
    }

    mutating func receiveResponse(_ response: SIPMessage, from flow: SIPFlow, at now: MonotonicTime) {
        guard response.validate() == nil, let branch = response.topVia?.branch, let method = response.cseq?.method
        else { return }
        let id = TransactionID(clientBranch: branch, method: method)
        let demand = clients.update(id, &actions) { $0.receive(response, from: flow, at: now, into: &$1) }
        if demand == nil {
            actions.append(.strayResponse(response, flow))
        } else {
            fulfil(demand, of: id, at: now)
        }
    }

    private mutating func start(
        _ request: SIPMessage, id: TransactionID, over flow: SIPFlow, timerC: Duration?, at now: MonotonicTime
    ) {
        // A CANCEL is always let through: it makes room.
        guard clients.count < limits.clientTransactions || id.method == .cancel else {
            let reason = "\(clients.count) requests are waiting for answers already"
            actions.append(.failed(id, request: request, .transport(reason)))
            actions.append(.terminated(id))
            return
        }
        actions.append(.transmit(request, flow))
        clients.insert(
            ClientTransaction(id: id, request: request, flow: flow, timers: timers, timerC: timerC, at: now))
    }
}
