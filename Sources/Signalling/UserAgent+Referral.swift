import Primitives
import SDP
import SIP

/// What the other side of a call asks for with a REFER that was accepted.
public struct TransferRequest: Sendable, Equatable {
    /// Whom to call.
    public var target: SIPURI
    /// Who says to ask for it.
    public var referredBy: SIPAddress?
    /// Whether the new call takes our partner's place in a call of its own (attended transfer).
    public var isAttended: Bool
}

/// A transfer of us that the other side of a call asked for.
struct Referral: Sendable {
    /// How long the other side stays subscribed to our reports: no call rings longer.
    static let lifetime: Duration = .seconds(300)

    let request: TransferRequest
    let replaces: SIPReplaces?
    /// The `id` of our reports: the CSeq number of the REFER.
    let event: SIPTokenValue
    /// Whether reports are wanted, and still arrive.
    var isSubscribed: Bool
    let expires: MonotonicTime
    /// The call that we made because of it.
    var call: CallHandle?
    /// Whether the last report was given.
    var isOver = false
    /// When the old call is ended if the other side does not do so itself.
    var deadline: MonotonicTime?
}

/// The side that is transferred (RFC 3515; RFC 5589): judges a REFER, makes the call, and reports how it goes.
extension UserAgent {
    mutating func receiveRefer(
        _ refer: SIPMessage, in id: TransactionID, of handle: CallHandle, at now: MonotonicTime
    ) {
        // Whoever can make us call can make us pay: only where the user allows it.
        guard configuration.acceptsTransfers else {
            refuse(refer, in: id, status: 603, at: now)
            return
        }
        guard var call = calls[handle], call.isAnswered, call.transfer == nil, call.referral?.isOver ?? true else {
            refuse(refer, in: id, status: 491, at: now)
            return
        }
        guard let target = refer.referTo?.uri else {
            refuse(refer, in: id, status: 400, reason: "Bad Request (Refer-To)", at: now)
            return
        }
        guard let referral = referral(to: target, by: refer, of: call, at: now),
            activeCalls <= configuration.maximumCalls, path != nil
        else {
            refuse(refer, in: id, status: 603, at: now)
            return
        }
        call.referral = referral
        calls[handle] = call
        var response = ownResponse(to: refer, status: referral.isSubscribed ? 202 : 200, localTag: call.localTag)
        if let path { response.contacts = [path.contact(user: configuration.user)] }
        if !referral.isSubscribed { response.headers["Refer-Sub"] = "false" }
        transactions.respond(response, in: id, at: now)
        report(100, to: handle, at: now)
        emit(.call(handle, .transferRequested(referral.request)))
    }

    /// What a REFER asks for, when it may be done: a call, to an address that others may send us to.
    private func referral(
        to target: SIPURI, by refer: SIPMessage, of call: Call, at now: MonotonicTime
    ) -> Referral? {
        let method = target.parameters["method"]?.uppercased() ?? "INVITE"
        guard method == "INVITE", isAllowedTarget(target, insteadOf: call.invite.requestURI) else { return nil }
        var uri = target
        uri.headers = []
        uri.parameters.remove("method")
        // Of the headers that a URI may bring, only this one means anything here.
        let named = target.headers.filter { $0.name.lowercased() == "replaces" }
        let replaces = named.first.flatMap { SIPReplaces(parsing: $0.value) }
        guard named.count <= 1, named.isEmpty == (replaces == nil) else { return nil }
        var event = SIPTokenValue("refer")
        if let number = refer.cseq?.number { event.parameters["id"] = String(number) }
        return Referral(
            request: TransferRequest(target: uri, referredBy: refer.referredBy, isAttended: replaces != nil),
            replaces: replaces, event: event,
            isSubscribed: refer.headers["Refer-Sub"]?.lowercased().hasPrefix("false") != true,
            expires: now + Referral.lifetime)
    }

    /// Makes the call that `.transferRequested` told of; `.ended` of the old call follows when the new one is answered.
    ///
    /// - Parameters:
    ///   - handle: the call whose other side asked for it.
    ///   - callID: as for `call`.
    ///   - media: as for `call`.
    /// - Returns: the new call.
    public mutating func followTransfer(
        _ handle: CallHandle, callID: String? = nil, media: LocalMedia, at now: MonotonicTime
    ) -> CallHandle {
        guard let referral = calls[handle]?.referral, referral.call == nil, !referral.isOver else {
            let new = makeHandle()
            emit(.call(new, .ended(CallTermination(.canceled, phrase: "the call that asked for it is over"))))
            return new
        }
        var headers: [(name: String, value: String)] = []
        if let referrer = referral.request.referredBy, referrer.printFault == nil {
            headers.append((name: "Referred-By", value: referrer.description))
        }
        if let replaces = referral.replaces { headers.append((name: "Replaces", value: replaces.description)) }
        let new = call(referral.request.target, callID: callID, headers: headers, media: media, at: now)
        guard calls[new] != nil else {
            // It ended before it began, and that was told.
            report(503, to: handle, at: now)
            settle(at: now)
            return new
        }
        calls[handle]?.referral?.call = new
        referrers[new] = handle
        return new
    }

    /// Does not make the call that `.transferRequested` told of; the old one goes on.
    public mutating func declineTransfer(_ handle: CallHandle, at now: MonotonicTime) {
        guard calls[handle]?.referral?.call == nil else { return }
        report(603, to: handle, at: now)
        settle(at: now)
    }

    // MARK: Reports

    /// Notes what happens to a call that somebody asked us to make; told with the next `sendReports`.
    mutating func noteForReferrer(_ event: CallEvent, of handle: CallHandle) {
        guard let referrer = referrers[handle] else { return }
        switch event {
        case .rang: reports.append((referrer, 180))
        case .answered: reports.append((referrer, 200))
        case .ended(let termination):
            let status = termination.sipStatus ?? 0
            reports.append((referrer, status >= 300 ? status : termination.reason == .canceled ? 487 : 503))
        default: return
        }
        if reports.last?.status ?? 0 >= 200 { referrers[handle] = nil }
    }

    /// Tells the referrers what was noted.
    mutating func sendReports(at now: MonotonicTime) {
        while let next = reports.first {
            reports.removeFirst()
            report(next.status, to: next.referrer, at: now)
        }
    }

    private mutating func report(_ status: Int, to handle: CallHandle, at now: MonotonicTime) {
        guard var referral = calls[handle]?.referral, !referral.isOver else { return }
        let isLast = status >= 200
        referral.isOver = isLast
        if (200..<300).contains(status) {
            // Our partner ends the old call when it has heard of the new one; it is not waited for longer than for any answer.
            referral.deadline = now + configuration.timers.transactionTimeout
        }
        calls[handle]?.referral = referral
        guard referral.isSubscribed else { return }
        let left = max(1, (referral.expires - now).components.seconds)
        let state = isLast ? "terminated;reason=noresource" : "active;expires=\(left)"
        sendInDialog(
            InDialogRequest(
                method: .notify,
                headers: [
                    (name: "Event", value: referral.event.description), (name: "Subscription-State", value: state),
                ],
                contentType: SIPStatusFragment.contentType, body: SIPStatusFragment(status: status).encoded),
            of: handle, at: now)
    }

    /// A report was refused: nobody listens.
    mutating func receiveNotifyOutcome(_ outcome: RequestOutcome, of handle: CallHandle) {
        if !outcome.isSuccess { calls[handle]?.referral?.isSubscribed = false }
    }
}
