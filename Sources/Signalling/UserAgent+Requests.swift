import Primitives
import SIP

/// A request to be sent within a call, without what the dialog itself gives it (Call-ID, tags, CSeq, route).
struct InDialogRequest: Sendable {
    /// More than this do not wait in one call: whoever asks for more gets a failure at once.
    static let maximumWaiting = 64

    var method: SIPMethod
    var headers: [(name: String, value: String)] = []
    var contentType: String?
    var body: [UInt8] = []
}

/// What became of a request within a call.
struct RequestOutcome: Sendable {
    /// The final status; 408 when none came, 503 when the request could not be sent (RFC 3261, 8.1.3.1).
    var status: Int
    /// The response, where there is one.
    var response: SIPMessage?
    /// Why, for people.
    var phrase: String

    var isSuccess: Bool { (200..<300).contains(status) }
}

/// The request that a call waits for an answer to.
struct OutstandingRequest: Sendable {
    let request: InDialogRequest
    var message: SIPMessage
    var transaction: TransactionID
}

/// Requests within a call go out one after the other: a peer sees them in their order, whatever the network does to
/// them, and a change of the media never crosses a transfer that was asked for right after it.
extension UserAgent {
    /// Sends a request within an answered call as soon as nothing else of ours is under way there. What becomes of it is
    /// told to `receiveOutcome`, unless the call ends first.
    mutating func sendInDialog(_ request: InDialogRequest, of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], call.isAnswered else {
            receiveOutcome(
                RequestOutcome(status: 481, phrase: "there is no answered call to send it in"), of: request, in: handle,
                at: now)
            return
        }
        guard call.waiting.count < InDialogRequest.maximumWaiting else {
            receiveOutcome(
                RequestOutcome(status: 503, phrase: "\(call.waiting.count) requests wait to be sent already"),
                of: request, in: handle, at: now)
            return
        }
        call.waiting.append(request)
        calls[handle] = call
        proceed(handle, at: now)
    }

    /// Where outcomes go, by method.
    private mutating func receiveOutcome(
        _ outcome: RequestOutcome, of request: InDialogRequest, in handle: CallHandle, at now: MonotonicTime
    ) {
        switch request.method {
        case .update: receiveRefreshOutcome(outcome, of: handle, at: now)
        case .refer: receiveReferOutcome(outcome, of: handle, at: now)
        case .notify: receiveNotifyOutcome(outcome, of: handle)
        case .info: receiveInfoOutcome(outcome, of: handle)
        default: break
        }
    }

    /// Does the next thing that a call wants of its peer, when nothing else is under way between the two.
    mutating func proceed(_ handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], call.canOffer, call.outstanding == nil, let path,
            isPathRegistered || path.flow == call.flow
        else { return }
        if let change = call.change {
            // One that was refused for the moment goes on when its pause is over.
            if change.transaction == nil, change.retryAt == nil { startChange(change.purpose, of: handle, at: now) }
        } else if call.wantsHold != call.isHeld {
            startChange(.hold(call.wantsHold), of: handle, at: now)
        } else if call.timer?.isRefreshing ?? false {
            refresh(handle, at: now)
        } else if !call.waiting.isEmpty {
            let request = calls[handle]?.waiting.removeFirst()
            if let request { transmit(request, of: handle, at: now) }
        }
    }

    /// Sends a request now; its outcome is awaited.
    mutating func transmit(_ request: InDialogRequest, of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], var session = call.session, let path else { return }
        var message = session.dialog.request(request.method, contact: path.contact(user: configuration.user))
        for header in request.headers { message.headers.append(header.name, header.value) }
        addAbilities(to: &message)
        if !request.body.isEmpty {
            message.contentType = request.contentType
            message.body = request.body
        }
        call.session = session
        let id = transactions.send(message, over: currentFlow(of: call), sentBy: path.via, at: now)
        call.outstanding = OutstandingRequest(request: request, message: message, transaction: id)
        calls[handle] = call
        legs[id] = handle
    }

    /// Sends a request within a call beside the queue, whose outcome nobody waits for: a PRACK, or the BYE.
    mutating func sendUnqueued(
        _ message: SIPMessage, of handle: CallHandle, at now: MonotonicTime, over path: RegisteredFlow
    ) {
        guard let call = calls[handle] else { return }
        let id = transactions.send(message, over: currentFlow(of: call), sentBy: path.via, at: now)
        calls[handle]?.unqueued[id] = message
        legs[id] = handle
    }

    /// The outstanding request of a call has its final response, or will never have one.
    mutating func finishOutstanding(_ outcome: RequestOutcome, of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], let outstanding = call.outstanding else { return }
        call.outstanding = nil
        calls[handle] = call
        receiveOutcome(outcome, of: outstanding.request, in: handle, at: now)
        proceed(handle, at: now)
    }

    // MARK: Responses

    /// A response to a request of ours that belongs to a call.
    mutating func receiveResponse(
        _ response: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard let status = response.status, let method = response.cseq?.method else { return }
        var response = response
        // A description that is hidden in something unreadable is none.
        if let reduced = response.reducedToSession() { response = reduced } else { response.body = [] }
        if method == .invite {
            let isChange = id == calls[handle]?.change?.transaction
            if (200..<300).contains(status) {
                receiveAnswer(response, in: id, of: handle, at: now)
            } else if isChange {
                receiveChangeResponse(response, status: status, of: handle, at: now)
            } else if id == calls[handle]?.inviteTransaction {
                receiveInviteResponse(response, status: status, in: id, of: handle, at: now)
            }
            return
        }
        guard status >= 200, !retryWithCredentials(response, in: id, of: handle, at: now) else { return }
        calls[handle]?.unqueued[id] = nil
        if method == .bye {
            receiveByeResponse(status, of: handle, at: now)
        } else if id == calls[handle]?.outstanding?.transaction {
            calls[handle]?.session?.dialog.update(from: response)
            finishOutstanding(
                RequestOutcome(status: status, response: response, phrase: response.reason ?? ""), of: handle, at: now)
        }
    }

    /// Sends a request within a call once more when the proxy of our own platform asks for credentials.
    ///
    /// A challenge of the peer itself (401) never gets any, a BYE never carries any, and no other realm than those of our
    /// registrar gets one.
    private mutating func retryWithCredentials(
        _ response: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) -> Bool {
        guard let call = calls[handle], let path else { return false }
        let isQueued = call.outstanding?.transaction == id
        guard let request = isQueued ? call.outstanding?.message : call.unqueued[id],
            let again = authorised(request, after: response, of: handle)
        else { return false }
        calls[handle]?.unqueued[id] = nil
        if isQueued {
            let next = transactions.send(again, over: currentFlow(of: call), sentBy: path.via, at: now)
            calls[handle]?.outstanding?.message = again
            calls[handle]?.outstanding?.transaction = next
            legs[next] = handle
        } else {
            sendUnqueued(again, of: handle, at: now, over: path)
        }
        return true
    }

    /// The request with a digest for the proxy that asked, and the dialog's next CSeq number; nil when it gets none.
    mutating func authorised(_ request: SIPMessage, after response: SIPMessage, of handle: CallHandle) -> SIPMessage? {
        let tag = request.to?.tag ?? ""
        // A BYE that nobody takes is over as well: no reason to give a digest to whoever asks for one.
        guard response.status == 407, request.method != .bye, isPathRegistered,
            !request.headers.contains("Proxy-Authorization"), var dialog = calls[handle]?[remoteTag: tag]
        else { return nil }
        // A 407 with a challenge of the peer in it is the peer's.
        var response = response
        response.headers.remove("WWW-Authenticate")
        var again = request
        guard case .retry = authenticator.authorize(&again, after: response), let method = request.method else {
            return nil
        }
        again.cseq = SIPCSeq(number: dialog.dialog.takeSequence(), method: method)
        calls[handle]?[remoteTag: tag] = dialog
        return again
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
}
