import Primitives
import SDP
import SIP

extension UserAgent {
    mutating func receiveRequest(
        _ request: SIPMessage, in id: TransactionID, from flow: SIPFlow, at now: MonotonicTime
    ) {
        if request.to?.tag != nil {
            receiveInDialog(request, in: id, at: now)
            return
        }
        guard !requiresExtension(request, in: id, at: now) else { return }
        switch request.method {
        case .some(.invite):
            receiveInvite(request, in: id, from: flow, at: now)
        case .some(.options):
            answerOptions(request, in: id, localTag: random.hexadecimal(bits: 64), at: now)
        default:
            refuseOutside(request, in: id, at: now)
        }
    }

    /// Answers a request that requires an extension that we do not have with 420 (8.2.2.3).
    mutating func requiresExtension(_ request: SIPMessage, in id: TransactionID, at now: MonotonicTime) -> Bool {
        let unknown = request.headers.values("Require").filter { !Self.extensions.contains($0.lowercased()) }
        // A BYE is obeyed however it is written.
        guard !unknown.isEmpty, request.method != .bye else { return false }
        let tag = request.to?.tag == nil ? random.hexadecimal(bits: 64) : nil
        var response = request.response(status: 420, toTag: tag)
        response.headers["Unsupported"] = unknown.joined(separator: ", ")
        transactions.respond(response, in: id, at: now)
        return true
    }

    /// The request with its session description as the whole body; nil when it holds something else that must be
    /// understood, and has been answered with 415, which says what would be (21.4.13).
    mutating func readable(_ request: SIPMessage, in id: TransactionID, at now: MonotonicTime) -> SIPMessage? {
        guard let method = request.method, Self.sessionMethods.contains(method) else { return request }
        if let reduced = request.reducedToSession() { return reduced }
        let tag = request.to?.tag == nil ? random.hexadecimal(bits: 64) : nil
        var response = request.response(status: 415, toTag: tag)
        response.headers["Accept"] = "application/sdp"
        response.headers["Accept-Encoding"] = "identity"
        transactions.respond(response, in: id, at: now)
        return nil
    }

    /// Requests whose body is a session description.
    private static let sessionMethods: Set<SIPMethod> = [.invite, .update, .prack]

    mutating func refuse(
        _ request: SIPMessage, in id: TransactionID, status: Int, reason: String? = nil,
        headers: [(name: String, value: String)] = [], at now: MonotonicTime
    ) {
        var response = request.response(
            status: status, reason: reason, toTag: request.to?.tag == nil ? random.hexadecimal(bits: 64) : nil)
        for header in headers { response.headers.append(header.name, header.value) }
        transactions.respond(response, in: id, at: now)
    }

    private mutating func receiveInvite(
        _ invite: SIPMessage, in id: TransactionID, from flow: SIPFlow, at now: MonotonicTime
    ) {
        var replaced: CallHandle?
        switch replacement(invite) {
        case .none: break
        case .call(let handle): replaced = handle
        case .refusal(let status):
            refuse(invite, in: id, status: status, at: now)
            return
        }
        guard activeCalls < configuration.maximumCalls + (replaced == nil ? 0 : 1) else {
            refuse(invite, in: id, status: 486, reason: "Busy Here", at: now)
            return
        }
        guard !refusesTimer(of: invite, in: id, at: now) else { return }
        let localTag = random.hexadecimal(bits: 64)
        guard let from = invite.from, let dialog = try? SIPDialog(asServerFor: invite, localTag: localTag) else {
            refuse(invite, in: id, status: 400, reason: "Missing Contact", at: now)
            return
        }
        // An offer that cannot be met is refused before anything rings; where media will be received is not known yet.
        guard let invite = readable(invite, in: id, at: now) else { return }
        guard acceptsSDP(invite) else {
            refuse(invite, in: id, status: 406, at: now)
            return
        }
        if !invite.body.isEmpty {
            var trial = OfferAnswer(
                sessionID: 1, capabilities: configuration.capabilities,
                local: LocalMedia(address: path?.local.host ?? "127.0.0.1", rtpPort: 9, rtcpPort: 9))
            do {
                _ = try trial.receiveOffer(invite.body)
            } catch {
                refuse(invite, in: id, status: error.status, at: now)
                return
            }
        }
        let handle = makeHandle()
        var call = Call(
            handle: handle, direction: .incoming, flow: flow, invite: invite, transaction: id, localTag: localTag)
        var session = CallDialog(
            dialog: dialog, fork: 0, negotiation: nil, offer: invite.body.isEmpty ? .none : .received)
        session.note(abilitiesIn: invite)
        call.session = session
        call.hasRung = true
        let limit = invite.expires.map { min(.seconds(max(0, $0)), configuration.incomingRingTimeout) }
        call.noAnswerDeadline = now + (limit ?? configuration.incomingRingTimeout)
        call.replaces = replaced
        // A call that only takes the place of another one does not ring.
        if replaced == nil { call.nextRing = now + Self.ringInterval }
        calls[handle] = call
        legs[id] = handle
        if replaced == nil { ring(handle, at: now) }
        emit(
            .call(
                handle,
                .incoming(
                    IncomingCall(
                        callID: call.callID, from: from, assertedIdentity: assertedIdentity(of: invite),
                        replaces: replaced, headers: Self.applicationHeaders(of: invite)))))
    }

