import Primitives
import SDP
import SIP

/// Provisional responses to our INVITEs: a dialog for each device that was heard of, early media of each, and PRACK
/// for what was sent reliably (RFC 3261, 13.2.2.1; RFC 3262, section 4; RFC 6228).
extension UserAgent {
    mutating func receiveProvisional(
        _ response: SIPMessage, status: Int, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard status > 100, var call = calls[handle], call.session == nil else { return }
        let tag = response.to?.tag ?? ""
        if call[remoteTag: tag] == nil, call.forks.count < CallDialog.maximumForks,
            let fork = dialog(of: call, for: response)
        {
            call.forkCount += 1
            call.forks.append(fork)
        }
        if var fork = call[remoteTag: tag] {
            let isReliable = response.hasOption("100rel", in: "Require")
            // What cannot be acknowledged now will be repeated.
            guard !isReliable || call.unqueued.count < Call.maximumUnqueued && fork.takesReliable(response) else {
                return
            }
            fork.dialog.update(from: response)
            fork.note(abilitiesIn: response)
            call[remoteTag: tag] = fork
            calls[handle] = call
            reportProgress(status, tag: tag, of: handle)
            let answer = receiveEarlySession(response, isReliable: isReliable, tag: tag, of: handle)
            if isReliable { sendPrack(for: response, body: answer, tag: tag, of: handle, at: now) }
        } else {
            reportProgress(status, tag: tag, of: handle)
        }
    }

    private mutating func reportProgress(_ status: Int, tag: String, of handle: CallHandle) {
        guard var call = calls[handle], call.phase == .early else { return }
        if status == 199 {
            // That device is out; the others go on ringing.
            guard var fork = call[remoteTag: tag], !fork.hasEnded else { return }
            fork.hasEnded = true
            call[remoteTag: tag] = fork
            calls[handle] = call
            if fork.hasEarlyMedia { emit(.call(handle, .earlyMediaEnded(fork: fork.fork))) }
            return
        }
        if !call.hasProgressed {
            call.hasProgressed = true
            emit(.call(handle, .progressed))
        }
        if status == 180, !call.hasRung {
            call.hasRung = true
            emit(.call(handle, .rang))
        }
        calls[handle] = call
    }

    /// Takes in the description of a provisional response.
    ///
    /// - Returns: our answer, for the PRACK, when it was an offer.
    private mutating func receiveEarlySession(
        _ response: SIPMessage, isReliable: Bool, tag: String, of handle: CallHandle
    ) -> [UInt8] {
        guard !response.body.isEmpty, let call = calls[handle], var fork = call[remoteTag: tag] else { return [] }
        let before = fork.media
        var answer: [UInt8] = []
        switch fork.offer {
        case .offered(in: .invite):
            // What cannot be used is no answer yet: the 2xx will have one.
            guard (try? fork.receiveAnswer(response.body, isFinal: isReliable)) != nil else { return [] }
        case .none where isReliable:
            guard let result = try? fork.receiveOffer(response.body, direction: .sendrecv) else { return [] }
            answer = result.answer
        default:
            return []
        }
        calls[handle]?[remoteTag: tag] = fork
        if fork.media != before { reportEarlyMedia(tag: tag, of: handle) }
        return answer
    }

    /// Says what may be heard of a device that has not answered.
    mutating func reportEarlyMedia(tag: String, of handle: CallHandle) {
        guard let call = calls[handle], call.phase == .early, let media = call[remoteTag: tag]?.media else { return }
        guard calls[handle]?[remoteTag: tag]?.hasEnded == false else { return }
        calls[handle]?[remoteTag: tag]?.hasEarlyMedia = true
        emit(.call(handle, .earlyMedia(media, fork: call[remoteTag: tag]?.fork ?? 0)))
    }

    /// Acknowledges a reliable provisional response; our answer goes along when the response had an offer.
    mutating func sendPrack(
        for response: SIPMessage, body: [UInt8] = [], tag: String, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard var call = calls[handle], var fork = call[remoteTag: tag], let path, let number = response.rseq,
            let cseq = response.cseq
        else { return }
        var prack = fork.dialog.request(.prack)
        prack.rack = SIPRAck(responseNumber: number, cseq: cseq)
        prack.headers["User-Agent"] = configuration.userAgent
        if !body.isEmpty {
            prack.contentType = "application/sdp"
            prack.body = body
        }
        call[remoteTag: tag] = fork
        calls[handle] = call
        sendUnqueued(prack, of: handle, at: now, over: path)
    }
}

extension CallDialog {
    /// Whether a reliable provisional response is the next one. A repetition is dropped, and so is one that came
    /// before its turn: it will be repeated (RFC 3262, section 4).
    mutating func takesReliable(_ response: SIPMessage) -> Bool {
        guard let number = response.rseq, let sequence = response.cseq?.number else { return false }
        if let last = lastReliable, last.sequence == sequence {
            guard last.number < .max, number == last.number + 1 else { return false }
        }
        lastReliable = (sequence, number)
        return true
    }
}
