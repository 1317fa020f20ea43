import Primitives
import SDP
import SIP

extension UserAgent {
    /// Ends a call in whatever state it is. The user's side ends now; what the wire still needs happens behind it.
    ///
    /// - Parameters:
    ///   - status: for an unanswered incoming call, the response: 603 declines, 486 says busy.
    ///   - reason: a Reason header value for the CANCEL or BYE (RFC 3326).
    ///   - termination: what to report; nil: what follows from the state.
    public mutating func hangUp(
        _ handle: CallHandle, status: Int = 603, reason: String? = nil, termination: CallTermination? = nil,
        at now: MonotonicTime
    ) {
        guard var call = calls[handle], call.phase != .closing else { return }
        let told: CallTermination
        switch (call.phase, call.direction) {
        case (.early, .outgoing):
            told = CallTermination(.canceled, isLocal: true, phrase: "canceled by the caller")
            call.phase = .closing
            call.noAnswerDeadline = nil
            call.forgetDeadline = now + configuration.timers.t1 * 64
            calls[handle] = call
            if let id = transactions.cancel(call.inviteTransaction, reason: reason, at: now) { legs[id] = handle }
        case (.early, .incoming):
            told = CallTermination(
                status == 486 ? .busy : .declined, isLocal: true, sipStatus: status, phrase: "refused here")
            transactions.respond(
                ownResponse(to: call.invite, status: status, localTag: call.localTag), in: call.inviteTransaction,
                at: now)
            calls[handle] = nil
        case (.answering, _):
            told = CallTermination(.hungUp, isLocal: true, phrase: "hung up here")
            // A BYE must not overtake the ACK (RFC 3261, 15): it waits, the user does not.
            call.phase = .closing
            call.hangUpWhenAcknowledged = true
            calls[handle] = call
        default:
            told = CallTermination(.hungUp, isLocal: true, phrase: "hung up here")
            sendBye(handle, reason: reason, at: now)
        }
        emit(.call(handle, .ended(termination ?? told)))
        settle(at: now)
    }

    /// Sends the BYE of a confirmed dialog and lets the leg fade: its end was or will be told elsewhere.
    mutating func sendBye(_ handle: CallHandle, reason: String?, at now: MonotonicTime) {
        guard var call = calls[handle], var dialog = call.dialog, let path else {
            calls[handle] = nil
            return
        }
        var bye = dialog.request(.bye, contact: nil)
        bye.headers["User-Agent"] = configuration.userAgent
        if let reason { bye.headers["Reason"] = reason }
        call.dialog = dialog
        call.phase = .closing
        call.answer = nil
        call.noAnswerDeadline = nil
        call.hangUpWhenAcknowledged = false
        call.forgetDeadline = now + configuration.timers.t1 * 64
        calls[handle] = call
        legs[transactions.send(bye, over: currentFlow(of: call), sentBy: path.via, at: now)] = handle
    }

    /// Reports the end of a leg that needs nothing more from the wire.
    mutating func end(_ handle: CallHandle, _ termination: CallTermination) {
        guard calls.removeValue(forKey: handle) != nil else { return }
        emit(.call(handle, .ended(termination)))
    }

    /// The leg whose dialog a message belongs to, closing ones included.
    func handle(for message: SIPMessage) -> CallHandle? {
        calls.first { _, call in
            call.callID == message.callID && call.dialog?.matches(message) ?? false
        }?.key
    }

    mutating func receiveInDialog(_ request: SIPMessage, in id: TransactionID, at now: MonotonicTime) {
        guard let handle = handle(for: request), var call = calls[handle], var dialog = call.dialog else {
            refuse(request, in: id, status: 481, at: now)
            return
        }
        guard dialog.accepts(request) else {
            refuse(request, in: id, status: 500, reason: "Out of order", at: now)
            return
        }
        call.dialog = dialog
        calls[handle] = call
        switch request.method {
        case .some(.bye):
            receiveBye(request, in: id, of: handle, at: now)
        case .some(.invite):
            receiveReinvite(request, in: id, of: handle, at: now)
        case .some(.options):
            transactions.respond(ownResponse(to: request, status: 200, localTag: call.localTag), in: id, at: now)
        default:
            var response = request.response(status: 405)
            response.headers["Allow"] = Self.allowedMethods
            transactions.respond(response, in: id, at: now)
        }
    }