    /// A proxy stops a call that has not been heard of for three minutes.
    static let ringInterval: Duration = .seconds(60)

    /// Says once more that it rings here.
    mutating func ringAgain(_ handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], call.direction == .incoming, call.phase == .early else { return }
        call.nextRing = now + Self.ringInterval
        calls[handle] = call
        ring(handle, at: now)
    }

    /// It rang here for as long as the caller asked for (Expires, 13.3.1), or longer than any caller waits.
    mutating func stopRinging(_ handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle] else { return }
        let status = call.invite.expires == nil ? 480 : 487
        transactions.respond(
            ownResponse(to: call.invite, status: status, localTag: call.localTag), in: call.inviteTransaction, at: now)
        end(handle, CallTermination(.noAnswer, sipStatus: status, phrase: "nobody answered here"))
    }

    /// Whether the answer may be a session description; without Accept it may (20.1).
    private func acceptsSDP(_ request: SIPMessage) -> Bool {
        guard request.headers.contains("Accept") else { return true }
        return request.headers.values("Accept").contains { range in
            let type = range.prefix { $0 != ";" }.filter { !$0.isWhitespace }.lowercased()
            return ["application/sdp", "application/*", "*/*"].contains(type)
        }
    }

    /// Headers of the application travel as `X-` headers; what SIP itself means is not theirs.
    static func applicationHeaders(of message: SIPMessage) -> [String: String] {
        var found: [String: String] = [:]
        for (name, value) in message.headers.all where name.lowercased().hasPrefix("x-") {
            found[name] = value
        }
        return found
    }

    func ownResponse(to request: SIPMessage, status: Int, reason: String? = nil, localTag: String) -> SIPMessage {
        var response = request.response(status: status, reason: reason, toTag: localTag)
        if let path, request.method == .invite || request.method == .update, status < 300 {
            response.contacts = [dialogContact(over: path)]
            response.headers["Allow"] = Self.allowedMethods
            response.headers["Supported"] = Self.extensions.joined(separator: ", ")
        }
        response.headers["User-Agent"] = configuration.userAgent
        return response
    }

    /// Answers an incoming call; `.answered` follows at once, since the callee may send from now on, unless the offer is
    /// ours (then with the caller's answer) or the caller has not acknowledged early media yet.
    ///
    /// - Parameter headers: application headers to send with the answer; the caller has checked names and sizes.
    public mutating func answer(
        _ handle: CallHandle, media: LocalMedia, headers: [(name: String, value: String)] = [], at now: MonotonicTime
    ) {
        guard var call = calls[handle], call.direction == .incoming, call.phase == .early, var session = call.session
        else { return }
        guard isReplacementWanted(call) else {
            refuse(call.invite, in: call.inviteTransaction, status: 481, at: now)
            end(handle, CallTermination(.canceled, isLocal: true, phrase: "the call that it replaces is over"))
            settle(at: now)
            return
        }
        if !headers.isEmpty { call.answerHeaders = headers }
        guard call.provisionals?.holdsUnacknowledgedSession != true else {
            call.pendingAnswer = media
            call.noAnswerDeadline = nil
            calls[handle] = call
            return
        }
        if session.negotiation == nil {
            session.negotiation = OfferAnswer(
                sessionID: random.next() >> 2, capabilities: configuration.capabilities, local: media)
        }
        var response = ownResponse(to: call.invite, status: 200, localTag: call.localTag)
        for header in call.answerHeaders { response.headers.append(header.name, header.value) }
        do throws(SDPNegotiationError) {
            switch session.offer {
            case .received: response.body = try session.receiveOffer(call.invite.body, direction: .sendrecv).answer
            case .none: response.body = session.makeOffer(in: .answer) ?? []
            case .agreed, .offered: break  // a reliable 183 had the answer
            }
        } catch {
            refuse(call.invite, in: call.inviteTransaction, status: error.status, at: now)
            end(handle, CallTermination(.media, sipStatus: error.status, phrase: error.reason))
            settle(at: now)
            return
        }
        if !response.body.isEmpty { response.contentType = "application/sdp" }
        session.dialog.confirm()
        call.session = session
        call.phase = .answering
        call.noAnswerDeadline = nil
        call.nextRing = nil
        call.provisionals?.stop()
        calls[handle] = call
        acceptTimer(of: call.invite, in: &response, of: handle, at: now)
        calls[handle]?.answer = AnswerRepetition(
            response: response, transaction: call.inviteTransaction, interval: configuration.timers.t1,
            next: now + configuration.timers.t1, deadline: now + configuration.timers.transactionTimeout)
        transactions.respond(response, in: call.inviteTransaction, at: now)
        if session.offer == .agreed, let audio = session.media {
            tell(audio, of: handle)
            noteHold(of: handle, remote: !audio.direction.sends)
        }
        endReplaced(by: call, at: now)
        settle(at: now)
    }

    mutating func receiveCancel(_ cancel: SIPMessage, of handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], call.phase == .early else { return }
        transactions.respond(
            ownResponse(to: call.invite, status: 487, localTag: call.localTag), in: call.inviteTransaction, at: now)
        let reason = ReasonHeader(cancel)
        if ReasonHeader.saysAnsweredElsewhere(cancel) {
            end(handle, CallTermination(.otherDeviceAnswered, phrase: reason?.text ?? "answered elsewhere"))
        } else {
            end(handle, CallTermination(.canceled, phrase: reason?.text ?? "the caller gave up"))
        }
    }

    mutating func receiveAck(_ ack: SIPMessage, at now: MonotonicTime) {
        guard let handle = handle(for: ack), var call = calls[handle], let answer = call.answer,
            ack.cseq?.number == answer.response.cseq?.number
        else { return }
        call.answer = nil
        if call.phase == .answering { call.phase = .confirmed }
        calls[handle] = call
        if call.session?.offer == .offered(in: .answer) {
            receiveAnswer(inAck: ack, of: handle, at: now)
        }
        if call.hangUpWhenAcknowledged {
            sendBye(handle, reason: call.byeReason, at: now)
        } else {
            proceed(handle, at: now)
        }
    }

    /// The ACK has the answer to the offer in our 2xx; without one there is no call.
    private mutating func receiveAnswer(inAck ack: SIPMessage, of handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], var session = call.session else { return }
        let body = ack.reducedToSession()?.body ?? []
        guard let audio = try? session.receiveAnswer(body) else {
            if call.toldMedia != nil, body.isEmpty {
                // The peer only wanted to see our offer: the session is as it was.
                calls[handle]?.session?.abandonOffer()
                return
            }
            if call.phase != .closing {
                emit(.call(handle, .ended(CallTermination(.media, phrase: "the ACK carries no usable answer"))))
            }
            sendBye(handle, reason: nil, at: now)
            return
        }
        calls[handle]?.session = session
        tell(audio, of: handle)
        noteHold(of: handle, remote: !audio.direction.sends)
    }
}
