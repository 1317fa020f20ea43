import Primitives
import SIP

/// What we can do, and what we say to requests that we cannot serve (RFC 3261, sections 8.2.1, 11.2 and 21.4.6).
extension UserAgent {
    /// Bodies that we read.
    static let acceptedTypes = "application/sdp, \(SIPDTMFBody.accepted), message/sipfrag"

    /// Methods that are served.
    static let allowedMethods = "INVITE, ACK, CANCEL, BYE, OPTIONS, PRACK, UPDATE, INFO, REFER, NOTIFY"

    /// Extensions of SIP that we know, as option tags: a request may require them.
    static let extensions = ["100rel", "199", "norefersub", "replaces", "timer"]

    /// What an OPTIONS is answered with.
    mutating func answerOptions(_ request: SIPMessage, in id: TransactionID, localTag: String, at now: MonotonicTime) {
        var response = ownResponse(to: request, status: 200, localTag: localTag)
        response.headers["Allow"] = Self.allowedMethods
        response.headers["Accept"] = Self.acceptedTypes
        response.headers["Accept-Encoding"] = "identity"
        response.headers["Accept-Language"] = "en"
        response.headers["Allow-Events"] = "refer"
        response.headers["Supported"] = Self.extensions.joined(separator: ", ")
        transactions.respond(response, in: id, at: now)
    }

    /// Refuses a request outside of any dialog that is neither a call nor a question.
    mutating func refuseOutside(_ request: SIPMessage, in id: TransactionID, at now: MonotonicTime) {
        switch request.method {
        // They mean a call that does not exist.
        case .some(.cancel), .some(.bye), .some(.info), .some(.prack), .some(.update), .some(.notify):
            refuse(request, in: id, status: 481, at: now)
        case .some(.refer): refuse(request, in: id, status: 603, at: now)
        default: refuseMethod(request, in: id, at: now)
        }
    }

    /// Refuses a method that is not served: known ones with 405, events that nobody can subscribe to with 489, others 501.
    mutating func refuseMethod(_ request: SIPMessage, in id: TransactionID, at now: MonotonicTime) {
        switch request.method {
        case .some(.subscribe):
            refuse(request, in: id, status: 489, headers: [(name: "Allow-Events", value: "refer")], at: now)
        case .some(.message), .some(.publish), .some(.register):
            refuse(request, in: id, status: 405, headers: [(name: "Allow", value: Self.allowedMethods)], at: now)
        default:
            refuse(request, in: id, status: 501, headers: [(name: "Allow", value: Self.allowedMethods)], at: now)
        }
    }

    /// The address that the platform vouches for (P-Asserted-Identity, RFC 3325): believed only over the registered path,
    /// and not shown where the caller asked for privacy.
    func assertedIdentity(of request: SIPMessage) -> SIPAddress? {
        guard isPathRegistered else { return nil }
        let wantsPrivacy = request.headers.all("Privacy").contains { value in
            value.split(whereSeparator: { ";, \t".contains($0) }).contains { $0.lowercased() == "id" }
        }
        guard !wantsPrivacy else { return nil }
        // One of each scheme at most; a SIP address says more than a number.
        let identities = request.headers.values("P-Asserted-Identity").compactMap { try? SIPAddress(parsing: $0) }
        return identities.first { $0.uri.isSIP && $0.uri.user != nil } ?? identities.first { $0.uri.scheme == "tel" }
    }
}
