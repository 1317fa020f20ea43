import Primitives
import SDP
import SIP

extension UserAgent {
    /// Places a call; everything that follows comes as `.call` actions with the returned handle.
    ///
    /// - Parameters:
    ///   - target: whom to call.
    ///   - callID: the Call-ID, unique; nil makes one.
    ///   - headers: application headers to send with the INVITE; the caller has checked names and sizes.
    ///   - media: where this call's RTP will be received.
    public mutating func call(
        _ target: SIPURI, callID: String? = nil, headers: [(name: String, value: String)] = [], media: LocalMedia,
        at now: MonotonicTime
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
        invite.headers["Allow"] = Self.allowedMethods
        invite.headers["User-Agent"] = configuration.userAgent
        for header in headers { invite.headers.append(header.name, header.value) }
        invite.contentType = "application/sdp"
        invite.body = negotiation.makeOffer()
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

    static let allowedMethods = "INVITE, ACK, CANCEL, BYE, OPTIONS"

    /// Calls that count against the limit.
    var activeCalls: Int { calls.values.lazy.filter { $0.phase != .closing }.count }

    mutating func receiveResponse(
        _ response: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard let status = response.status, let method = response.cseq?.method else { return }
        if method == .bye {
            if status >= 200 { receiveByeResponse(status, of: handle, at: now) }
            return
        }
        guard method == .invite else { return }
        if (200..<300).contains(status) {
            receiveAnswer(response, in: id, of: handle, at: now)
            return
        }
        guard id == calls[handle]?.inviteTransaction else { return }
        switch status {
        case ..<200: receiveProvisional(response, status: status, of: handle)
        case 401, 407: receiveChallenge(response, of: handle, at: now)
        default: receiveRefusal(response, status: status, of: handle, at: now)
        }
    }

    /// Both sides know now that it is over.
    private mutating func receiveByeResponse(_ status: Int, of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], call.phase == .closing, !call.needsBye else { return }
        if status == 403, !call.hasRepeatedBye {
            // A platform that started anew relays nothing for clients that are not registered with it again.
            let isComing = registrationState == .registering || nextRegistrationAttempt != nil
            if registerAnew(at: now) || (!isPathRegistered && isComing) {
                call.hasRepeatedBye = true
                call.needsBye = true
                calls[handle] = call
                isPathRegistered = false
                return
            }
        }
        calls[handle] = nil
    }

    private mutating func receiveProvisional(_ response: SIPMessage, status: Int, of handle: CallHandle) {
        guard var call = calls[handle], call.phase == .early, status > 100 else { return }
        if !call.hasProgressed {
            call.hasProgressed = true
            emit(.call(handle, .progressed))
        }
        if status == 180, !call.hasRung {
            call.hasRung = true
            emit(.call(handle, .rang))
        }
        calls[handle] = call
    }

    private mutating func receiveAnswer(
        _ response: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        let tag = response.to?.tag ?? ""
        if let ack = answeredInvites[id]?.acknowledgements[tag] {
            // The 2xx was repeated: its ACK was lost (13.2.2.4).
            resend(ack)
            return
        }
        if let answered = answeredInvites[id] {
            dismissFork(response, of: answered.invite, in: id, at: now)
            return
        }
        guard var call = calls[handle], id == call.inviteTransaction else { return }
        guard let dialog = try? SIPDialog(asClientFor: call.invite, response: response) else {
            // The layer matched it by its branch, but tags or Call-ID are not those of our INVITE.
            call.phase == .closing
                ? calls[handle] = nil
                : end(handle, CallTermination(.failed, phrase: "the answer belongs to another call"))
            return
        }
        let ack = acknowledgement(in: dialog, of: call.invite)
        var answered = AnsweredInvite(invite: call.invite)
        answered.acknowledgements[tag] = ack
        answeredInvites[id] = answered
        call.lastAck = ack
        call.dialog = dialog
        call.noAnswerDeadline = nil
        calls[handle] = call
        resend(ack)
        if call.phase == .closing {
            // Our CANCEL crossed the answer: the call exists, so it is ended as calls are (RFC 3261, 15).
            sendBye(handle, reason: call.byeReason, at: now)
            return
        }
        call.phase = .confirmed
        do {
            let audio = try negotiate(answer: response.body, in: &call)
            call.media = audio
            calls[handle] = call
            emit(.call(handle, .answered(audio)))
        } catch {
            calls[handle] = call
            sendBye(handle, reason: "SIP;cause=488;text=\"unusable answer\"", at: now)
            emit(
                .call(handle, .ended(CallTermination(.media, phrase: "the answer cannot be used: \(error.reason)"))))
        }
    }

