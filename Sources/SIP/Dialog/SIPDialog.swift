/// Why a message does not make a dialog.
public enum SIPDialogError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The message lacks a header that a dialog is made of; the name is given.
    case missing(header: String)
    /// The response is no 101–299.
    case status(Int)
    /// The response does not belong to the request: another Call-ID or From tag.
    case mismatch

    /// One line for people.
    public var description: String {
        switch self {
        case .missing(let header):
            "the message has no usable \(header) header, which a dialog needs (RFC 3261 section 12.1)"
        case .status(let status): "a \(status) response does not make a dialog (RFC 3261 section 12.1)"
        case .mismatch: "the response belongs to another request"
        }
    }
}

/// A dialog: what two user agents remember of each other (RFC 3261 section 12).
///
/// One INVITE may lead to several: make one for each To tag that a 101–299 brings. A value without clock; the
/// owner keeps it, under ``id-swift.property``, and hands it the messages that match.
public struct SIPDialog: Sendable, Equatable {
    /// What identifies a dialog, seen from this element.
    public struct ID: Hashable, Sendable, CustomStringConvertible {
        /// The Call-ID.
        public var callID: String
        /// Our tag.
        public var localTag: String
        /// The peer's tag; empty for a peer that gives none (RFC 2543).
        public var remoteTag: String

        /// Creates an identity from its parts.
        public init(callID: String, localTag: String, remoteTag: String) {
            self.callID = callID
            self.localTag = localTag
            self.remoteTag = remoteTag
        }

        /// The dialog that a received request or response belongs to; nil when it lacks the headers. The local tag
        /// is empty for a request that is outside any dialog.
        public init?(received message: SIPMessage) {
            guard let callID = message.callID, let from = message.from, let to = message.to else { return nil }
            self.callID = callID
            localTag = (message.isRequest ? to.tag : from.tag) ?? ""
            remoteTag = (message.isRequest ? from.tag : to.tag) ?? ""
        }

        /// For logs: Call-ID and both tags.
        public var description: String { "\(callID);local=\(localTag);remote=\(remoteTag)" }
    }

    /// The Call-ID.
    public let callID: String
    /// Our tag.
    public let localTag: String
    /// The peer's tag; empty for a peer that gives none (RFC 2543).
    public let remoteTag: String
    /// Our address, without the tag.
    public let localURI: SIPAddress
    /// The peer's address, without the tag.
    public let remoteURI: SIPAddress
    /// The peer's contact: where requests within the dialog go in the end.
    public private(set) var remoteTarget: SIPURI
    /// The proxies that stay on the path, nearest first.
    public private(set) var routeSet: [SIPAddress]
    /// The CSeq number of the last request sent within the dialog.
    public private(set) var localSequence: UInt32
    /// The CSeq number of the last request received; nil before the first.
    public private(set) var remoteSequence: UInt32?
    /// Whether no 2xx has come (or, on the called side, been sent) yet.
    public private(set) var isEarly: Bool
    /// Whether the dialog was set up with a SIPS URI, so that its requests need TLS on each hop.
    public let isSecure: Bool

    /// The dialog's identity.
    public var id: ID { ID(callID: callID, localTag: localTag, remoteTag: remoteTag) }

    /// The calling side's dialog, from the request as it was sent and a 101–299 to it (section 12.1.2).
    ///
    /// A response without Contact leaves the request URI as the target: many 180s have none, and even a 2xx without
    /// it must be acknowledged.
    public init(asClientFor request: SIPMessage, response: SIPMessage) throws(SIPDialogError) {
        guard let status = response.status, (101...299).contains(status) else {
            throw .status(response.status ?? 0)
        }
        guard let callID = request.callID else { throw .missing(header: "Call-ID") }
        guard let from = request.from, let localTag = from.tag else { throw .missing(header: "From") }
        guard let to = request.to, let responseTo = response.to else { throw .missing(header: "To") }
        guard let sequence = request.cseq?.number else { throw .missing(header: "CSeq") }
        guard let requestURI = request.requestURI else { throw .missing(header: "Request-URI") }
        guard response.callID == callID, response.from?.tag == localTag else { throw .mismatch }
        self.callID = callID
        self.localTag = localTag
        remoteTag = responseTo.tag ?? ""
        localURI = from.withoutTag
        remoteURI = to.withoutTag
        remoteTarget = response.contactTarget ?? requestURI
        routeSet = response.recordRoutes.reversed()
        localSequence = sequence
        remoteSequence = nil
        isEarly = status < 200
        isSecure = requestURI.isSecure
    }

    /// The called side's dialog, early until ``confirm()`` (section 12.1.1). `localTag` goes into the To header of
    /// every response above 100.
    public init(asServerFor request: SIPMessage, localTag: String) throws(SIPDialogError) {
        guard let callID = request.callID else { throw .missing(header: "Call-ID") }
        guard let from = request.from else { throw .missing(header: "From") }
        guard let to = request.to else { throw .missing(header: "To") }
        guard let sequence = request.cseq?.number else { throw .missing(header: "CSeq") }
        guard let contact = request.contactTarget else { throw .missing(header: "Contact") }
        self.callID = callID
        self.localTag = localTag
        remoteTag = from.tag ?? ""
        localURI = to.withoutTag
        remoteURI = from.withoutTag
        remoteTarget = contact
        routeSet = request.recordRoutes
        localSequence = 0
        remoteSequence = sequence
        isEarly = true
        isSecure = request.requestURI?.isSecure ?? false
    }

    /// The called side has sent its 2xx.
    public mutating func confirm() {
        isEarly = false
    }

    /// Takes the next CSeq number, for a request that is made from an earlier one.
    public mutating func takeSequence() -> UInt32 {
        localSequence = min(localSequence, UInt32(Int32.max) - 1) + 1  // CSeq numbers are below 2^31
        return localSequence
    }

