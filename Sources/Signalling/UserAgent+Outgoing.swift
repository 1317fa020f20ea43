import Primitives
import SDP
import SIP

/// Calls that we place, until their INVITE is answered or refused.
extension UserAgent {
    /// Places a call; everything that follows comes as `.call` actions with the returned handle.
    ///
    /// - Parameters:
    ///   - target: whom to call.
    ///   - callID: the Call-ID, unique; nil makes one.
    ///   - headers: application headers to send with the INVITE; the caller has checked names and sizes.
    ///   - media: where this call's RTP will be received.
    ///   - offersMedia: false leaves the offer to the callee (a delayed offer); then the ACK or PRACK has our answer.
    public mutating func call(
        _ target: SIPURI, callID: String? = nil, headers: [(name: String, value: String)] = [], media: LocalMedia,
        offersMedia: Bool = true, at now: MonotonicTime
    ) -> CallHandle {
        let handle = makeHandle()
        guard let path else {
            emit(.call(handle, .ended(CallTermination(.network, phrase: "not connected to the platform"))))
            return handle
        }
        guard activeCalls < configuration.maximumCalls else {
            let phrase = "there are \(configuration.maximumCalls) calls already, the most that are configured"
            emit(.call(handle, .ended(CallTermination(.failed, isLocal: true, phrase: phrase))))
            return handle
        }
        var negotiation = OfferAnswer(
            sessionID: random.next() >> 2, capabilities: configuration.capabilities, local: media)
        let localTag = random.hexadecimal(bits: 64)
        var invite = SIPMessage(request: .invite, uri: target)
        var from = SIPAddress(uri: configuration.addressOfRecord, displayName: configuration.displayName)
        from.tag = localTag
        invite.from = from
        invite.to = SIPAddress(uri: target)
        invite.callID = callID ?? random.hexadecimal(bits: 128)
        invite.cseq = SIPCSeq(number: 1, method: .invite)
        invite.maxForwards = 70
        invite.contacts = [dialogContact(over: path)]
        addAbilities(to: &invite)
        if let seconds = wantedSession { invite.sessionExpires = SIPSessionExpires(seconds: seconds) }
        for header in headers { invite.headers.append(header.name, header.value) }
        if offersMedia {
            invite.contentType = "application/sdp"
            invite.body = negotiation.makeOffer()
        }
        // The route of our calls is the flow we registered over (RFC 5626), and behind it what the registrar said (3608).
        if let routes = registration?.terms.serviceRoutes, !routes.isEmpty { invite.routes = routes }
        let id = transactions.send(invite, over: path.flow, sentBy: path.via, at: now)
        var call = Call(
            handle: handle, direction: .outgoing, flow: path.flow, invite: invite, transaction: id, localTag: localTag)
        call.negotiation = negotiation
        call.noAnswerDeadline = now + configuration.noAnswerTimeout
        calls[handle] = call
        legs[id] = handle
        settle(at: now)
        return handle
    }

    /// What a message that sets up or changes a session says about us.
    func addAbilities(to message: inout SIPMessage) {
        message.headers["Allow"] = Self.allowedMethods
        message.headers["Supported"] = Self.extensions.joined(separator: ", ")
        message.headers["User-Agent"] = configuration.userAgent
    }

    /// Calls that count against the limit.
    var activeCalls: Int { calls.values.lazy.filter { $0.phase != .closing }.count }

    /// A response to the INVITE of an outgoing call that is not a 2xx.
    mutating func receiveInviteResponse(
        _ response: SIPMessage, status: Int, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        switch status {
        case ..<200: receiveProvisional(response, status: status, of: handle, at: now)
        case 401, 407: receiveChallenge(response, of: handle, at: now)
        case 422: receiveTooSmallInterval(response, of: handle, at: now)
        default: receiveRefusal(response, status: status, of: handle, at: now)
        }
    }

