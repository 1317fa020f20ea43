import Primitives
import SIP

/// Keys by INFO (RFC 6086's predecessor, RFC 2976): for peers that take no telephone events in their media.
extension UserAgent {
    /// How long a key is said to be held.
    private static let keyMilliseconds = 100

    /// Sends keys, one after the other; `.keysSent` follows, or `.keysFailed`.
    ///
    /// - Parameter keys: of `0`–`9`, `*`, `#`, `A`–`D`; checked by the caller.
    public mutating func sendKeys(_ keys: String, in handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], call.phase != .closing else { return }
        guard call.isAnswered, call.waiting.count + keys.count <= InDialogRequest.maximumWaiting else {
            let phrase = call.isAnswered ? "too many keys wait already" : "the call is not answered"
            emit(.call(handle, .keysFailed(CallTermination(.failed, isLocal: true, phrase: phrase))))
            return
        }
        for key in keys {
            sendInDialog(
                InDialogRequest(
                    method: .info, contentType: SIPDTMFBody.contentType,
                    body: SIPDTMFBody.encoded(key: key, milliseconds: Self.keyMilliseconds)),
                of: handle, at: now)
        }
        settle(at: now)
    }

    /// A key was taken or refused. After a refusal the others need not be tried.
    mutating func receiveInfoOutcome(_ outcome: RequestOutcome, of handle: CallHandle) {
        guard let call = calls[handle], call.phase != .closing else { return }
        guard outcome.isSuccess else {
            calls[handle]?.waiting.removeAll { $0.method == .info }
            emit(
                .call(
                    handle,
                    .keysFailed(CallTermination(status: outcome.status, phrase: outcome.phrase, hasRung: false))))
            return
        }
        if !call.waiting.contains(where: { $0.method == .info }) { emit(.call(handle, .keysSent)) }
    }

    /// What an INFO of the other side says: a key, nothing, or something that nobody here understands.
    mutating func receiveInfo(
        _ info: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard let call = calls[handle], call.isAnswered else {
            refuse(info, in: id, status: 481, at: now)
            return
        }
        guard !info.headers.contains("Info-Package") else {
            // Packages are agreed on beforehand, and none was (RFC 6086, section 4.2.2).
            refuse(info, in: id, status: 469, headers: [(name: "Recv-Info", value: "")], at: now)
            return
        }
        let response = ownResponse(to: info, status: 200, localTag: call.localTag)
        guard !info.body.isEmpty else {
            // Some peers ask in this way whether the call is still there.
            transactions.respond(response, in: id, at: now)
            return
        }
        guard let type = info.contentType, SIPDTMFBody.isContentType(type) else {
            refuse(info, in: id, status: 415, headers: [(name: "Accept", value: SIPDTMFBody.accepted)], at: now)
            return
        }
        guard let key = SIPDTMFBody.key(in: info.body, contentType: type) else {
            refuse(info, in: id, status: 400, reason: "Bad Request (No Key)", at: now)
            return
        }
        guard calls[handle]?.keyPace.allows(at: now) ?? false else {
            refuse(info, in: id, status: 503, headers: [(name: "Retry-After", value: "1")], at: now)
            return
        }
        transactions.respond(response, in: id, at: now)
        emit(.call(handle, .keyReceived(key)))
    }
}
