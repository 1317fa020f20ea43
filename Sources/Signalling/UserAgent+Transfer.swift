import Primitives
import SIP

/// A transfer that we asked the other side of a call for, from the wish to its outcome.
struct OwnTransfer: Sendable {
    /// How long the other side may be silent about its new call.
    static let patience: Duration = .seconds(180)

    /// The call whose other side is to be called: ended with ours when the transfer has succeeded. Nil: a blind transfer.
    let consultation: CallHandle?
    /// The CSeq number of the REFER, which its reports may name.
    var sequence: UInt32?
    /// Whether the other side said that it will try.
    var isAccepted = false
    /// The status that was reported last.
    var status = 0
    /// When the transfer counts as failed for want of a report.
    var deadline: MonotonicTime?
}

/// The side that transfers (RFC 3515; RFC 5589, sections 6 and 7): asks the other side of a call to call somebody else,
/// and hears by NOTIFY how that goes.
extension UserAgent {
    /// Asks the other side of a call to call `target` instead of us (blind transfer). `.transferProgress`, then
    /// `.transferred` and the end of the call follow, or `.transferFailed`.
    public mutating func transfer(_ handle: CallHandle, to target: SIPURI, at now: MonotonicTime) {
        var uri = target
        uri.headers = []
        uri.parameters.remove("method")
        refer(handle, to: uri, consultation: nil, at: now)
    }

    /// Connects the other sides of two calls (attended transfer): that of `handle` takes our place in `other`. As for a
    /// blind transfer; with success both calls end.
    public mutating func transfer(_ handle: CallHandle, to other: CallHandle, at now: MonotonicTime) {
        guard other != handle, let call = calls[other], call.isAnswered, let dialog = call.dialog else {
            failTransfer(of: handle, .failed, "the other call is not answered")
            return
        }
        // A contact that others can reach says so (GRUU, RFC 5627). Any other one may be known to its own proxy only, so
        // the user's address is called; of several devices only the right one has the call that is to be replaced.
        let target = dialog.remoteTarget
        var uri = target.parameters.contains("gr") ? target : dialog.remoteURI.uri
        uri.parameters.remove("method")
        uri.headers = [SIPURI.Header(name: "Replaces", value: SIPReplaces(dialog).description)]
        refer(handle, to: uri, consultation: other, at: now)
    }

    private mutating func refer(
        _ handle: CallHandle, to target: SIPURI, consultation: CallHandle?, at now: MonotonicTime
    ) {
        guard var call = calls[handle], call.isAnswered else {
            failTransfer(of: handle, .failed, "the call is not answered")
            return
        }
        guard call.transfer == nil else {
            failTransfer(of: handle, .failed, "the call is being transferred already")
            return
        }
        guard target.isSIP, !(call.dialog?.isSecure ?? false) || target.isSecure else {
            failTransfer(of: handle, .failed, "a call that began with sips can go to a sips address only")
            return
        }
        call.transfer = OwnTransfer(consultation: consultation)
        calls[handle] = call
        let request = InDialogRequest(
            method: .refer,
            headers: [
                (name: "Refer-To", value: SIPAddress(uri: target).description),
                (name: "Referred-By", value: SIPAddress(uri: configuration.addressOfRecord).description),
            ])
        sendInDialog(request, of: handle, at: now)
        settle(at: now)
    }

    /// Our REFER has its final response.
    mutating func receiveReferOutcome(_ outcome: RequestOutcome, of handle: CallHandle, at now: MonotonicTime) {
        // The reports of a quick peer overtake its response and may have ended the matter already.
        guard var transfer = calls[handle]?.transfer else { return }
        guard outcome.isSuccess else {
            calls[handle]?.transfer = nil
            emit(
                .call(
                    handle,
                    .transferFailed(CallTermination(status: outcome.status, phrase: outcome.phrase, hasRung: false))))
            return
        }
        if outcome.response?.headers["Refer-Sub"]?.lowercased().hasPrefix("false") ?? false {
            // There will be no reports (RFC 4488): that it tries is all we shall know.
            finishTransfer(of: handle, at: now)
            return
        }
        transfer.isAccepted = true
        transfer.sequence = outcome.response?.cseq?.number
        transfer.deadline = transfer.deadline ?? now + OwnTransfer.patience
        calls[handle]?.transfer = transfer
    }

