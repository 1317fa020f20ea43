import Primitives
import SDP
import SIP

/// A re-INVITE of ours, from the wish to its last attempt.
struct OwnChange: Sendable {
    /// What it is for.
    enum Purpose: Sendable, Equatable {
        /// To hold the call, or to take it off hold.
        case hold(Bool)
        /// To show that we are there: the media stay as they are (RFC 4028).
        case refresh
    }

    /// So often a change is tried in all when the peer answers 491 (both sides want something) or 500 (not now).
    static let maximumAttempts = 5

    let purpose: Purpose
    /// The INVITE under way; nil while the change waits to be tried again.
    var transaction: TransactionID?
    var invite: SIPMessage
    /// What it offers.
    var direction: MediaDirection
    var attempts = 1
    /// When to try again.
    var retryAt: MonotonicTime?
    /// When a re-INVITE that gets no final response is cancelled.
    var deadline: MonotonicTime?
}

/// Hold and resume: the re-INVITEs that we send (RFC 3261, 14.1; RFC 3264, 8.4).
extension UserAgent {
    /// Puts a call on hold: neither side hears the other. `.holdChanged` follows, or `.changeFailed`. What else is under
    /// way in the call comes to its end first.
    public mutating func hold(_ handle: CallHandle, at now: MonotonicTime) {
        wish(hold: true, handle, at: now)
    }

    /// Takes a call off hold. `.holdChanged` follows, or `.changeFailed`.
    public mutating func resume(_ handle: CallHandle, at now: MonotonicTime) {
        wish(hold: false, handle, at: now)
    }

