import Primitives
import SIP

/// Session timers in both roles: calls whose other side has vanished come to an end (RFC 4028).
extension UserAgent {
    /// The session interval that we ask for, in seconds; nil asks for none.
    var wantedSession: Int? {
        configuration.sessionExpires.map { duration in
            min(
                max(Int(duration.components.seconds), SessionTimer.lowestInterval, lowestSession),
                SessionTimer.highestInterval)
        }
    }

    private var lowestSession: Int {
        max(Int(configuration.minimumSessionExpires.components.seconds), SessionTimer.lowestInterval)
    }

    /// What a request that refreshes the session says about its timer: the roles stay (section 7.4).
    func addTimer(to request: inout SIPMessage, of call: Call) {
        guard let timer = call.timer else { return }
        request.sessionExpires = SIPSessionExpires(
            seconds: max(timer.interval, call.minimumSession), refresher: timer.isRefresher ? .uac : .uas)
        if call.minimumSession > SessionTimer.lowestInterval { request.minSE = call.minimumSession }
    }

    /// A 2xx to a request of ours sets the timer anew, or ends it when it names no interval (section 7.2).
    mutating func startTimer(of handle: CallHandle, from response: SIPMessage, at now: MonotonicTime) {
        calls[handle]?.timer = response.sessionExpires.map {
            SessionTimer(seconds: $0.seconds, isRefresher: $0.refresher != .uas, at: now)
        }
    }

    /// Writes the timer into our 2xx to a request that sets up or refreshes the session, and starts it.
    mutating func acceptTimer(
        of request: SIPMessage, in response: inout SIPMessage, of handle: CallHandle, at now: MonotonicTime
    ) {
        switch SessionTimerAnswer(for: request, wanted: wantedSession, minimum: lowestSession) {
        case .accept(let value, let isRequired):
            response.sessionExpires = value
            if isRequired { response.headers.append("Require", "timer") }
            calls[handle]?.timer = SessionTimer(seconds: value.seconds, isRefresher: value.refresher == .uas, at: now)
        case .none, .tooSmall:
            calls[handle]?.timer = nil
        }
    }

    /// Refuses a request whose session interval is too small for us (422); true when it did.
    mutating func refusesTimer(of request: SIPMessage, in id: TransactionID, at now: MonotonicTime) -> Bool {
        guard
            case .tooSmall(let minimum) = SessionTimerAnswer(
                for: request, wanted: wantedSession, minimum: lowestSession)
        else { return false }
        var response = request.response(
            status: 422, toTag: request.to?.tag == nil ? random.hexadecimal(bits: 64) : nil)
        response.minSE = minimum
        transactions.respond(response, in: id, at: now)
        return true
    }

    /// The timer of a call is due: a refresh of ours, or the end.
    mutating func sessionTimeout(_ handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], call.phase == .confirmed, let timer = call.timer, timer.nextTimeout <= now
        else { return }
        if timer.byeAt <= now {
            lapse(handle, at: now)
        } else {
            calls[handle]?.timer?.isRefreshing = true
            calls[handle]?.timer?.refreshAt = nil
            proceed(handle, at: now)
        }
    }

    /// Shows the peer that we are there: by UPDATE where it knows that, else by an INVITE that changes nothing.
    mutating func refresh(_ handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle] else { return }
        guard call.session?.allows(.update) ?? false else {
            startChange(.refresh, of: handle, at: now)
            return
        }
        var timer = SIPMessage(request: .update, uri: configuration.addressOfRecord)
        addTimer(to: &timer, of: call)
        transmit(InDialogRequest(method: .update, headers: timer.headers.all), of: handle, at: now)
    }

    /// What became of a refresh by UPDATE.
    mutating func receiveRefreshOutcome(_ outcome: RequestOutcome, of handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], call.phase == .confirmed else { return }
        if outcome.isSuccess, let response = outcome.response {
            startTimer(of: handle, from: response, at: now)
            return
        }
        switch outcome.status {
        case 481:
            endLostDialog(handle, at: now)
            return
        case 422:
            if let minimum = outcome.response?.minSE, minimum > call.minimumSession {
                calls[handle]?.raiseMinimumSession(to: minimum)
                return  // the refresh is still due: once more, with the new interval
            }
        case 405, 501:
            // It said that it knows UPDATE, and does not.
            calls[handle]?.session?.allowed?.remove(SIPMethod.update.rawValue)
            return
        default: break
        }
        refreshFailed(handle, status: outcome.status, at: now)
    }

    /// No answer at all ends the call; a refusal is followed by another try before the interval runs out (section 10).
    mutating func refreshFailed(_ handle: CallHandle, status: Int, at now: MonotonicTime) {
        guard let timer = calls[handle]?.timer else { return }
        if status == 408 {
            lapse(handle, at: now)
            return
        }
        calls[handle]?.timer?.isRefreshing = false
        calls[handle]?.timer?.refreshAt = now + max(.seconds(1), (timer.byeAt - now) / 2)
    }

    private mutating func lapse(_ handle: CallHandle, at now: MonotonicTime) {
        sendBye(handle, reason: "SIP;cause=408;text=\"session timer expired\"", at: now)
        emit(
            .call(
                handle,
                .ended(
                    CallTermination(
                        .network, isLocal: true,
                        phrase: "the session timer ran out: the other side gave no sign of life"))))
    }
}

extension Call {
    /// A 422 named the smallest interval that the path takes.
    mutating func raiseMinimumSession(to seconds: Int) {
        minimumSession = max(minimumSession, min(seconds, SessionTimer.highestInterval))
    }
}