    /// A report of the other side: how the call goes that it was asked to make (RFC 3515, section 2.4.5).
    mutating func receiveNotify(
        _ notify: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        guard let event = notify.event, event.isNamed("refer") else {
            refuse(notify, in: id, status: 489, headers: [(name: "Allow-Events", value: "refer")], at: now)
            return
        }
        guard var transfer = calls[handle]?.transfer, Self.isReport(event, of: transfer) else {
            refuse(notify, in: id, status: 481, reason: "No Such Subscription", at: now)
            return
        }
        let type = notify.contentType?.prefix { $0 != ";" && !$0.isWhitespace }.lowercased()
        guard notify.body.isEmpty || type == "message/sipfrag" else {
            refuse(notify, in: id, status: 415, headers: [(name: "Accept", value: "message/sipfrag")], at: now)
            return
        }
        transactions.respond(
            ownResponse(to: notify, status: 200, localTag: calls[handle]?.localTag ?? ""), in: id, at: now)
        let state = notify.subscriptionState
        let isOver = state?.isNamed("terminated") ?? false
        let report = SIPStatusFragment(parsing: notify.body)
        switch report?.status ?? 0 {
        case 200..<300: finishTransfer(of: handle, at: now)
        case 300...:
            calls[handle]?.transfer = nil
            emit(
                .call(
                    handle,
                    .transferFailed(
                        CallTermination(
                            status: report?.status ?? 0, phrase: report?.reason ?? "", hasRung: transfer.status == 180))
                ))
        case _ where isOver:
            let why = state?.parameters["reason"].map { " (\($0))" } ?? ""
            failTransfer(of: handle, .failed, "the other side gave up without a result\(why)", isLocal: false)
        case let status:
            let seconds = state?.parameters["expires"].flatMap { Int64($0) } ?? OwnTransfer.patience.components.seconds
            transfer.deadline = now + .seconds(min(max(seconds, 1), 600))
            // A call only comes further; more would be a way to keep us busy.
            let isNews = status >= 100 && status > transfer.status
            if isNews { transfer.status = status }
            calls[handle]?.transfer = transfer
            if isNews { emit(.call(handle, .transferProgress(status: status))) }
        }
    }

    /// Whether a NOTIFY belongs to a REFER: its `id` is the CSeq number of that one, or is left out.
    private static func isReport(_ event: SIPTokenValue, of transfer: OwnTransfer) -> Bool {
        guard let id = event.parameters["id"], let sequence = transfer.sequence else { return true }
        return UInt32(id) == sequence
    }

    /// The other side has made its new call: it needs us no more.
    private mutating func finishTransfer(of handle: CallHandle, at now: MonotonicTime) {
        guard let transfer = calls[handle]?.transfer else { return }
        calls[handle]?.transfer = nil
        emit(.call(handle, .transferred))
        let termination = CallTermination(.hungUp, isLocal: true, phrase: "transferred")
        conclude(handle, termination, at: now)
        if let consultation = transfer.consultation { conclude(consultation, termination, at: now) }
    }

    private mutating func failTransfer(
        of handle: CallHandle, _ reason: CallEndReason, _ phrase: String, isLocal: Bool = true
    ) {
        // Of a call that is over nothing more is told.
        guard let call = calls[handle], call.phase != .closing else { return }
        if !isLocal || reason == .timeout { calls[handle]?.transfer = nil }
        emit(.call(handle, .transferFailed(CallTermination(reason, isLocal: isLocal, phrase: phrase))))
    }

    /// The other side hung up. One that said it would go has gone.
    mutating func transferEnds(with handle: CallHandle) {
        guard let transfer = calls[handle]?.transfer else { return }
        calls[handle]?.transfer = nil
        let termination = CallTermination(.hungUp, phrase: "the other side hung up")
        emit(.call(handle, transfer.isAccepted ? .transferred : .transferFailed(termination)))
    }

    /// Nothing was heard of a transfer, or of the end of a call that it leaves behind.
    mutating func transferTimeout(_ handle: CallHandle, at now: MonotonicTime) {
        if let deadline = calls[handle]?.transfer?.deadline, deadline <= now {
            failTransfer(of: handle, .timeout, "the other side does not report what became of it", isLocal: false)
        }
        if let deadline = calls[handle]?.referral?.deadline, deadline <= now {
            calls[handle]?.referral?.deadline = nil
            conclude(handle, CallTermination(.hungUp, isLocal: true, phrase: "transferred"), at: now)
        }
    }

    /// Hangs up an answered call for a reason other than the user's wish.
    mutating func conclude(_ handle: CallHandle, _ termination: CallTermination, at now: MonotonicTime) {
        guard let call = calls[handle], call.phase != .closing else { return }
        hangUp(handle, termination: termination, at: now)
    }
}
