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
            call.byeReason = reason
            // The INVITE's transaction ends by itself, with the 487 or without, 64 · T1 after the CANCEL at the latest;
            // until then an answer may cross it. The CANCEL waits for a provisional response, so that can be late.
            call.forgetDeadline = now + configuration.timers.transactionTimeout * 3
            let isCancelled = transactions.cancel(call.inviteTransaction, reason: reason, at: now) != nil
            calls[handle] = isCancelled ? call : nil
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
            call.byeReason = reason
            calls[handle] = call
        default:
            told = CallTermination(.hungUp, isLocal: true, phrase: "hung up here")
            sendBye(handle, reason: reason, at: now)
        }
        emit(.call(handle, .ended(termination ?? told)))
        settle(at: now)
    }

    /// Ends a confirmed dialog with BYE and lets the leg fade: its end was or will be told elsewhere.
    ///
    /// The BYE waits, for 64 · T1 at most, when there is no path to the platform, or a new one that is not registered.
    mutating func sendBye(_ handle: CallHandle, reason: String?, at now: MonotonicTime) {
        guard var call = calls[handle], call.dialog != nil else {
            calls[handle] = nil
            return
        }
        call.phase = .closing
        call.answer = nil
        call.noAnswerDeadline = nil
        call.hangUpWhenAcknowledged = false
        call.timer = nil
        call.waiting = []
        call.outstanding = nil
        // The 2xx to a re-INVITE of ours may still come, and wants its ACK.
        call.change?.deadline = nil
        call.change?.retryAt = nil
        call.needsBye = true
        call.byeReason = reason
        call.forgetDeadline = now + configuration.timers.transactionTimeout
        calls[handle] = call
        transmitBye(handle, at: now)
    }

    mutating func transmitBye(_ handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], var session = call.session, let path,
            isPathRegistered || (path.flow == call.flow && !call.hasRepeatedBye)
        else { return }
        var bye = session.dialog.request(.bye, contact: nil)
        bye.headers["User-Agent"] = configuration.userAgent
        if let reason = call.byeReason { bye.headers["Reason"] = reason }
        call.session = session
        call.needsBye = false
        calls[handle] = call
        sendUnqueued(bye, of: handle, at: now, over: path)
    }

    /// Reports the end of a leg that needs nothing more from the wire.
    mutating func end(_ handle: CallHandle, _ termination: CallTermination) {
        guard calls.removeValue(forKey: handle) != nil else { return }
        emit(.call(handle, .ended(termination)))
    }

    /// The leg whose dialog a message belongs to, closing ones included.
    func handle(for message: SIPMessage) -> CallHandle? {
        calls.first { $0.value.matches(message) }?.key
    }

    mutating func receiveInDialog(_ request: SIPMessage, in id: TransactionID, at now: MonotonicTime) {
        let tag = request.from?.tag ?? ""
        guard let handle = handle(for: request), var session = calls[handle]?[remoteTag: tag],
            calls[handle]?.phase != .closing || request.method == .bye
        else {
            refuse(request, in: id, status: 481, at: now)
            return
        }
        guard session.dialog.accepts(request) else {
            refuse(request, in: id, status: 500, reason: "Out of order", at: now)
            return
        }
        session.note(abilitiesIn: request)
        calls[handle]?[remoteTag: tag] = session
        guard !requiresExtension(request, in: id, at: now),
            let request = readable(request, in: id, at: now)
        else { return }
        switch request.method {
        case .some(.bye):
            receiveBye(request, in: id, of: handle, at: now)
        case .some(.invite):
            receiveReinvite(request, in: id, of: handle, at: now)
        case .some(.update):
            receiveUpdate(request, in: id, of: handle, at: now)
        case .some(.prack):
            receivePrack(request, in: id, of: handle, at: now)
        case .some(.options):
            answerOptions(request, in: id, localTag: session.dialog.localTag, at: now)
        case .some(.info):
            receiveInfo(request, in: id, of: handle, at: now)
        case .some(.refer):
            receiveRefer(request, in: id, of: handle, at: now)
        case .some(.notify):
            receiveNotify(request, in: id, of: handle, at: now)
        default:
            refuseMethod(request, in: id, at: now)
        }
    }

    private mutating func receiveBye(
        _ bye: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard let call = calls[handle] else { return }
        transactions.respond(ownResponse(to: bye, status: 200, localTag: call.localTag), in: id, at: now)
        if call.phase == .early, call.direction == .outgoing {
            // A device that rang ends its dialog: no longer allowed to (15), but clear. The INVITE goes on.
            let tag = bye.from?.tag ?? ""
            let wasHeard = call[remoteTag: tag]?.hasEarlyMedia ?? false
            calls[handle]?[remoteTag: tag]?.hasEnded = true
            if wasHeard, let fork = call[remoteTag: tag], !fork.hasEnded {
                emit(.call(handle, .earlyMediaEnded(fork: fork.fork)))
            }
            return
        }
        if call.phase == .early {
            // The caller ends an early dialog with BYE (15.1.2): the INVITE is answered as if cancelled.
            transactions.respond(
                ownResponse(to: call.invite, status: 487, localTag: call.localTag), in: call.inviteTransaction, at: now)
        }
        if call.phase == .closing {
            calls[handle] = nil
        } else {
            let reason = ReasonHeader(bye)
            transferEnds(with: handle)
            end(
                handle,
                CallTermination(
                    call.phase == .early ? .canceled : .hungUp, sipStatus: reason?.sipStatus,
                    phrase: reason?.text ?? "the other side hung up"))
        }
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
        guard let call = calls[handle] else { return }
        if let forget = call.forgetDeadline, forget <= now {
            calls[handle] = nil
            return
        }
        if let deadline = call.noAnswerDeadline, deadline <= now {
            call.direction == .outgoing ? giveUpRinging(handle, at: now) : stopRinging(handle, at: now)
            return
        }
        if let ring = call.nextRing, ring <= now {
            ringAgain(handle, at: now)
            return
        }
        provisionalTimeout(handle, at: now)
        changeTimeout(handle, at: now)
        transferTimeout(handle, at: now)
        sessionTimeout(handle, at: now)
        guard var call = calls[handle], var answer = call.answer, answer.next <= now else { return }
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
