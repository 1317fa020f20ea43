import SIP

/// What may cross the proxy from one client to another, and what may not.
enum Sanitising {
    /// Credentials are for this environment (RFC 3261 section 16.6 allows to remove them; a token must never reach another
    /// client). An identity that a client asserts is worth nothing (RFC 3325 section 5), so it goes as well.
    private static let notForwardedInRequests = [
        "Authorization", "Proxy-Authorization", "P-Asserted-Identity", "P-Preferred-Identity",
    ]

    /// A challenge of a client would make another one send it credentials.
    private static let notForwardedInResponses = [
        "WWW-Authenticate", "Proxy-Authenticate", "Authentication-Info", "Proxy-Authentication-Info",
        "P-Asserted-Identity", "P-Preferred-Identity",
    ]

    /// Makes a request fit to leave to another client: hop count, credentials, identity. `identity` is the address this
    /// environment vouches for.
    static func clean(_ request: inout SIPMessage, identity: SIPURI?) {
        request.maxForwards = request.maxForwards.map { max(0, $0 - 1) } ?? 70
        for name in notForwardedInRequests { request.headers.remove(name) }
        guard let identity, !wantsPrivacy(request) else { return }
        request.headers.append("P-Asserted-Identity", SIPAddress(uri: identity).description)
    }

    /// Makes a response fit to go to another client.
    static func clean(_ response: inout SIPMessage) {
        for name in notForwardedInResponses { response.headers.remove(name) }
    }

    /// Whether the sender asked that its identity stays here (RFC 3323 section 4.2, RFC 3325 section 9.3).
    private static func wantsPrivacy(_ request: SIPMessage) -> Bool {
        request.headers.all("Privacy").contains { value in
            value.split(whereSeparator: { ";, \t".contains($0) }).contains { $0.lowercased() == "id" }
        }
    }
}
