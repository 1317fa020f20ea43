import Primitives

extension TransactionLayer {
    /// Answers a request that ``Action/request(_:_:_:)`` delivered.
    ///
    /// A To tag is added to a response above 100 that has none. After the 2xx to an INVITE further 2xx responses are
    /// passed on (repetitions by a user agent, other forks by a proxy) until 64 · T1 have gone by (timer L).
    ///
    /// - Returns: whether it was sent; false when the transaction has ended or has its final response.
    @discardableResult
    public mutating func respond(_ response: SIPMessage, in id: TransactionID, at now: MonotonicTime) -> Bool {
        var response = response
        if let status = response.status, status > 100, var to = response.to, to.tag == nil {
            to.tag = statelessTag(for: response)
            response.to = to
        }
        let isSent = changeServer(id) { $0.respond(response, at: now, into: &$1) } ?? false
        if isSent, id.method == .invite, let status = response.status, (200..<300).contains(status),
            let key = AcknowledgementKey(response), acknowledgements[key] == nil
        {
            acknowledgements[key] = id
            servers.update(id, &actions) { transaction, _ in transaction.acknowledgementKeys.append(key) }
        }
        return isSent
    }

    /// Refuses a request that ``Action/request(_:_:_:)`` delivered, and keeps nothing of it: a repetition is delivered
    /// again, and the ACK of an INVITE is recognised by the To tag (RFC 3261 section 8.2.7).
    ///
    /// For what costs the sender nothing: a transaction for each refusal would let a stranger fill the table, since
    /// that of an INVITE lives until timer H without an ACK.
    ///
    /// - Parameter response: a 300–699 without To tag of its own, or to a request that has one.
    public mutating func refuse(_ response: SIPMessage, in id: TransactionID) {
        var response = response
        if var to = response.to, to.tag == nil {
            to.tag = statelessTag(for: response)
            response.to = to
        }
        changeServer(id) { $0.refuse(response, into: &$1) }
    }

    mutating func receiveRequest(_ message: SIPMessage, from flow: SIPFlow, at now: MonotonicTime) {
        guard let original = message.topVia, let method = message.method else { return }
        var request = message
        var via = original
        via.stamp(source: flow.remote)
        request.topVia = via
        if let fault = request.validate() {
            if method != .ack, (300..<700).contains(fault.status) {
                answerStatelessly(request, status: fault.status, reason: fault.reason, over: flow)
            }
            return
        }
        switch method {
        case .ack:
            let invite = TransactionID(serverFor: message, via: original, method: .invite)
            receiveAcknowledgement(request, of: invite, from: flow, at: now)
        case .cancel:
            receiveCancel(request, TransactionID(serverFor: message, via: original, method: .cancel), flow, now)
        default:
            receiveNew(request, TransactionID(serverFor: message, via: original, method: method), flow, now)
        }
    }

    private mutating func receiveNew(
        _ request: SIPMessage, _ id: TransactionID, _ flow: SIPFlow, _ now: MonotonicTime
    ) {
        if servers.contains(id) {
            changeServer(id) { $0.receiveRepetition(into: &$1) }
            return
        }
        let merge = limits.rejectsMergedRequests ? MergeKey(request) : nil
        if let merge, merging[merge] != nil {
            answerStatelessly(request, status: 482, reason: "Loop Detected", over: flow)
            return
        }
        guard servers.count < limits.serverTransactions else {
            let wait = limits.retryAfter.randomElement(using: &random) ?? limits.retryAfter.lowerBound
            answerStatelessly(
                request, status: 503, reason: "Service Unavailable", retryAfter: wait, over: flow)
            return
        }
        if let merge { merging[merge] = id }
        servers.insert(ServerTransaction(id: id, request: request, source: flow, timers: timers, at: now))
        actions.append(.request(request, id, flow))
    }