    /// Sends the INVITE of a call once more, changed: the early dialogs of the refused one are over.
    mutating func resendInvite(_ invite: SIPMessage, of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], let path else { return }
        let id = transactions.send(invite, over: path.flow, sentBy: path.via, at: now)
        for fork in call.forks where fork.hasEarlyMedia && !fork.hasEnded {
            emit(.call(handle, .earlyMediaEnded(fork: fork.fork)))
        }
        call.forks = []
        call.invite = invite
        call.inviteTransaction = id
        calls[handle] = call
        legs[id] = handle
    }

    private mutating func receiveChallenge(_ response: SIPMessage, of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], call.phase == .early, path != nil, call.inviteAttempts < 3 else {
            receiveRefusal(response, status: response.status ?? 401, of: handle, at: now)
            return
        }
        var invite = call.invite
        guard case .retry = authenticator.authorize(&invite, after: response) else {
            receiveRefusal(response, status: response.status ?? 401, of: handle, at: now)
            return
        }
        call.inviteAttempts += 1
        calls[handle] = call
        resendInvite(invite, of: handle, at: now)
    }

    /// A proxy or the callee wants a longer session interval: once more with theirs, but only once (RFC 4028, 7.3).
    private mutating func receiveTooSmallInterval(
        _ response: SIPMessage, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard var call = calls[handle], call.phase == .early, !call.hasRaisedInterval, path != nil,
            let minimum = response.minSE, let number = call.invite.cseq?.number
        else {
            receiveRefusal(response, status: 422, of: handle, at: now)
            return
        }
        call.hasRaisedInterval = true
        call.raiseMinimumSession(to: minimum)
        calls[handle] = call
        var invite = call.invite
        invite.minSE = call.minimumSession
        invite.sessionExpires = SIPSessionExpires(seconds: max(wantedSession ?? 0, call.minimumSession))
        invite.cseq = SIPCSeq(number: min(number, UInt32(Int32.max) - 1) + 1, method: .invite)
        resendInvite(invite, of: handle, at: now)
    }

    private mutating func receiveRefusal(
        _ response: SIPMessage, status: Int, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard let call = calls[handle], !redirect(response, status: status, of: handle, at: now) else { return }
        if call.phase == .closing {
            calls[handle] = nil
        } else {
            end(handle, CallTermination(refusal: response, status: status, hasRung: call.hasRung))
            if status == 403 { registerAnew(at: now) }
        }
    }

    /// A request of ours got no answer or could not be sent.
    mutating func transactionFailed(
        _ id: TransactionID, request: SIPMessage, of handle: CallHandle, failure: TransactionFailure,
        at now: MonotonicTime
    ) {
        guard var call = calls[handle] else { return }
        if call.phase == .closing {
            if case .transport = failure, request.method == .bye, id.role == .client {
                // The other side does not know yet: told as soon as the platform is there again.
                call.needsBye = true
                calls[handle] = call
            } else if id == call.inviteTransaction, call.direction == .outgoing || call.dialog == nil {
                calls[handle] = nil
            } else if request.method == .bye {
                calls[handle] = nil
            }
            return
        }
        if id == call.change?.transaction {
            failChange(of: handle, status: failure.status, phrase: failure.description, at: now)
            return
        }
        if id == call.outstanding?.transaction {
            finishOutstanding(
                RequestOutcome(status: failure.status, phrase: failure.description), of: handle, at: now)
            return
        }
        guard id == call.inviteTransaction, call.phase == .early else { return }
        switch failure {
        case .transport(let reason):
            end(handle, CallTermination(.network, phrase: reason))
        case .timeout, .ackTimeout:
            end(handle, CallTermination(.timeout, phrase: "the platform did not answer the INVITE"))
        }
    }
}

extension TransactionFailure {
    /// The status that the failure counts as (RFC 3261, 8.1.3.1).
    fileprivate var status: Int {
        if case .transport = self { 503 } else { 408 }
    }
}
