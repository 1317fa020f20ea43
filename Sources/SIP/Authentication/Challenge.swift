/// One challenge out of a 401 or 407 (RFC 3261 section 22, RFC 7616, RFC 8898).
public struct Challenge: Sendable, Hashable {
    /// How the server wants to be convinced.
    public enum Scheme: Hashable, Sendable {
        /// A token (RFC 8898).
        case bearer
        /// A user name and a password (RFC 7616).
        case digest
        /// Anything else, as written; never answered.
        case other(String)
    }

    /// The scheme.
    public var scheme: Scheme
    /// The protection space; empty when the server names none.
    public var realm: String
    /// Digest: the server's nonce.
    public var nonce: String?
    /// Digest: to be sent back unchanged.
    public var opaque: String?
    /// Digest: the offered qualities of protection in lower case; empty for a server of RFC 2069.
    public var qop: [String]
    /// Digest: the algorithm as written; nil means MD5.
    public var algorithm: String?
    /// Digest: only the nonce was too old; the password is right.
    public var stale: Bool
    /// Digest: the user name shall be hashed (RFC 7616 section 3.4.4).
    public var userHash: Bool
    /// Bearer: the scope that the token needs.
    public var scope: String?
    /// Bearer: where tokens come from (RFC 8898 section 4). To be shown, never to be followed: whoever sends a challenge
    /// could have the next token sent to himself.
    public var authzServer: String?
    /// Bearer: why the token was refused, for example `invalid_token` (RFC 6750 section 3.1).
    public var error: String?
    /// Bearer: the same for people.
    public var errorDescription: String?
    /// Bearer: which rule of the token is broken, for example `expired` or `unknownApplication`. A parameter of our own
    /// environment, for programs; others name only ``error``.
    public var tokenError: String?
    /// Whether a proxy asks (407, Proxy-Authenticate), not the server itself.
    public var isProxy: Bool

    init(_ fields: AuthenticationFields, isProxy: Bool) {
        scheme =
            switch fields.scheme.lowercased() {
            case "bearer": .bearer
            case "digest": .digest
            default: .other(fields.scheme)
            }
        realm = fields["realm"] ?? ""
        nonce = fields["nonce"]
        opaque = fields["opaque"]
        qop = (fields["qop"] ?? "").lowercased().split { $0 == "," || $0.isWhitespace }.map(String.init)
        algorithm = fields["algorithm"]
        stale = fields["stale"]?.lowercased() == "true"
        userHash = fields["userhash"]?.lowercased() == "true"
        scope = fields["scope"]
        authzServer = fields["authz_server"].map(Self.readable)
        error = fields["error"].map(Self.readable)
        errorDescription = fields["error_description"].map(Self.readable)
        tokenError = fields["token_error"].map(Self.readable)
        self.isProxy = isProxy
    }

    /// No server means more; they are compared with each other, which takes time.
    private static let maximumChallenges = 32

    /// All challenges of a response in the order written, of WWW-Authenticate first, then Proxy-Authenticate; of very
    /// many the first 32 of each.
    public static func challenges(in response: SIPMessage) -> [Challenge] {
        var result: [Challenge] = []
        for (name, isProxy) in [("WWW-Authenticate", false), ("Proxy-Authenticate", true)] {
            var fields: [AuthenticationFields] = []
            for line in response.headers.all(name) where fields.count < maximumChallenges {
                fields += AuthenticationFields.parse(line)
            }
            result += fields.prefix(maximumChallenges).map { Challenge($0, isProxy: isProxy) }
        }
        return result
    }

    /// What a server wrote for people, fit for a message: at most 200 characters, none that steers a terminal.
    static func readable(_ text: String) -> String {
        var result = ""
        for (count, scalar) in text.unicodeScalars.enumerated() {
            guard count < 200 else { return result + "…" }
            let category = scalar.properties.generalCategory
            result.unicodeScalars.append(category == .control || category == .format ? " " : scalar)
        }
        return result
    }

    /// A `Bearer` challenge for a server to send (RFC 8898 section 3), as the value of a WWW-Authenticate header.
    public static func bearerHeader(
        realm: String, scope: String? = nil, error: String? = nil, errorDescription: String? = nil
    ) -> String {
        let parameters = [
            ("realm", realm), ("scope", scope), ("error", error), ("error_description", errorDescription),
        ]
        let text = parameters.compactMap { name, value in value.map { "\(name)=\(AuthenticationFields.quoted($0))" } }
        return "Bearer " + text.joined(separator: ", ")
    }

    /// The token that a request brings in Authorization (or Proxy-Authorization): for a server.
    public static func bearerToken(in request: SIPMessage, isProxy: Bool = false) -> String? {
        for line in request.headers.all(isProxy ? "Proxy-Authorization" : "Authorization") {
            for fields in AuthenticationFields.parse(line) where fields.isScheme("bearer") {
                return fields.token
            }
        }
        return nil
    }
}