    private mutating func wish(hold: Bool, _ handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], call.phase != .closing else { return }
        guard call.isAnswered else {
            emit(.call(handle, .changeFailed("the call is not answered yet")))
            return
        }
        calls[handle]?.wantsHold = hold
        if call.isHeld == hold, call.change?.transaction == nil { confirmHold(of: handle, at: now) }
        proceed(handle, at: now)
        settle(at: now)
    }

    /// What is wished for is so already, or again: a change that waits to be tried once more is dropped.
    private mutating func confirmHold(of handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle] else { return }
        if case .hold = call.change?.purpose { calls[handle]?.change = nil }
        emit(.call(handle, .holdChanged(local: call.isHeld, remote: call.isHeldByPeer)))
    }

    mutating func startChange(_ purpose: OwnChange.Purpose, of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], var session = call.session, let path else { return }
        let holds = if case .hold(let wanted) = purpose { wanted } else { call.isHeld }
        // Who is held already and holds, too, sends nothing and wants nothing (RFC 3264, 8.4).
        let direction: MediaDirection = holds ? (call.isHeldByPeer ? .inactive : .sendonly) : .sendrecv
        guard let offer = session.makeOffer(in: .invite, direction: direction) else { return }
        var invite = session.dialog.request(.invite, contact: path.contact(user: configuration.user))
        addAbilities(to: &invite)
        addTimer(to: &invite, of: call)
        invite.contentType = "application/sdp"
        invite.body = offer
        var change = call.change ?? OwnChange(purpose: purpose, invite: invite, direction: direction)
        change.direction = direction
        call.change = change
        call.session = session
        calls[handle] = call
        sendChange(invite, of: handle, over: path, at: now)
    }

    private mutating func sendChange(
        _ invite: SIPMessage, of handle: CallHandle, over path: RegisteredFlow, at now: MonotonicTime
    ) {
        guard let call = calls[handle] else { return }
        let id = transactions.send(invite, over: currentFlow(of: call), sentBy: path.via, at: now)
        calls[handle]?.change?.invite = invite
        calls[handle]?.change?.transaction = id
        calls[handle]?.change?.retryAt = nil
        calls[handle]?.change?.deadline = now + configuration.timers.transactionTimeout
        legs[id] = handle
    }

    /// A response to our re-INVITE; a 2xx has been acknowledged already.
    mutating func receiveChangeResponse(
        _ response: SIPMessage, status: Int, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard var call = calls[handle], var change = call.change, call.phase == .confirmed, let path else { return }
        if let again = authorised(change.invite, after: response, of: handle) {
            sendChange(again, of: handle, over: path, at: now)
            return
        }
        switch status {
        case ..<200:
            receiveChangeProvisional(response, of: handle, at: now)
            return
        case 200..<300:
            call.session?.dialog.update(from: response)
            call.session?.note(abilitiesIn: response)
            calls[handle] = call
            startTimer(of: handle, from: response, at: now)
            finishChange(of: handle, answer: response.body, at: now)
            return
        case 491, 500:
            change.retryAt = now + pause(after: response, status: status, of: call)
        case 422:
            guard let minimum = response.minSE, minimum > call.minimumSession else { break }
            call.raiseMinimumSession(to: minimum)
            change.retryAt = now
        default: break
        }
        guard change.retryAt != nil, change.attempts < OwnChange.maximumAttempts else {
            failChange(of: handle, status: status, phrase: "\(status) \(response.reason ?? "")", at: now)
            return
        }
        change.attempts += 1
        change.transaction = nil
        change.deadline = nil
        call.session?.abandonOffer()
        call.change = change
        calls[handle] = call
        if case .hold(let wanted) = change.purpose, wanted != call.wantsHold { confirmHold(of: handle, at: now) }
        proceed(handle, at: now)
    }

    /// A reliable provisional response to a re-INVITE: it wants its PRACK, and may have the answer already.
    private mutating func receiveChangeProvisional(
        _ response: SIPMessage, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard response.hasOption("100rel", in: "Require"), var session = calls[handle]?.session,
            response.to?.tag ?? "" == session.dialog.remoteTag, session.takesReliable(response)
        else { return }
        if case .offered = session.offer, !response.body.isEmpty { _ = try? session.receiveAnswer(response.body) }
        calls[handle]?.session = session
        sendPrack(for: response, tag: session.dialog.remoteTag, of: handle, at: now)
    }

    /// How long to wait before a refused change is tried again (RFC 3261, 14.1): who made the Call-ID waits longer, so
    /// that the two sides do not meet again.
    private mutating func pause(after response: SIPMessage, status: Int, of call: Call) -> Duration {
        if status != 491, let seconds = response.retryAfter { return .seconds(min(max(0, seconds), 32)) }
        return call.direction == .outgoing
            ? .milliseconds(2_100 + 10 * Int64(random.next() % 191)) : .milliseconds(10 * Int64(random.next() % 201))
    }

    private mutating func finishChange(of handle: CallHandle, answer: [UInt8], at now: MonotonicTime) {
        guard var call = calls[handle], let change = call.change, var session = call.session else { return }
        let audio: NegotiatedAudio
        if answer.isEmpty, session.offer == .agreed, let media = session.media {
            audio = media
        } else {
            do {
                audio = try session.receiveAnswer(answer)
            } catch {
                failChange(of: handle, status: 200, phrase: error.reason, at: now)
                return
            }
        }
        call.session = session
        call.change = nil
        calls[handle] = call
        tell(audio, of: handle)
        let holds: Bool? = if case .hold(let wanted) = change.purpose { wanted } else { nil }
        // The answer to an offer in which we send nothing does not tell whether the peer would take it.
        noteHold(of: handle, local: holds, remote: change.direction.sends ? !audio.direction.sends : nil)
        proceed(handle, at: now)
    }

    /// The change did not come about: the call is as it was.
    mutating func failChange(of handle: CallHandle, status: Int, phrase: String, at now: MonotonicTime) {
        guard var call = calls[handle], let change = call.change else { return }
        call.session?.abandonOffer()
        call.change = nil
        calls[handle] = call
        guard call.phase != .closing else { return }
        if case .hold(let wanted) = change.purpose {
            if call.wantsHold == wanted {
                calls[handle]?.wantsHold = call.isHeld
                emit(.call(handle, .changeFailed("\(wanted ? "hold" : "resume"): \(phrase.withoutControls)")))
            } else {
                confirmHold(of: handle, at: now)
            }
        }
        if status == 481 {
            endLostDialog(handle, at: now)
        } else if change.purpose == .refresh {
            refreshFailed(handle, status: status, at: now)
        }
        proceed(handle, at: now)
    }

    /// The peer does not know the call any more (12.2.1.2): it is over, and the BYE tells whoever else still thinks that
    /// it is not.
    mutating func endLostDialog(_ handle: CallHandle, at now: MonotonicTime) {
        sendBye(handle, reason: "SIP;cause=481;text=\"dialog unknown\"", at: now)
        emit(
            .call(
                handle,
                .ended(
                    CallTermination(.network, sipStatus: 481, phrase: "the other side does not know the call any more")
                )))
    }

    /// A change waits no longer: it is tried again, or its re-INVITE is given up.
    mutating func changeTimeout(_ handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], let change = call.change else { return }
        if let retry = change.retryAt, retry <= now {
            // A change of the peer that is under way now comes first; ours follows its ACK.
            calls[handle]?.change?.retryAt = nil
            proceed(handle, at: now)
        } else if let deadline = change.deadline, deadline <= now {
            calls[handle]?.change?.deadline = nil
            if let id = change.transaction { transactions.cancel(id, at: now) }
        }
    }
}
