import Crypto

/// A registration token: a signed statement of an application that the bearer may register as one of its users.
///
/// A compact JWS (RFC 7515) with the claims of RFC 7519, signed with HS256 under a key that is derived from the
/// application's secret and the day of issue.
public struct RegistrationToken: Sendable, Equatable {
    /// The header's members.
    public struct Header: Sendable, Equatable {
        /// `alg`: `HS256` in every token that verifies.
        public var algorithm: String
        /// `kid`: `hkdfv1-` and the day of issue in UTC.
        public var keyID: String?
        /// `typ`: `JWT` or absent.
        public var type: String?
        /// Header members that make a token unacceptable to `verify`, by name.
        var forbidden: [String]
    }

    /// The claims. Times are Unix seconds.
    public struct Claims: Sendable, Equatable {
        /// `iss`: `//rtc.sinch.com/applications/{applicationKey}`.
        public var issuer: String
        /// `sub`: `{issuer}/users/{userID}`.
        public var subject: String
        /// `iat`: when the token was issued.
        public var issuedAt: Int64
        /// `exp`: when it ceases to be valid.
        public var expiry: Int64
        /// `nonce`: unique for each token.
        public var nonce: String
        /// `nbf`: when it begins to be valid; absent in the vendor's tokens.
        public var notBefore: Int64?
        /// `sinch:rtc:instance:exp`: when the registration itself ends; absent: it does not.
        public var instanceExpiry: Int64?
        /// Whether there is an `aud` claim, which no registration token has.
        var hasAudience: Bool
    }

    /// The largest token that is looked at, in bytes.
    public static let maxBytes = 8_192

    /// The header's members.
    public let header: Header
    /// The claims.
    public let claims: Claims
    /// The application key, as the issuer spells it.
    public let applicationKey: String
    /// The user that the bearer may register as.
    public let userID: String
    /// The token itself. Whoever has it can register as the user: do not log it.
    public let compact: String

    /// What the signature is computed over.
    let signedBytes: [UInt8]
    let signature: [UInt8]

    static let applicationsPath = "//rtc.sinch.com/applications/"
    static let usersPath = "/users/"
    static let keyIDPrefix = "hkdfv1-"

    /// Reads a token without checking its signature, its algorithm or its times: for looking at one.
    ///
    /// Checks the size, the three parts, base64url, JSON, duplicate and missing claims, their types, and that issuer
    /// and subject name an application and one of its users.
    public static func parse(_ text: String) throws(TokenError) -> RegistrationToken {
        guard text.utf8.count <= maxBytes else {
            throw TokenError(.tooLarge, "the token has \(text.utf8.count) bytes, at most \(maxBytes) are read")
        }
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw TokenError(
                .malformed, "the token has \(parts.count) part\(parts.count == 1 ? "" : "s") between dots, not 3",
                hint: "pass the whole compact token: header.claims.signature")
        }
        let header = try object(String(Substring(parts[0])), "header")
        let claims = try object(String(Substring(parts[1])), "claims")
        let signature = try bytes(String(Substring(parts[2])), "signature")
        return try RegistrationToken(
            header: Header(members: header), claims: Claims(members: claims), compact: text,
            signedBytes: Array(text.utf8.prefix(parts[0].count + 1 + parts[1].count)), signature: signature)
    }

    private init(
        header: Header, claims: Claims, compact: String, signedBytes: [UInt8], signature: [UInt8]
    ) throws(TokenError) {
        self.header = header
        self.claims = claims
        self.compact = compact
        self.signedBytes = signedBytes
        self.signature = signature
        applicationKey = try Self.applicationKey(issuer: claims.issuer)
        userID = try Self.userID(subject: claims.subject, issuer: claims.issuer)
    }

    private static func bytes(_ text: String, _ part: String) throws(TokenError) -> [UInt8] {
        do throws(Base64Error) {
            return try base64URLDecode(text)
        } catch {
            throw TokenError(.base64, "the token's \(part) is not base64url without padding: \(error)")
        }
    }

    private static func object(_ text: String, _ part: String) throws(TokenError) -> [String: JSONValue] {
        guard !text.isEmpty else { throw TokenError(.malformed, "the token's \(part) is empty") }
        let bytes = try bytes(text, part)
        do throws(JSONError) {
            return try JSONReader.object(bytes)
        } catch {
            switch error {
            case .syntax(let reason, let offset):
                throw TokenError(.json, "the token's \(part) is not JSON: \(reason), at byte \(offset + 1)")
            case .duplicate(let name):
                throw TokenError(.duplicateClaim, "the token's \(part) has \(quoted(name)) twice")
            case .depth:
                throw TokenError(.json, "the token's \(part) nests deeper than \(JSONReader.maxDepth) levels")
            case .encoding:
                throw TokenError(.json, "the token's \(part) is not UTF-8")
            }
        }
    }

    private static func applicationKey(issuer: String) throws(TokenError) -> String {
        let prefix = applicationsPath.utf8
        if issuer.utf8.starts(with: prefix) {
            let key = String(Substring(issuer.utf8.dropFirst(prefix.count)))
            if TokenIdentifier.isApplicationKey(key) { return key }
        }
        throw TokenError(.issuer, "the issuer \(quoted(issuer)) is not \(applicationsPath){applicationKey}")
    }

    private static func userID(subject: String, issuer: String) throws(TokenError) -> String {
        let prefix = (issuer + usersPath).utf8
        guard subject.utf8.starts(with: prefix) else {
            throw TokenError(.subject, "the subject \(quoted(subject)) is not {issuer}\(usersPath){userId}")
        }
        let userID = String(Substring(subject.utf8.dropFirst(prefix.count)))
        do throws(TokenError) {
            try TokenIdentifier.checkUserID(userID)
        } catch {
            throw TokenError(.subject, "the subject names no user: \(error.message)")
        }
        return userID
    }
}

extension RegistrationToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Whose token it is and how long it is valid; never the token itself.
    public var description: String {
        "token of \(userID), application \(applicationKey), valid until \(utcText(unixTime: claims.expiry))"
    }

    /// Whose token it is and how long it is valid; never the token itself.
    public var debugDescription: String { description }

    /// A mirror without the token itself.
    public var customMirror: Mirror {
        Mirror(self, children: ["header": header, "claims": claims], displayStyle: .struct)
    }
}