    private func negotiate(answer: [UInt8], in call: inout Call) throws(SDPNegotiationError) -> NegotiatedAudio {
        guard var negotiation = call.negotiation else {
            throw SDPNegotiationError(code: .malformed, reason: "there was no offer")
        }
        defer { call.negotiation = negotiation }
        return try negotiation.receiveAnswer(answer)
    }

    /// A second device answered the same INVITE: acknowledge, then hang up (13.2.2.4).
    private mutating func dismissFork(
        _ response: SIPMessage, of invite: SIPMessage, in id: TransactionID?, at now: MonotonicTime
    ) {
        guard var fork = try? SIPDialog(asClientFor: invite, response: response), let path else { return }
        let ack = acknowledgement(in: fork, of: invite)
        if let id, var answered = answeredInvites[id] {
            guard answered.acknowledgements.count < AnsweredInvite.maximumAnswers else { return }
            answered.acknowledgements[response.to?.tag ?? ""] = ack
            answeredInvites[id] = answered
        }
        resend(ack)
        var bye = fork.request(.bye, contact: nil)
        bye.headers["User-Agent"] = configuration.userAgent
        _ = transactions.send(bye, over: path.flow, sentBy: path.via, at: now)
    }

    /// The ACK for a 2xx: a request of its own with a Via of its own, but no transaction (13.2.2.4).
    private mutating func acknowledgement(in dialog: SIPDialog, of invite: SIPMessage) -> SIPMessage {
        var ack = dialog.ack(for: invite.cseq?.number ?? 1, credentialsFrom: invite)
        if var via = path?.via {
            via.branch = transactions.makeBranch()
            ack.vias = [via]
        }
        ack.headers["User-Agent"] = configuration.userAgent
        return ack
    }

    /// Sends an ACK, for the first time or again, over the path that there is now.
    private mutating func resend(_ ack: SIPMessage) {
        if let path { transactions.sendStateless(ack, over: path.flow) }
    }

    private mutating func receiveChallenge(_ response: SIPMessage, of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], call.phase == .early, let path else {
            receiveRefusal(response, status: response.status ?? 401, of: handle, at: now)
            return
        }
        var invite = call.invite
        guard call.inviteAttempts < 3, case .retry = authenticator.authorize(&invite, after: response) else {
            receiveRefusal(response, status: response.status ?? 401, of: handle, at: now)
            return
        }
        let id = transactions.send(invite, over: path.flow, sentBy: path.via, at: now)
        call.invite = invite
        call.inviteTransaction = id
        call.inviteAttempts += 1
        calls[handle] = call
        legs[id] = handle
    }

    private mutating func receiveRefusal(
        _ response: SIPMessage, status: Int, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard let call = calls[handle] else { return }
        if call.phase == .closing {
            calls[handle] = nil
        } else {
            let phrase = ReasonHeader(response)?.text ?? response.reason ?? ""
            end(handle, CallTermination(status: status, phrase: phrase, hasRung: call.hasRung))
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
        guard id == call.inviteTransaction, call.phase == .early else { return }
        switch failure {
        case .transport(let reason):
            end(handle, CallTermination(.network, phrase: reason))
        case .timeout, .ackTimeout:
            end(handle, CallTermination(.timeout, phrase: "the platform did not answer the INVITE"))
        }
    }

    /// A 2xx after its transaction is gone: a repetition whose ACK was lost, or a very late device.
    mutating func receiveStray(_ response: SIPMessage, at now: MonotonicTime) {
        guard let status = response.status, (200..<300).contains(status), response.cseq?.method == .invite,
            let callID = response.callID, let tag = response.from?.tag,
            let call = calls.values.first(where: {
                $0.callID == callID && $0.localTag == tag && $0.direction == .outgoing
                    && $0.invite.cseq == response.cseq
            }), let dialog = call.dialog
        else { return }
        if dialog.remoteTag == response.to?.tag ?? "" {
            if let ack = call.lastAck { resend(ack) }
        } else {
            dismissFork(response, of: call.invite, in: nil, at: now)
        }
    }
}
