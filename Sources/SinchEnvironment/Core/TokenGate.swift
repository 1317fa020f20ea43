import SIP
import Token

/// Decides by its bearer token whether a REGISTER may speak for a user (RFC 8898, RFC 6750).
struct TokenGate: Sendable {
    /// Clocks of client and environment may differ by this many seconds.
    static let leeway: Int64 = 60
    /// The scope that the challenge asks for.
    static let scope = "register"

    private let realm: String
    private let secrets: [String: ApplicationSecret]

    init(realm: String, applications: [EnvironmentConfiguration.Application]) {
        self.realm = realm
        // Keys are UUIDs and compare as the token module hands them over: in lower case.
        secrets = Dictionary(applications.map { ($0.key.lowercased(), $0.secret) }) { _, last in last }
    }

    /// A request that may not pass, and the answer it gets.
    struct Refusal: Error, Equatable {
        var status: Int
        var reason: String
        /// The value of WWW-Authenticate, with 401.
        var challenge: String?
    }

    /// What a token that passed says.
    struct Grant: Sendable, Equatable {
        var user: UserKey
        /// Unix time after which the device may no longer be registered, when the token limits that.
        var instanceExpiry: Int64?
    }

    /// Checks that `request` carries one valid token of the user called `user`.
    func admit(_ request: SIPMessage, as user: String, unixTime: Int64) throws(Refusal) -> Grant {
        let tokens = request.headers.all("Authorization").compactMap(Self.bearerToken(in:))
        guard let text = tokens.first else {
            // No error attribute when nothing was presented (RFC 6750 section 3).
            throw Refusal(status: 401, reason: "Token Required", challenge: challenge(error: nil))
        }
        guard tokens.count == 1 else {
            throw Refusal(status: 400, reason: "More Than One Bearer Token", challenge: nil)
        }
        let token: RegistrationToken
        do throws(TokenError) {
            token = try RegistrationToken.verify(
                text, secrets: { secrets[$0.lowercased()] }, now: unixTime, leeway: Self.leeway)
        } catch {
            throw Refusal(
                status: 401, reason: "Token Refused", challenge: challenge(error: error.message, code: error.code))
        }
        guard token.userID == user else {
            throw Refusal(status: 403, reason: "Token Belongs to Another User", challenge: nil)
        }
        if let expiry = token.claims.instanceExpiry, expiry <= unixTime {
            let description = "the registration limit of this token (sinch:rtc:instance:exp) has passed"
            throw Refusal(
                status: 401, reason: "Token Refused", challenge: challenge(error: description, code: .expired))
        }
        return Grant(
            user: UserKey(application: token.applicationKey.lowercased(), user: token.userID),
            instanceExpiry: token.claims.instanceExpiry)
    }

    /// The challenge (RFC 8898 section 4): what is asked for and, when a token was refused, why.
    ///
    /// `token_error` names the broken rule for programs; RFC 6750 has one word for all of them.
    private func challenge(error description: String?, code: TokenError.Code? = nil) -> String {
        var value = "Bearer realm=\(quoted(realm)), scope=\(quoted(Self.scope))"
        if let description {
            value += ", error=\"invalid_token\", error_description=\(quoted(description))"
            if let code { value += ", token_error=\"\(code.rawValue)\"" }
        }
        return value
    }

    /// The token of a header value with the Bearer scheme; nil for other schemes and for a scheme without a token.
    private static func bearerToken(in value: String) -> String? {
        let bytes = value.utf8
        guard let end = bytes.firstIndex(where: { $0 == 0x20 || $0 == 0x09 }),
            value[..<end].lowercased() == "bearer"
        else { return nil }
        let rest = value[end...].utf8.drop { $0 == 0x20 || $0 == 0x09 }
        let token = rest.prefix { $0 != 0x20 && $0 != 0x09 && $0 != UInt8(ascii: ",") }
        return token.isEmpty ? nil : String(Substring(token))
    }

    /// A quoted string; what RFC 6750 section 3 does not allow in one (quotes, backslashes, control characters, anything
    /// but ASCII) becomes an apostrophe or a blank.
    private func quoted(_ text: String) -> String {
        let cleaned = text.unicodeScalars.map { scalar -> Character in
            switch scalar {
            case "\"", "\\": "'"
            case " "..."~": Character(scalar)
            default: " "
            }
        }
        return "\"" + String(cleaned) + "\""
    }
}
