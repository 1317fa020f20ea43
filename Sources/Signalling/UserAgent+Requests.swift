import Primitives
import SIP

/// A request to be sent within a call, without what the dialog itself gives it (Call-ID, tags, CSeq, route).
struct InDialogRequest: Sendable {
    /// More than this do not wait in one call: whoever asks for more gets a failure at once.
    static let maximumWaiting = 64

    var method: SIPMethod
    var headers: [(name: String, value: String)] = []
    var contentType: String?
    var body: [UInt8] = []
}

/// What became of a request within a call.
struct RequestOutcome: Sendable {
    /// The final status; 408 when none came, 503 when the request could not be sent (RFC 3261, 8.1.3.1).
    var status: Int
    /// The response, where there is one.
    var response: SIPMessage?
    /// Why, for people.
    var phrase: String

    var isSuccess: Bool { (200..<300).contains(status) }
}

/// Requests within a call go out one after the other: a peer sees them in their order, whatever the network does to
/// them, and a change of the media never crosses a transfer that was asked for right after it.
extension UserAgent {
    /// Sends a request within an answered call as soon as nothing else of ours is under way there. What becomes of it is
    /// told to `receiveOutcome`, unless the call ends first.
    mutating func sendInDialog(_ request: InDialogRequest, of handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], call.isAnswered else {
            receiveOutcome(
                RequestOutcome(status: 481, phrase: "there is no answered call to send it in"), of: request, in: handle,
                at: now)
            return
        }
        guard call.waiting.count < InDialogRequest.maximumWaiting else {
            receiveOutcome(
                RequestOutcome(status: 503, phrase: "\(call.waiting.count) requests wait to be sent already"),
                of: request, in: handle, at: now)
            return
        }
        call.waiting.append(request)
        calls[handle] = call
        proceed(handle, at: now)
    }

    /// Where outcomes go, by method.
    private mutating func receiveOutcome(
        _ outcome: RequestOutcome, of request: InDialogRequest, in handle: CallHandle, at now: MonotonicTime
    ) {
        switch request.method {
        case .refer: receiveReferOutcome(outcome, of: handle, at: now)
        case .notify: receiveNotifyOutcome(outcome, of: handle)
        case .info: receiveInfoOutcome(outcome, of: handle)
        default: break
        }
    }

    /// Does the next thing that a call wants of its peer, when nothing else is under way between the two.
    mutating func proceed(_ handle: CallHandle, at now: MonotonicTime) {
        guard let call = calls[handle], call.isIdle, path != nil else { return }
        if call.wantsHold != call.isHeld {
            startChange(of: handle, at: now)
        } else if !call.waiting.isEmpty {
            sendWaiting(handle, at: now)
        }
    }

    private mutating func sendWaiting(_ handle: CallHandle, at now: MonotonicTime) {
        guard var call = calls[handle], var dialog = call.dialog, let path, !call.waiting.isEmpty else { return }
        let request = call.waiting.removeFirst()
        var message = dialog.request(request.method, contact: path.contact(user: configuration.user))
        for header in request.headers { message.headers.append(header.name, header.value) }
        message.headers["User-Agent"] = configuration.userAgent
        if !request.body.isEmpty {
            message.contentType = request.contentType
            message.body = request.body
        }
        let id = transactions.send(message, over: currentFlow(of: call), sentBy: path.via, at: now)
        call.dialog = dialog
        call.outstanding = OutstandingRequest(request: request, transaction: id)
        calls[handle] = call
        legs[id] = handle
    }

    /// The outstanding request of a call has its final response, or will never have one.
    mutating func finishOutstanding(
        _ outcome: RequestOutcome, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard var call = calls[handle], let outstanding = call.outstanding else { return }
        call.outstanding = nil
        calls[handle] = call
        receiveOutcome(outcome, of: outstanding.request, in: handle, at: now)
        proceed(handle, at: now)
    }
}

/// The request that a call waits for an answer to.
struct OutstandingRequest: Sendable {
    let request: InDialogRequest
    let transaction: TransactionID
}
