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
        case .some(.cancel), .some(.bye):
            refuse(request, in: id, status: 481, at: now)
        default:
            var response = request.response(status: 405, toTag: random.hexadecimal(bits: 64))
            response.headers["Allow"] = Self.allowedMethods
            transactions.respond(response, in: id, at: now)
        }
    }

    /// Answers a request that requires an extension with 420: there is none that we have (8.2.2.3).
    mutating func requiresExtension(_ request: SIPMessage, in id: TransactionID, at now: MonotonicTime) -> Bool {
        let required = request.headers.values("Require")
        // A BYE is obeyed however it is written.
        guard !required.isEmpty, request.method != .bye else { return false }
        let tag = request.to?.tag == nil ? random.hexadecimal(bits: 64) : nil
        var response = request.response(status: 420, toTag: tag)
        response.headers["Unsupported"] = required.joined(separator: ", ")
        transactions.respond(response, in: id, at: now)
        return true
    }

    /// What we can do (11.2).
    mutating func answerOptions(_ request: SIPMessage, in id: TransactionID, localTag: String, at now: MonotonicTime) {
        var response = ownResponse(to: request, status: 200, localTag: localTag)
        response.headers["Allow"] = Self.allowedMethods
        response.headers["Accept"] = "application/sdp"
        transactions.respond(response, in: id, at: now)
    }

    /// Answers a body that is no plain session description with 415, and says what would be one (21.4.13).
    mutating func refusesBody(of request: SIPMessage, in id: TransactionID, at now: MonotonicTime) -> Bool {
        guard !request.body.isEmpty, !isSDP(request) else { return false }
        let tag = request.to?.tag == nil ? random.hexadecimal(bits: 64) : nil
        var response = request.response(status: 415, toTag: tag)
        response.headers["Accept"] = "application/sdp"
        response.headers["Accept-Encoding"] = "identity"
        transactions.respond(response, in: id, at: now)
        return true
    }

    mutating func refuse(
        _ request: SIPMessage, in id: TransactionID, status: Int, reason: String? = nil, at now: MonotonicTime
    ) {
        let response = request.response(
            status: status, reason: reason, toTag: request.to?.tag == nil ? random.hexadecimal(bits: 64) : nil)
        transactions.respond(response, in: id, at: now)
    }

    private mutating func receiveInvite(
        _ invite: SIPMessage, in id: TransactionID, from flow: SIPFlow, at now: MonotonicTime
    ) {
        guard activeCalls < configuration.maximumCalls else {
            refuse(invite, in: id, status: 486, reason: "Busy Here", at: now)
            return
        }
        let localTag = random.hexadecimal(bits: 64)
        guard let from = invite.from, let dialog = try? SIPDialog(asServerFor: invite, localTag: localTag) else {
            refuse(invite, in: id, status: 400, reason: "Missing Contact", at: now)
            return
        }
        // An offer that cannot be met is refused before anything rings; where media will be received is not known yet.
        guard !refusesBody(of: invite, in: id, at: now) else { return }
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
        call.dialog = dialog
        call.hasRung = true
        let limit = invite.expires.map { min(.seconds(max(0, $0)), configuration.incomingRingTimeout) }
        call.noAnswerDeadline = now + (limit ?? configuration.incomingRingTimeout)
        call.nextRing = now + Self.ringInterval
        calls[handle] = call
        legs[id] = handle
        transactions.respond(ownResponse(to: invite, status: 180, localTag: localTag), in: id, at: now)
        emit(
            .call(
                handle,
                .incoming(
                    IncomingCall(callID: call.callID, from: from, headers: Self.applicationHeaders(of: invite)))))
    }

    /// A proxy stops a call that has not been heard of for three minutes.
    static let ringInterval: Duration = .seconds(60)

    /// Says once more that it rings here.
    mutating func ringAgain(_ handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], call.direction == .incoming, call.phase == .early else { return }
        call.nextRing = now + Self.ringInterval
        calls[handle] = call
        transactions.respond(
            ownResponse(to: call.invite, status: 180, localTag: call.localTag), in: call.inviteTransaction, at: now)
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

    private func isSDP(_ message: SIPMessage) -> Bool {
        guard let type = message.contentType?.split(separator: ";", maxSplits: 1).first,
            type.filter({ !$0.isWhitespace }).lowercased() == "application/sdp"
        else { return false }
        let encoding = message.headers["Content-Encoding"]?.lowercased() ?? "identity"
        return encoding == "identity"
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
        if let path, request.method == .invite, status < 300 {
            response.contacts = [dialogContact(over: path)]
            response.headers["Allow"] = Self.allowedMethods
        }
        response.headers["User-Agent"] = configuration.userAgent
        return response
    }

    /// Answers an incoming call; `.answered` follows at once, since the callee may send from now on.
    public mutating func answer(_ handle: CallHandle, media: LocalMedia, at now: MonotonicTime) {
        guard var call = calls[handle], call.direction == .incoming, call.phase == .early else { return }
        var negotiation = OfferAnswer(
            sessionID: random.next() >> 2, capabilities: configuration.capabilities, local: media)
        var response = ownResponse(to: call.invite, status: 200, localTag: call.localTag)
        response.contentType = "application/sdp"
        if call.invite.body.isEmpty {
            response.body = negotiation.makeOffer()
            call.awaitsAnswerInAck = true
        } else {
            do {
                let (answer, audio) = try negotiation.receiveOffer(call.invite.body)
                response.body = answer
                call.media = audio
            } catch {
                refuse(call.invite, in: call.inviteTransaction, status: error.status, at: now)
                end(handle, CallTermination(.media, sipStatus: error.status, phrase: error.reason))
                settle(at: now)
                return
            }
        }
        call.negotiation = negotiation
        call.phase = .answering
        call.noAnswerDeadline = nil
        call.nextRing = nil
        call.answer = AnswerRepetition(
            response: response, transaction: call.inviteTransaction, interval: configuration.timers.t1,
            next: now + configuration.timers.t1, deadline: now + configuration.timers.transactionTimeout)
        transactions.respond(response, in: call.inviteTransaction, at: now)
        calls[handle] = call
        if let audio = call.media { emit(.call(handle, .answered(audio))) }
        settle(at: now)
    }

    mutating func receiveCancel(_ cancel: SIPMessage, of handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], call.phase == .early else { return }
        transactions.respond(
            ownResponse(to: call.invite, status: 487, localTag: call.localTag), in: call.inviteTransaction, at: now)
        let reason = ReasonHeader(cancel)
        if reason?.saysAnsweredElsewhere ?? false {
            end(handle, CallTermination(.otherDeviceAnswered, phrase: reason?.text ?? "answered elsewhere"))
        } else {
            end(handle, CallTermination(.canceled, phrase: reason?.text ?? "the caller gave up"))
        }
    }

    mutating func receiveAck(_ ack: SIPMessage, at now: MonotonicTime) {
        guard let handle = handle(for: ack), var call = calls[handle], let answer = call.answer,
            ack.cseq?.number == answer.response.cseq?.number
        else { return }
        let isFirst = answer.transaction == call.inviteTransaction
        call.answer = nil
        if call.phase == .answering { call.phase = .confirmed }
        if call.awaitsAnswerInAck {
            call.awaitsAnswerInAck = false
            guard var negotiation = call.negotiation, let audio = try? negotiation.receiveAnswer(ack.body) else {
                calls[handle] = call
                if call.phase != .closing {
                    emit(.call(handle, .ended(CallTermination(.media, phrase: "the ACK carries no usable answer"))))
                }
                sendBye(handle, reason: nil, at: now)
                return
            }
            let isNew = audio != call.media
            call.negotiation = negotiation
            call.media = audio
            if call.phase != .closing {
                if isFirst {
                    emit(.call(handle, .answered(audio)))
                } else if isNew {
                    emit(.call(handle, .mediaChanged(audio)))
                }
            }
        }
        calls[handle] = call
        if call.hangUpWhenAcknowledged { sendBye(handle, reason: nil, at: now) }
    }
}
