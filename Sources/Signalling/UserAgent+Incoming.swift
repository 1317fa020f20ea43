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
        switch request.method {
        case .some(.invite):
            receiveInvite(request, in: id, from: flow, at: now)
        case .some(.options):
            var response = request.response(status: 200, toTag: random.hexadecimal(bits: 64))
            response.headers["Allow"] = Self.allowedMethods
            response.headers["Accept"] = "application/sdp"
            transactions.respond(response, in: id, at: now)
        case .some(.cancel), .some(.bye):
            refuse(request, in: id, status: 481, at: now)
        default:
            var response = request.response(status: 405, toTag: random.hexadecimal(bits: 64))
            response.headers["Allow"] = Self.allowedMethods
            transactions.respond(response, in: id, at: now)
        }
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
        let required = invite.headers.values("Require")
        if !required.isEmpty {
            var response = invite.response(status: 420, toTag: random.hexadecimal(bits: 64))
            response.headers["Unsupported"] = required.joined(separator: ", ")
            transactions.respond(response, in: id, at: now)
            return
        }
        if calls.values.lazy.filter({ $0.phase != .closing }).count >= configuration.maximumCalls {
            refuse(invite, in: id, status: 486, reason: "Busy Here", at: now)
            return
        }
        let localTag = random.hexadecimal(bits: 64)
        guard let from = invite.from, let dialog = try? SIPDialog(asServerFor: invite, localTag: localTag) else {
            refuse(invite, in: id, status: 400, reason: "Missing Contact", at: now)
            return
        }
        // An offer that cannot be met is refused before anything rings; where media will be received is not known yet.
        if !invite.body.isEmpty {
            var trial = OfferAnswer(
                sessionID: 1, capabilities: configuration.capabilities,
                local: LocalMedia(address: path?.local.host ?? "127.0.0.1", rtpPort: 9, rtcpPort: 9))
            do {
                guard isSDP(invite) else {
                    refuse(invite, in: id, status: 415, at: now)
                    return
                }
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
        calls[handle] = call
        legs[id] = handle
        transactions.respond(ownResponse(to: invite, status: 180, localTag: localTag), in: id, at: now)
        emit(
            .call(
                handle,
                .incoming(
                    IncomingCall(callID: call.callID, from: from, headers: Self.applicationHeaders(of: invite)))))
    }

    private func isSDP(_ message: SIPMessage) -> Bool {
        guard let type = message.contentType else { return false }
        return type.lowercased().hasPrefix("application/sdp")
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
            response.contacts = [path.contact(user: configuration.user)]
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
        call.answer = AnswerRepetition(
            response: response, transaction: call.inviteTransaction, interval: configuration.timers.t1,
            next: now + configuration.timers.t1, deadline: now + configuration.timers.t1 * 64)
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
        guard let handle = handle(for: ack), var call = calls[handle], call.answer != nil,
            ack.cseq?.number == call.answer?.response.cseq?.number
        else { return }
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
            call.negotiation = negotiation
            call.media = audio
            calls[handle] = call
            if call.phase != .closing { emit(.call(handle, .answered(audio))) }
        }
        calls[handle] = call
        if call.hangUpWhenAcknowledged { sendBye(handle, reason: nil, at: now) }
    }
}