    /// Counts a request that was sent again with a higher CSeq number, for example after a challenge.
    public mutating func advanceLocalSequence(to number: UInt32) {
        localSequence = max(localSequence, number)
    }
}

// MARK: - Sending

extension SIPDialog {
    /// The next request within the dialog, with a new CSeq number (section 12.2.1.1). Use ``ack(for:contact:credentialsFrom:)``
    /// for ACK; CANCEL is the transaction layer's.
    ///
    /// - Parameter contact: for requests that need one: INVITE, UPDATE, SUBSCRIBE, NOTIFY, REFER.
    public mutating func request(_ method: SIPMethod, contact: SIPAddress? = nil) -> SIPMessage {
        var message = skeleton(method, sequence: takeSequence())
        if let contact { message.contacts = [contact] }
        return message
    }

    /// The ACK of a 2xx to the INVITE with that CSeq number (section 13.2.2.4); send it without a transaction.
    ///
    /// - Parameter credentialsFrom: the INVITE, whose credentials the ACK repeats since it cannot be challenged
    ///   (section 22.1).
    public func ack(
        for inviteSequence: UInt32, contact: SIPAddress? = nil, credentialsFrom invite: SIPMessage? = nil
    ) -> SIPMessage {
        var message = skeleton(.ack, sequence: inviteSequence)
        if let contact { message.contacts = [contact] }
        for name in ["Authorization", "Proxy-Authorization"] {
            for value in invite?.headers.all(name) ?? [] { message.headers.append(name, value) }
        }
        return message
    }

    private func skeleton(_ method: SIPMethod, sequence: UInt32) -> SIPMessage {
        let target = remoteTarget.asRequestURI
        let uri: SIPURI
        var routes = routeSet
        if let first = routeSet.first, !first.uri.isLooseRouter {
            // A strict router wants to be the request URI itself, and the target last in Route.
            uri = first.uri.asRequestURI
            routes.removeFirst()
            routes.append(SIPAddress(uri: target))
        } else {
            uri = target
        }
        var message = SIPMessage(request: method, uri: uri)
        message.maxForwards = 70
        if !routes.isEmpty { message.routes = routes }
        var from = localURI
        from.tag = localTag
        message.from = from
        var to = remoteURI
        if !remoteTag.isEmpty { to.tag = remoteTag }
        message.to = to
        message.callID = callID
        message.cseq = SIPCSeq(number: sequence, method: method)
        return message
    }
}

// MARK: - Receiving

extension SIPDialog {
    /// Methods that move the peer's contact (target refresh requests).
    private static let targetRefreshMethods: Set<SIPMethod> = [.invite, .update, .subscribe, .notify, .refer]

    /// Whether a received message belongs to the dialog: Call-ID and both tags.
    public func matches(_ message: SIPMessage) -> Bool {
        ID(received: message) == id
    }

    /// Takes in a received request (section 12.2.2); false when it is not of this dialog or out of order, which is
    /// answered with 500 (481 when ``matches(_:)`` is false).
    ///
    /// An ACK has the number of its INVITE and a CANCEL likewise; other requests must count up, gaps allowed. A
    /// target refresh request moves ``remoteTarget``.
    public mutating func accepts(_ request: SIPMessage) -> Bool {
        guard request.isRequest, matches(request), let cseq = request.cseq else { return false }
        if cseq.method == .ack || cseq.method == .cancel {
            return cseq.number <= remoteSequence ?? 0
        }
        if let remoteSequence, cseq.number <= remoteSequence { return false }
        remoteSequence = cseq.number
        if Self.targetRefreshMethods.contains(cseq.method), let contact = request.contactTarget {
            remoteTarget = contact
        }
        return true
    }

    /// Takes in a response to a request of ours (section 12.2.1.2); ignored when it is not of this dialog.
    ///
    /// The 2xx that confirms an early dialog sets the route set anew (section 13.2.2.4); any 2xx, and before it any
    /// 1xx, to a target refresh request moves ``remoteTarget``.
    public mutating func update(from response: SIPMessage) {
        guard let status = response.status, (101...299).contains(status), let cseq = response.cseq,
            response.callID == callID, response.from?.tag == localTag,
            (response.to?.tag ?? "") == remoteTag, Self.targetRefreshMethods.contains(cseq.method)
        else { return }
        if status >= 200, cseq.method == .invite, isEarly {
            isEarly = false
            routeSet = response.recordRoutes.reversed()
        }
        if status >= 200 || isEarly, let contact = response.contactTarget {
            remoteTarget = contact
        }
    }

    /// What a request that ends or breaks the dialog means for it: 481 and 408 end the dialog (section 12.2.1.2).
    public static func isEnded(by status: Int) -> Bool {
        status == 481 || status == 408
    }
}

extension SIPMessage {
    /// Where the sender wants requests to go. In a dialog that is a SIP URI (RFC 3261 section 8.1.1.8): a Contact of another
    /// scheme is none, since no request can be sent there.
    fileprivate var contactTarget: SIPURI? {
        guard let uri = contacts.first?.uri, uri.isSIP else { return nil }
        return uri
    }
}

extension SIPAddress {
    /// The address as a dialog keeps it.
    fileprivate var withoutTag: SIPAddress {
        var address = self
        address.tag = nil
        return address
    }
}

extension SIPURI {
    /// Without what may not stand in a request URI: a method parameter and headers (RFC 3261 section 19.1.1).
    fileprivate var asRequestURI: SIPURI {
        guard isSIP else { return self }
        var uri = self
        uri.parameters.remove("method")
        uri.headers = []
        return uri
    }
}
