import Primitives
import SDP
import SIP

/// Changes of the session that the peer asks for: re-INVITE (RFC 3261, 14.2) and UPDATE (RFC 3311, 5.2).
extension UserAgent {
    mutating func receiveReinvite(
        _ invite: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard let call = calls[handle] else { return }
        guard call.phase != .early else {
            // The first INVITE has no final response yet (14.2).
            refuseForNow(invite, in: id, at: now)
            return
        }
        // Ours waits for its answer, or theirs for its ACK.
        guard call.change?.transaction == nil, call.answer == nil, let offer = call.session?.offer,
            offer.refusal == nil
        else {
            refuse(invite, in: id, status: 491, at: now)
            return
        }
        guard !refusesTimer(of: invite, in: id, at: now) else { return }
        var response = ownResponse(to: invite, status: 200, localTag: call.localTag)
        response.contentType = "application/sdp"
        if invite.body.isEmpty {
            guard let body = calls[handle]?.session?.makeOffer(in: .answer, direction: call.wantedDirection) else {
                refuse(invite, in: id, status: 500, at: now)
                return
            }
            response.body = body
        } else {
            guard let body = answerOffer(of: invite, in: id, of: handle, at: now) else { return }
            response.body = body
        }
        acceptTimer(of: invite, in: &response, of: handle, at: now)
        calls[handle]?.answer = AnswerRepetition(
            response: response, transaction: id, interval: configuration.timers.t1,
            next: now + configuration.timers.t1, deadline: now + configuration.timers.transactionTimeout)
        legs[id] = handle
        transactions.respond(response, in: id, at: now)
        tellPeerOffer(of: handle, dialog: invite.from?.tag ?? "", hadOffer: !invite.body.isEmpty)
    }

    /// UPDATE: a refresh of the session timer, or an offer that is answered at once, before the call is answered too.
    mutating func receiveUpdate(
        _ update: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        let tag = update.from?.tag ?? ""
        guard let call = calls[handle], let session = call[remoteTag: tag] else { return }
        guard !refusesTimer(of: update, in: id, at: now) else { return }
        var response = ownResponse(to: update, status: 200, localTag: call.localTag)
        if !update.body.isEmpty {
            switch session.offer.refusal ?? (session.offer == .none ? 500 : nil) {
            case 500?:
                refuseForNow(update, in: id, at: now)
                return
            case let status?:
                refuse(update, in: id, status: status, at: now)
                return
            case nil: break
            }
            guard let body = answerOffer(of: update, in: id, of: handle, at: now) else { return }
            response.contentType = "application/sdp"
            response.body = body
        }
        if call.phase != .early { acceptTimer(of: update, in: &response, of: handle, at: now) }
        transactions.respond(response, in: id, at: now)
        tellPeerOffer(of: handle, dialog: tag, hadOffer: !update.body.isEmpty)
        proceed(handle, at: now)
    }

    /// The answer to an offer of the peer; nil when it cannot be met and has been refused.
    private mutating func answerOffer(
        of request: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) -> [UInt8]? {
        let tag = request.from?.tag ?? ""
        guard let call = calls[handle], var session = call[remoteTag: tag] else { return nil }
        do {
            let (answer, _) = try session.receiveOffer(request.body, direction: call.wantedDirection)
            calls[handle]?[remoteTag: tag] = session
            return answer
        } catch {
            refuse(request, in: id, status: error.status, at: now)
            return nil
        }
    }

    /// Tells what an offer of the peer has changed.
    private mutating func tellPeerOffer(of handle: CallHandle, dialog tag: String, hadOffer: Bool) {
        guard hadOffer, let call = calls[handle], let media = call[remoteTag: tag]?.media else { return }
        guard call.phase != .early else {
            reportEarlyMedia(tag: tag, of: handle)
            return
        }
        tell(media, of: handle)
        noteHold(of: handle, remote: !media.direction.sends)
    }

    /// Tells the media of an answered call, when they are others than those told before.
    mutating func tell(_ media: NegotiatedAudio, of handle: CallHandle) {
        guard let call = calls[handle], call.phase != .closing, call.toldMedia != media else { return }
        calls[handle]?.toldMedia = media
        emit(.call(handle, call.toldMedia == nil ? .answered(media) : .mediaChanged(media)))
    }

    /// Tells who holds the call, when it is not as it was told before.
    mutating func noteHold(of handle: CallHandle, local: Bool? = nil, remote: Bool? = nil) {
        guard var call = calls[handle], call.phase != .closing else { return }
        let (newLocal, newRemote) = (local ?? call.isHeld, remote ?? call.isHeldByPeer)
        guard newLocal != call.isHeld || newRemote != call.isHeldByPeer else { return }
        call.isHeld = newLocal
        call.isHeldByPeer = newRemote
        calls[handle] = call
        emit(.call(handle, .holdChanged(local: newLocal, remote: newRemote)))
    }

    /// 500 with Retry-After: another offer or INVITE of the peer is not answered yet.
    private mutating func refuseForNow(_ request: SIPMessage, in id: TransactionID, at now: MonotonicTime) {
        var response = request.response(status: 500)
        response.headers["Retry-After"] = String(random.next() % 11)
        transactions.respond(response, in: id, at: now)
    }
}
