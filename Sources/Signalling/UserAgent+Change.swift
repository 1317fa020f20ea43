import Primitives
import SDP
import SIP

/// A change of the media that we asked the peer for, from the wish to its last attempt.
struct OwnChange: Sendable {
    /// So often a change is tried again after 491 (both sides want something) or 500 (not now).
    static let maximumAttempts = 5

    /// Whether the call is to be held or not.
    let hold: Bool
    /// The re-INVITE under way; nil while the change waits to be tried again.
    var transaction: TransactionID?
    var invite: SIPMessage
    var attempts = 1
    /// When to try again.
    var retryAt: MonotonicTime?
    /// When a re-INVITE that gets no final response is cancelled.
    var deadline: MonotonicTime?
}

/// Hold and resume: the re-INVITEs that we send (RFC 3261, 14.1; RFC 3264, 8.4).
extension UserAgent {
    /// Puts a call on hold: neither side hears the other. `.holdChanged` follows, or `.changeFailed`.
    public mutating func hold(_ handle: CallHandle, at now: MonotonicTime) {
        wish(hold: true, handle, at: now)
    }

    /// Takes a call off hold. `.holdChanged` follows, or `.changeFailed`.
    public mutating func resume(_ handle: CallHandle, at now: MonotonicTime) {
        wish(hold: false, handle, at: now)
    }

    private mutating func wish(hold: Bool, _ handle: CallHandle, at now: MonotonicTime) {
        guard calls[handle]?.isAnswered == true else {
            if let call = calls[handle], call.phase != .closing {
                emit(.call(handle, .changeFailed("the call is not answered yet")))
            }
            return
        }
        calls[handle]?.wantsHold = hold
        proceed(handle, at: now)
        settle(at: now)
    }

    mutating func startChange(of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], var dialog = call.dialog, var negotiation = call.negotiation, let path else {
            return
        }
        let hold = call.wantsHold
        var invite = dialog.request(.invite, contact: path.contact(user: configuration.user))
        invite.headers["Allow"] = Self.allowedMethods
        invite.headers["User-Agent"] = configuration.userAgent
        invite.contentType = "application/sdp"
        // Who is held already and holds, too, sends nothing and wants nothing (RFC 3264, 8.4).
        invite.body = negotiation.makeOffer(
            direction: hold ? (call.isHeldByPeer ? .inactive : .sendonly) : .sendrecv)
        let id = transactions.send(invite, over: currentFlow(of: call), sentBy: path.via, at: now)
        var change = call.change ?? OwnChange(hold: hold, invite: invite)
        change.invite = invite
        change.transaction = id
        change.retryAt = nil
        change.deadline = now + configuration.timers.transactionTimeout
        call.change = change
        call.dialog = dialog
        call.negotiation = negotiation
        calls[handle] = call
        legs[id] = handle
    }

    /// A final response to our re-INVITE; a 2xx has been acknowledged already.
    mutating func receiveChangeResponse(
        _ response: SIPMessage, status: Int, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard var call = calls[handle], var change = call.change, call.phase == .confirmed else { return }
        switch status {
        case 200..<300:
            call.dialog?.update(from: response)
            calls[handle] = call
            finishChange(of: handle, answer: response.body, at: now)
        case 491 where change.attempts < OwnChange.maximumAttempts,
            500 where change.attempts < OwnChange.maximumAttempts:
            change.attempts += 1
            change.transaction = nil
            change.deadline = nil
            change.retryAt = now + pause(after: response, status: status, of: call)
            call.negotiation?.abandonOffer()
            call.change = change
            calls[handle] = call
        default:
            failChange(of: handle, phrase: "\(status) \(response.reason ?? "")", at: now)
        }
    }

    /// How long to wait before a refused change is tried again (RFC 3261, 14.1): who made the Call-ID waits longer, so
    /// that the two sides do not meet again.
    private mutating func pause(after response: SIPMessage, status: Int, of call: Call) -> Duration {
        if status != 491, let seconds = response.retryAfter { return .seconds(min(max(0, seconds), 32)) }
        let steps = Int64(random.next() % (call.direction == .outgoing ? 191 : 201))
        return .milliseconds(10 * steps + (call.direction == .outgoing ? 2_100 : 0))
    }

    private mutating func finishChange(of handle: CallHandle, answer: [UInt8], at now: MonotonicTime) {
        guard var call = calls[handle], let change = call.change, var negotiation = call.negotiation else { return }
        let audio: NegotiatedAudio
        do {
            audio = try negotiation.receiveAnswer(answer)
        } catch {
            failChange(of: handle, phrase: error.reason, at: now)
            return
        }
        call.negotiation = negotiation
        call.change = nil
        let wasHeld = (call.isHeld, call.isHeldByPeer)
        call.isHeld = change.hold
        // The answer to an offer in which we send nothing does not tell whether the peer would take it.
        if !(change.hold && call.isHeldByPeer) { call.isHeldByPeer = !audio.direction.sends }
        let isNew = call.media != audio
        call.media = audio
        calls[handle] = call
        if isNew { emit(.call(handle, .mediaChanged(audio))) }
        if wasHeld != (call.isHeld, call.isHeldByPeer) {
            emit(.call(handle, .holdChanged(local: call.isHeld, remote: call.isHeldByPeer)))
        }
        proceed(handle, at: now)
    }

    /// The change did not come about: the call is as it was.
    mutating func failChange(of handle: CallHandle, phrase: String, at now: MonotonicTime) {
        guard var call = calls[handle], let change = call.change else { return }
        call.negotiation?.abandonOffer()
        call.change = nil
        call.wantsHold = call.isHeld
        calls[handle] = call
        if call.phase != .closing {
            emit(.call(handle, .changeFailed("\(change.hold ? "hold" : "resume"): \(phrase)")))
        }
        proceed(handle, at: now)
    }

    /// A change waits no longer: it is tried again, or its re-INVITE is given up.
    mutating func changeTimeout(_ handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], let change = call.change else { return }
        if let retry = change.retryAt, retry <= now, call.canOffer {
            startChange(of: handle, at: now)
        } else if let deadline = change.deadline, deadline <= now {
            call.change?.deadline = nil
            calls[handle] = call
            if let id = change.transaction { transactions.cancel(id, at: now) }
        }
    }
}
