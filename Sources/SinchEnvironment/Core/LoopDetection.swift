import SIP

/// What two copies of one request that took different paths have in common (RFC 3261 section 8.2.2.2).
struct RequestKey: Hashable, Sendable {
    private let callID: String
    private let fromTag: String
    private let cseq: SIPCSeq

    init?(_ request: SIPMessage) {
        guard let callID = request.callID, let cseq = request.cseq, let fromTag = request.from?.tag else { return nil }
        self.callID = callID
        self.cseq = cseq
        self.fromTag = fromTag
    }
}

/// Loops and spirals (RFC 3261 section 16.3 step 4). A request may pass twice if something about it changed in between;
/// if nothing did, it would pass for ever.
///
/// The RFC hides a hash of what decides the way of a request in the branch. Branches here are the transaction layer's, so
/// the hash is a Via parameter of its own; only this environment, which knows the key, can tell what it means.
extension EnvironmentCore {
    static let loopParameter = "loop"

    /// The hash of everything that decides which way the request goes.
    func loopHash(of request: SIPMessage) -> String {
        recordRoute.sealer.digest([
            request.requestURI?.description ?? "", request.from?.tag ?? "", request.to?.tag ?? "",
            request.callID ?? "", request.headers["CSeq"] ?? "",
            request.headers.all("Route").joined(separator: ","),
        ])
    }

    /// Whether the request was here before, just as it is now.
    func isLoop(_ request: SIPMessage) -> Bool {
        let marks = request.vias.filter(domain.owns).compactMap { $0.parameters[Self.loopParameter] }
        guard !marks.isEmpty else { return false }
        return marks.contains(loopHash(of: request))
    }

    /// Whether the request was here before, in whatever form.
    func hasPassedHere(_ request: SIPMessage) -> Bool {
        request.vias.contains { domain.owns($0) && $0.parameters.contains(Self.loopParameter) }
    }
}
