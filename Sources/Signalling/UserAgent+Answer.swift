import Primitives
import SDP
import SIP

/// The 2xx to our INVITEs: the first one makes the call, each one gets its ACK, and further devices are hung up.
extension UserAgent {
    mutating func receiveAnswer(
        _ response: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        let tag = response.to?.tag ?? ""
        if let ack = answeredInvites[id]?.acknowledgements[tag] {
            // The 2xx was repeated: its ACK was lost (13.2.2.4).
            resend(ack)
            return
        }
        if let answered = answeredInvites[id] {
            dismissFork(response, of: answered, in: id, at: now)
            return
        }
        guard var call = calls[handle] else { return }
        if let change = call.change, id == change.transaction {
            if let dialog = call.dialog { acknowledge(response, in: id, of: change.invite, dialog, handle: handle) }
            receiveChangeResponse(response, status: response.status ?? 200, of: handle, at: now)
            return
        }
        guard id == call.inviteTransaction else { return }
        guard var session = dialog(of: call, for: response) else {
            // The layer matched it by its branch, but tags or Call-ID are not those of our INVITE.
            call.phase == .closing
                ? calls[handle] = nil
                : end(handle, CallTermination(.failed, phrase: "the answer belongs to another call"))
            return
        }
        session.dialog.update(from: response)
        session.note(abilitiesIn: response)
        let (agreement, ackBody) = agree(on: response.body, in: &session)
        var sequences: [String: UInt32] = [:]
        for fork in call.forks { sequences[fork.dialog.remoteTag] = fork.dialog.localSequence }
        call.session = session
        call.forks = []
        call.noAnswerDeadline = nil
        calls[handle] = call
        acknowledge(response, in: id, of: call.invite, session.dialog, body: ackBody, handle: handle)
        answeredInvites[id]?.sequences = sequences
        if call.phase == .closing {
            // Our CANCEL crossed the answer: the call exists, so it is ended as calls are (RFC 3261, 15).
            sendBye(handle, reason: call.byeReason, at: now)
            return
        }
        calls[handle]?.phase = .confirmed
        startTimer(of: handle, from: response, at: now)
        switch agreement {
        case .success(let audio):
            let headers = Self.applicationHeaders(of: response)
            if !headers.isEmpty { emit(.call(handle, .answerHeaders(headers))) }
            tell(audio, of: handle)
            noteHold(of: handle, remote: !audio.direction.sends)
            proceed(handle, at: now)
        case .failure(let error):
            sendBye(handle, reason: "SIP;cause=488;text=\"unusable answer\"", at: now)
            emit(
                .call(handle, .ended(CallTermination(.media, phrase: "the answer cannot be used: \(error.reason)"))))
        }
    }

    /// The dialog that a response to the INVITE belongs to: one that is known, or a new one.
    func dialog(of call: Call, for response: SIPMessage) -> CallDialog? {
        let tag = response.to?.tag ?? ""
        guard response.callID == call.callID, response.from?.tag == call.localTag else { return nil }
        if let known = call[remoteTag: tag] { return known }
        guard let dialog = try? SIPDialog(asClientFor: call.invite, response: response) else { return nil }
        return CallDialog(
            dialog: dialog, fork: call.forkCount, negotiation: call.negotiation,
            offer: call.invite.body.isEmpty ? .none : .offered(in: .invite))
    }

    /// What the description in a 2xx means: the answer to our offer, or an offer, whose answer goes into the ACK.
    private func agree(
        on body: [UInt8], in session: inout CallDialog
    ) -> (Result<NegotiatedAudio, SDPNegotiationError>, ackBody: [UInt8]) {
        do throws(SDPNegotiationError) {
            switch session.offer {
            case .none:
                let (answer, audio) = try session.receiveOffer(body, direction: .sendrecv)
                return (.success(audio), answer)
            case .agreed:
                // A reliable 18x had the answer. Some peers send another one now, and mean it.
                if let media = session.media {
                    guard !body.isEmpty, session.peerOffers == 0, let other = try? session.receiveAnswer(body) else {
                        return (.success(media), [])
                    }
                    return (.success(other), [])
                }
            default: break
            }
            if body.isEmpty, let media = session.media {
                // An unreliable 18x had the answer, and the peer thinks that this is enough.
                session.offer = .agreed
                return (.success(media), [])
            }
            return (.success(try session.receiveAnswer(body)), [])
        } catch {
            return (.failure(error), [])
        }
    }

    /// Sends the ACK of a 2xx, and keeps it for the repetitions.
    private mutating func acknowledge(
        _ response: SIPMessage, in id: TransactionID, of invite: SIPMessage, _ dialog: SIPDialog, body: [UInt8] = [],
        handle: CallHandle
    ) {
        let ack = acknowledgement(in: dialog, of: invite, body: body)
        var answered = AnsweredInvite(invite: invite)
        answered.acknowledgements[response.to?.tag ?? ""] = ack
        answeredInvites[id] = answered
        calls[handle]?.lastAck = ack
        resend(ack)
    }

    /// A second device answered the same INVITE: acknowledge, then hang up (13.2.2.4).
    private mutating func dismissFork(
        _ response: SIPMessage, of answered: AnsweredInvite, in id: TransactionID?, at now: MonotonicTime
    ) {
        let tag = response.to?.tag ?? ""
        guard var fork = try? SIPDialog(asClientFor: answered.invite, response: response), let path else { return }
        if let sequence = answered.sequences[tag] { fork.advanceLocalSequence(to: sequence) }
        let ack = acknowledgement(in: fork, of: answered.invite, body: [])
        if let id, var answered = answeredInvites[id] {
            guard answered.acknowledgements.count < AnsweredInvite.maximumAnswers else { return }
            answered.acknowledgements[tag] = ack
            answeredInvites[id] = answered
        }
        resend(ack)
        var bye = fork.request(.bye, contact: nil)
        bye.headers["User-Agent"] = configuration.userAgent
        _ = transactions.send(bye, over: path.flow, sentBy: path.via, at: now)
    }

    /// The ACK for a 2xx: a request of its own with a Via of its own, but no transaction (13.2.2.4).
    private mutating func acknowledgement(in dialog: SIPDialog, of invite: SIPMessage, body: [UInt8]) -> SIPMessage {
        var ack = dialog.ack(for: invite.cseq?.number ?? 1, credentialsFrom: invite)
        if var via = path?.via {
            via.branch = transactions.makeBranch()
            ack.vias = [via]
        }
        ack.headers["User-Agent"] = configuration.userAgent
        if !body.isEmpty {
            ack.contentType = "application/sdp"
            ack.body = body
        }
        return ack
    }

    /// Sends an ACK, for the first time or again, over the path that there is now.
    private mutating func resend(_ ack: SIPMessage) {
        if let path { transactions.sendStateless(ack, over: path.flow) }
    }

    /// A 2xx after its transaction is gone: a repetition whose ACK was lost, or a very late device.
    mutating func receiveStray(_ response: SIPMessage, at now: MonotonicTime) {
        guard let status = response.status, (200..<300).contains(status), response.cseq?.method == .invite,
            let callID = response.callID, let tag = response.from?.tag,
            let call = calls.values.first(where: { $0.callID == callID && $0.localTag == tag }),
            let dialog = call.dialog, let sequence = response.cseq?.number
        else { return }
        if dialog.remoteTag == response.to?.tag ?? "" {
            if let ack = call.lastAck, ack.cseq?.number == sequence { resend(ack) }
        } else if call.direction == .outgoing, sequence == call.invite.cseq?.number {
            dismissFork(response, of: AnsweredInvite(invite: call.invite), in: nil, at: now)
        }
    }
}
