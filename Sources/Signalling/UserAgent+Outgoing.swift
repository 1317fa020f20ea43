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
        invite.contacts = [path.contact(user: configuration.user)]
        invite.headers["Allow"] = Self.allowedMethods
        invite.headers["User-Agent"] = configuration.userAgent
        for header in headers { invite.headers.append(header.name, header.value) }
        invite.contentType = "application/sdp"
        invite.body = negotiation.makeOffer()
        // The route of our calls is the flow we registered over (RFC 5626): no Route header is needed for one hop.
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

    mutating func receiveResponse(
        _ response: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard let call = calls[handle], let status = response.status else { return }
        if response.cseq?.method == .bye, call.phase == .closing, status >= 200 {
            // Both sides know now that it is over.
            calls[handle] = nil
            return
        }
        guard response.cseq?.method == .invite, id == call.inviteTransaction else { return }
        switch status {
        case ..<200: receiveProvisional(response, status: status, of: handle)
        case ..<300: receiveAnswer(response, of: handle, at: now)
        case 401, 407: receiveChallenge(response, of: handle, at: now)
        default: receiveRefusal(response, status: status, of: handle)
        }
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

    private mutating func receiveAnswer(_ response: SIPMessage, of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle] else { return }
        if let dialog = call.dialog {
            if dialog.remoteTag == response.to?.tag {
                // The 2xx was repeated: its ACK was lost (13.2.2.4).
                if let ack = call.lastAck { transactions.sendStateless(ack, over: currentFlow(of: call)) }
            } else {
                dismissFork(response, of: call, at: now)
            }
            return
        }
        guard var dialog = try? SIPDialog(asClientFor: call.invite, response: response) else {
            end(handle, CallTermination(.failed, phrase: "the answer lacks a tag or a contact"))
            return
        }
        let ack = acknowledgement(in: &dialog, sequence: call.invite.cseq?.number ?? 1, flow: currentFlow(of: call))
        call.lastAck = ack
        call.dialog = dialog
        call.noAnswerDeadline = nil
        transactions.sendStateless(ack, over: currentFlow(of: call))
        if call.phase == .closing {
            // Our CANCEL crossed the answer: the call exists, so it is ended as calls are (RFC 3261, 15).
            calls[handle] = call
            sendBye(handle, reason: nil, at: now)
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
    private mutating func dismissFork(_ response: SIPMessage, of call: Call, at now: MonotonicTime) {
        guard var fork = try? SIPDialog(asClientFor: call.invite, response: response), let path else { return }
        let ack = acknowledgement(in: &fork, sequence: call.invite.cseq?.number ?? 1, flow: currentFlow(of: call))
        transactions.sendStateless(ack, over: currentFlow(of: call))
        let bye = fork.request(.bye, contact: nil)
        _ = transactions.send(bye, over: currentFlow(of: call), sentBy: path.via, at: now)
    }

    /// The ACK for a 2xx: a request of its own with a Via of its own, but no transaction (13.2.2.4).
    func acknowledgement(in dialog: inout SIPDialog, sequence: UInt32, flow: SIPFlow) -> SIPMessage {
        var ack = dialog.ack(for: sequence)
        if var via = path?.via {
            var random = random
            via.branch = "z9hG4bK" + random.hexadecimal(bits: 96)
            ack.vias = [via]
        }
        ack.headers["User-Agent"] = configuration.userAgent
        return ack
    }

    private mutating func receiveChallenge(_ response: SIPMessage, of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], call.phase == .early, let path else {
            receiveRefusal(response, status: response.status ?? 401, of: handle)
            return
        }
        var invite = call.invite
        guard call.inviteAttempts < 3, case .retry = authenticator.authorize(&invite, after: response) else {
            receiveRefusal(response, status: response.status ?? 401, of: handle)
            return
        }
        invite.cseq = SIPCSeq(number: (invite.cseq?.number ?? 1) &+ 1, method: .invite)
        invite.vias = []
        let id = transactions.send(invite, over: path.flow, sentBy: path.via, at: now)
        call.invite = invite
        call.inviteTransaction = id
        call.inviteAttempts += 1
        calls[handle] = call
        legs[id] = handle
    }

    private mutating func receiveRefusal(_ response: SIPMessage, status: Int, of handle: CallHandle) {
        guard let call = calls[handle] else { return }
        if call.phase == .closing {
            calls[handle] = nil
        } else {
            let phrase = ReasonHeader(response)?.text ?? response.reason ?? ""
            end(handle, CallTermination(status: status, phrase: phrase, hasRung: call.hasRung))
        }
    }

    /// A request of ours got no answer or could not be sent.
    mutating func transactionFailed(
        _ id: TransactionID, request: SIPMessage, of handle: CallHandle, failure: TransactionFailure,
        at now: MonotonicTime
    ) {
        guard let call = calls[handle] else { return }
        if call.phase == .closing {
            if id == call.inviteTransaction || request.method == .bye { calls[handle] = nil }
            return
        }
        guard id == call.inviteTransaction, call.phase == .early, call.direction == .outgoing else { return }
        switch failure {
        case .transport(let reason):
            end(handle, CallTermination(.network, phrase: reason))
        case .timeout, .ackTimeout:
            end(handle, CallTermination(.timeout, phrase: "the platform did not answer the INVITE"))
        }
    }

    /// A 2xx after its transaction is gone: a late fork, or a repetition whose ACK was lost.
    mutating func receiveStray(_ response: SIPMessage, at now: MonotonicTime) {
        guard let status = response.status, (200..<300).contains(status), response.cseq?.method == .invite,
            let callID = response.callID, let tag = response.from?.tag
        else { return }
        for (handle, call) in calls where call.callID == callID && call.localTag == tag && call.direction == .outgoing {
            receiveAnswer(response, of: handle, at: now)
            return
        }
    }
}