    private mutating func receiveAcknowledgement(
        _ ack: SIPMessage, of invite: TransactionID, from flow: SIPFlow, at now: MonotonicTime
    ) {
        let transaction = servers[invite]
        // Branches of RFC 2543 elements do not tell an ACK of a 2xx from one of a refusal; the To tag does.
        let isOfThisResponse =
            !invite.isLegacy || transaction?.lastResponse == nil
            || transaction?.lastResponse?.to?.tag == ack.to?.tag
        if transaction != nil, isOfThisResponse {
            let isForUser = changeServer(invite) { $0.receiveAcknowledgement(at: now, into: &$1) }
            if isForUser == true { actions.append(.ack(ack, invite, flow)) }
            return
        }
        if let tag = ack.to?.tag, tag == statelessTag(for: ack) { return }  // of a refusal without transaction
        let owner = AcknowledgementKey(ack).flatMap { acknowledgements[$0] }
        if let owner { servers.update(owner, &actions) { transaction, _ in transaction.isAcknowledged = true } }
        actions.append(.ack(ack, owner, flow))
    }

    private mutating func receiveCancel(
        _ cancel: SIPMessage, _ id: TransactionID, _ flow: SIPFlow, _ now: MonotonicTime
    ) {
        if servers.contains(id) {
            changeServer(id) { $0.receiveRepetition(into: &$1) }
            return
        }
        let inviteID = id.with(method: .invite)
        let invite = servers[inviteID]
        // CANCEL is hop by hop and cannot be challenged: only the INVITE's sender may send it.
        let isKnown = invite?.source.remote.host == flow.remote.host
        let tag = isKnown ? invite?.lastResponse?.to?.tag : nil
        let response = cancel.response(
            status: isKnown ? 200 : 481, reason: nil, toTag: tag ?? statelessTag(for: cancel))
        if servers.count < limits.serverTransactions {
            servers.insert(ServerTransaction(id: id, request: cancel, source: flow, timers: timers, at: now))
            changeServer(id) { _ = $0.respond(response, at: now, into: &$1) }
        } else {
            actions.append(.transmit(response, flow.responseFlow(for: cancel.topVia)))
        }
        if isKnown, changeServer(inviteID, { transaction, _ in transaction.cancel() }) == true {
            actions.append(.cancelled(invite: inviteID, cancel: cancel))
        }
    }

    /// Changes a server transaction, and forgets what points to it when it has ended.
    @discardableResult
    mutating func changeServer<Result>(
        _ id: TransactionID, _ change: (inout ServerTransaction, inout FIFO<Action>) -> Result
    ) -> Result? {
        guard let before = servers[id] else { return nil }
        let result = servers.update(id, &actions, change)
        if !servers.contains(id) {
            if let key = MergeKey(before.request), merging[key] == id { merging[key] = nil }
            for key in before.acknowledgementKeys where acknowledgements[key] == id { acknowledgements[key] = nil }
        }
        return result
    }

    private mutating func answerStatelessly(
        _ request: SIPMessage, status: Int, reason: String, retryAfter: Int? = nil, over flow: SIPFlow
    ) {
        var response = request.response(status: status, reason: reason, toTag: statelessTag(for: request))
        if let retryAfter { response.headers["Retry-After"] = String(retryAfter) }
        actions.append(.transmit(response, flow.responseFlow(for: request.topVia)))
    }

    /// A To tag that is the same for every repetition of a request (RFC 3261 section 8.2.7) and for its ACK.
    private func statelessTag(for message: SIPMessage) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325  // FNV-1a: no secret, only the same every time
        let sequence = String(message.cseq?.number ?? 0)
        for part in [message.callID ?? "", message.from?.tag ?? "", sequence, message.topVia?.branch ?? ""] {
            for byte in part.utf8 {
                hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
            }
            hash = (hash ^ 0xFF) &* 0x100_0000_01b3
        }
        return "sl" + String(hash, radix: 16)
    }
}
