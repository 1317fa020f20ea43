import Primitives
import SDP
import SIP

/// The callee's provisional responses: plain ones, reliable ones where the caller requires or understands them
/// (RFC 3262, section 3), and early media.
extension UserAgent {
    /// Lets the caller hear something before the answer: 183 with a session description. `.earlyMedia` follows. Without
    /// effect when the call is no ringing incoming one, or when the caller made no offer and cannot be given one yet.
    ///
    /// - Parameter media: where this call's RTP will be received, now and after the answer.
    public mutating func startEarlyMedia(_ handle: CallHandle, media: LocalMedia, at now: MonotonicTime) {
        guard var call = calls[handle], call.direction == .incoming, call.phase == .early, var session = call.session,
            session.negotiation == nil
        else { return }
        session.negotiation = OfferAnswer(
            sessionID: random.next() >> 2, capabilities: configuration.capabilities, local: media)
        let isReliable = call.takesReliableResponses
        var response = ownResponse(to: call.invite, status: 183, localTag: call.localTag)
        response.contentType = "application/sdp"
        switch session.offer {
        case .received:
            guard let result = try? session.receiveOffer(call.invite.body, direction: .sendrecv) else { return }
            response.body = result.answer
            // Sent without a guarantee, it has to be said again in the 2xx.
            if !isReliable { session.offer = .received }
        case .none where isReliable:
            guard let offer = session.makeOffer(in: .provisional) else { return }
            response.body = offer
        default:
            return
        }
        call.session = session
        calls[handle] = call
        sendProvisional(response, of: handle, isReliable: isReliable, at: now)
        reportEarlyMedia(tag: session.dialog.remoteTag, of: handle)
        settle(at: now)
    }

    /// Says that it rings here, for the first time or again.
    mutating func ring(_ handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], call.direction == .incoming, call.phase == .early else { return }
        let isRequired = call.invite.hasOption("100rel", in: "Require")
        // The first reliable response to an INVITE without an offer must have one (RFC 3261, 13.2.1), but where media
        // will be received is known with the answer only: until then such a caller hears a 100 and nothing else.
        if isRequired, call.session?.offer == OfferState.none { return }
        sendProvisional(
            ownResponse(to: call.invite, status: 180, localTag: call.localTag), of: handle, isReliable: isRequired,
            at: now)
    }

    private mutating func sendProvisional(
        _ response: SIPMessage, of handle: CallHandle, isReliable: Bool, at now: MonotonicTime
    ) {
        guard var call = calls[handle] else { return }
        guard isReliable else {
            transactions.respond(response, in: call.inviteTransaction, at: now)
            return
        }
        var provisionals =
            call.provisionals
            ?? ReliableProvisionals(
                timers: configuration.timers, firstNumber: UInt32(truncatingIfNeeded: random.next() >> 34) | 1)
        let numbered = provisionals.send(response, at: now)
        call.provisionals = provisionals
        calls[handle] = call
        if let numbered { transactions.respond(numbered, in: call.inviteTransaction, at: now) }
    }

    /// Repeats what was not acknowledged; in the end the call is refused (RFC 3262, section 3).
    mutating func provisionalTimeout(_ handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], var provisionals = call.provisionals else { return }
        let due = provisionals.timeout(at: now)
        call.provisionals = provisionals
        calls[handle] = call
        switch due {
        case .nothing: break
        case .repeatResponse(let response): transactions.respond(response, in: call.inviteTransaction, at: now)
        case .givenUp:
            transactions.respond(
                ownResponse(to: call.invite, status: 504, localTag: call.localTag), in: call.inviteTransaction, at: now)
            end(handle, CallTermination(.network, sipStatus: 504, phrase: "the caller never acknowledged the ringing"))
        }
    }

    /// PRACK: the caller has a reliable provisional response. It may carry the answer to our offer, or another offer.
    mutating func receivePrack(
        _ prack: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard var call = calls[handle], let rack = prack.rack, var provisionals = call.provisionals,
            let invite = call.invite.cseq?.number
        else {
            refuse(prack, in: id, status: prack.rack == nil ? 400 : 481, at: now)
            return
        }
        let (isKnown, next) = provisionals.acknowledge(rack, invite: invite, at: now)
        guard isKnown else {
            refuse(prack, in: id, status: 481, at: now)
            return
        }
        call.provisionals = provisionals
        calls[handle] = call
        if let body = answerPrack(prack, in: id, of: handle, at: now) {
            var response = ownResponse(to: prack, status: 200, localTag: call.localTag)
            if !body.isEmpty {
                response.contentType = "application/sdp"
                response.body = body
            }
            transactions.respond(response, in: id, at: now)
        }
        guard calls[handle] != nil else { return }
        if let next { transactions.respond(next, in: call.inviteTransaction, at: now) }
        if let media = calls[handle]?.pendingAnswer {
            calls[handle]?.pendingAnswer = nil
            answer(handle, media: media, at: now)
        }
    }

    /// What goes into the 200 of a PRACK; nil when the PRACK has been refused instead, and where it
    /// leaves the call without media, the call too.
    private mutating func answerPrack(
        _ prack: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) -> [UInt8]? {
        guard var call = calls[handle], var session = call.session else { return nil }
        let tag = session.dialog.remoteTag
        do throws(SDPNegotiationError) {
            switch session.offer {
            case .offered(in: .provisional):
                _ = try session.receiveAnswer(prack.body)
                call.session = session
                calls[handle] = call
                reportEarlyMedia(tag: tag, of: handle)
                return []
            case .agreed where !prack.body.isEmpty:
                let (answer, _) = try session.receiveOffer(prack.body, direction: call.wantedDirection)
                call.session = session
                calls[handle] = call
                reportEarlyMedia(tag: tag, of: handle)
                return answer
            default:
                return []
            }
        } catch {
            refuse(prack, in: id, status: error.status, at: now)
            guard case .offered = session.offer, call.phase == .early else { return nil }
            // Our offer has no usable answer: there will be no media.
            transactions.respond(
                ownResponse(to: call.invite, status: 488, localTag: call.localTag), in: call.inviteTransaction, at: now)
            end(handle, CallTermination(.media, sipStatus: 488, phrase: error.reason))
            return nil
        }
    }
}

extension Call {
    /// Whether the caller understands reliable provisional responses.
    fileprivate var takesReliableResponses: Bool {
        invite.hasOption("100rel", in: "Supported") || invite.hasOption("100rel", in: "Require")
    }
}