    private mutating func receiveBye(
        _ bye: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard let call = calls[handle] else { return }
        transactions.respond(ownResponse(to: bye, status: 200, localTag: call.localTag), in: id, at: now)
        if call.phase == .early {
            // The caller ends an early dialog with BYE (15.1.2): the INVITE is answered as if cancelled.
            transactions.respond(
                ownResponse(to: call.invite, status: 487, localTag: call.localTag), in: call.inviteTransaction, at: now)
        }
        if call.phase == .closing {
            calls[handle] = nil
        } else {
            let reason = ReasonHeader(bye)
            end(
                handle,
                CallTermination(
                    call.phase == .early ? .canceled : .hungUp, sipStatus: reason?.cause,
                    phrase: reason?.text ?? "the other side hung up"))
        }
    }

    private mutating func receiveReinvite(
        _ invite: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard var call = calls[handle], var negotiation = call.negotiation, call.phase == .confirmed,
            call.answer == nil
        else {
            refuse(invite, in: id, status: 491, at: now)
            return
        }
        var response = ownResponse(to: invite, status: 200, localTag: call.localTag)
        response.contentType = "application/sdp"
        if invite.body.isEmpty {
            response.body = negotiation.makeOffer()
            call.awaitsAnswerInAck = true
        } else {
            do {
                let (answer, audio) = try negotiation.receiveOffer(invite.body)
                response.body = answer
                if audio != call.media {
                    call.media = audio
                    emit(.call(handle, .mediaChanged(audio)))
                }
            } catch {
                refuse(invite, in: id, status: error.status, at: now)
                return
            }
        }
        call.negotiation = negotiation
        call.answer = AnswerRepetition(
            response: response, transaction: id, interval: configuration.timers.t1,
            next: now + configuration.timers.t1, deadline: now + configuration.timers.t1 * 64)
        calls[handle] = call
        legs[id] = handle
        transactions.respond(response, in: id, at: now)
    }

    /// Cancels an outgoing call that nobody answered; it ends with `noAnswer`, or `timeout` when nothing rang.
    public mutating func giveUpRinging(_ handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], call.phase == .early, call.direction == .outgoing else { return }
        let phrase = call.hasRung ? "nobody answered" : "nothing rang"
        hangUp(
            handle, reason: "SIP;cause=408;text=\"no answer\"",
            termination: CallTermination(call.hasRung ? .noAnswer : .timeout, isLocal: true, phrase: phrase),
            at: now)
    }

    /// What is due for one leg: repeat the answer, give up ringing, forget what is over.
    mutating func callTimeout(_ handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle] else { return }
        if let forget = call.forgetDeadline, forget <= now {
            calls[handle] = nil
            return
        }
        if let deadline = call.noAnswerDeadline, deadline <= now {
            giveUpRinging(handle, at: now)
            return
        }
        guard var answer = call.answer, answer.next <= now else { return }
        if answer.deadline <= now {
            let wasTold = call.phase == .closing
            call.answer = nil
            calls[handle] = call
            sendBye(handle, reason: "SIP;cause=408;text=\"no ACK\"", at: now)
            if !wasTold {
                emit(.call(handle, .ended(CallTermination(.network, phrase: "the answer was never acknowledged"))))
            }
            return
        }
        transactions.respond(answer.response, in: answer.transaction, at: now)
        answer.interval = min(answer.interval * 2, configuration.timers.t2)
        answer.next = min(now + answer.interval, answer.deadline)
        call.answer = answer
        calls[handle] = call
    }
}

extension UserAgent {
    /// The flow for what a call has to say now. A connection that the call began over and that has broken since was
    /// followed by another one, which all traffic takes (RFC 5626, 4.3).
    func currentFlow(of call: Call) -> SIPFlow {
        guard call.flow.transport.isReliable, let path else { return call.flow }
        return path.flow
    }
}
