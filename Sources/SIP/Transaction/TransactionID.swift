/// What tells one transaction from all others (RFC 3261 sections 17.1.3 and 17.2.3).
public struct TransactionID: Hashable, Sendable, CustomStringConvertible {
    /// Which side of the transaction this element is.
    public enum Role: Hashable, Sendable {
        /// This element sent the request.
        case client
        /// This element received the request.
        case server
    }

    /// The branch of the top Via; for a request from an RFC 2543 element a key made of its other headers.
    public let branch: String
    /// `host:port` of the top Via in lower case on the server side; empty on the client side, where our own
    /// random branch is enough and peers may have rewritten the host.
    public let sentBy: String
    /// The method; INVITE also for the ACK of a refused INVITE, which belongs to the INVITE's transaction.
    public let method: SIPMethod
    /// Which side this element is.
    public let role: Role

    /// The start of every branch made by an RFC 3261 element.
    static let magicCookie = "z9hG4bK"

    init(clientBranch: String, method: SIPMethod) {
        branch = clientBranch
        sentBy = ""
        self.method = method
        role = .client
    }

    /// The transaction that a received request belongs to. `via` is the top Via before `received` is added.
    init(serverFor request: SIPMessage, via: SIPVia, method: SIPMethod) {
        sentBy = via.sentBy
        self.method = method
        role = .server
        if let branch = via.branch, branch.count > Self.magicCookie.count, Self.hasMagicCookie(branch) {
            self.branch = branch
        } else {
            // RFC 2543 elements: request URI, From tag, Call-ID, CSeq number and top Via. The To tag is left out:
            // an ACK carries the response's, the INVITE none; ACKs compare it on their own.
            let parts = [
                request.callID ?? "", request.from?.tag ?? "", String(request.cseq?.number ?? 0),
                request.requestURI?.description ?? "", via.description,
            ]
            branch = parts.joined(separator: "\n")
        }
    }

    private init(branch: String, sentBy: String, method: SIPMethod, role: Role) {
        self.branch = branch
        self.sentBy = sentBy
        self.method = method
        self.role = role
    }

    /// The same transaction's identity with another method: a CANCEL's for an INVITE's and the reverse.
    func with(method: SIPMethod) -> TransactionID {
        TransactionID(branch: branch, sentBy: sentBy, method: method, role: role)
    }

    /// Whether the branch came from an element that does not make unique ones.
    var isLegacy: Bool { !Self.hasMagicCookie(branch) }

    /// For logs: role, method and branch.
    public var description: String {
        "\(role == .client ? "client" : "server") \(method.rawValue) \(branch.replacingNewlines)"
    }

    private static func hasMagicCookie(_ branch: String) -> Bool {
        branch.utf8.count >= magicCookie.utf8.count
            && zip(branch.utf8, magicCookie.utf8).allSatisfy { ($0 | 0x20) == ($1 | 0x20) }
    }
}

extension SIPVia {
    /// `host:port` in lower case, without a port when there is none.
    var sentBy: String {
        port.map { "\(host.lowercased()):\($0)" } ?? host.lowercased()
    }
}

extension String {
    fileprivate var replacingNewlines: String {
        String(map { $0.isNewline ? " " : $0 })
    }
}
