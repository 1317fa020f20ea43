import Crypto
import Primitives

extension RegistrationToken {
    /// The order in which the claims are written. It means nothing to a reader (RFC 8259, section 4); the vendor's
    /// published tokens use both.
    public enum ClaimOrder: Sendable {
        /// As the vendor's guide lists them: iss, sub, iat, exp, nonce, sinch:rtc:instance:exp.
        case guide
        /// By name.
        case sorted
    }

    /// The shortest life of a token, in seconds.
    public static let minimumLifetime: Int64 = 60
    /// The shortest limit of a registration after the token's issue, in seconds: 48 hours.
    public static let minimumInstanceLifetime: Int64 = 172_800
    /// The longest nonce, in bytes.
    public static let maxNonceBytes = 255

    /// Makes and signs a token.
    ///
    /// - Parameters:
    ///   - applicationKey: The application that issues it, a UUID.
    ///   - applicationSecret: The application's secret.
    ///   - userID: The user whom the bearer may register as: at most 255 bytes of `A-Z a-z 0-9 - _ =`.
    ///   - issuedAt: The time of issue in Unix seconds; its day in UTC goes into the key id and the signing key.
    ///   - lifetime: How many seconds the token is valid, at least 60.
    ///   - nonce: A text that no other token has; `makeNonce` makes one.
    ///   - instanceExpiry: When the registration itself ends in Unix seconds, at least 48 hours after `issuedAt`; nil
    ///     for a registration without limit.
    ///   - claimOrder: The order of the claims.
    /// - Returns: The compact token.
    /// - Throws: `TokenError`, when a value breaks its rule.
    public static func sign(
        applicationKey: String, applicationSecret: ApplicationSecret, userID: String, issuedAt: Int64,
        lifetime: Int64 = 600, nonce: String, instanceExpiry: Int64? = nil, claimOrder: ClaimOrder = .guide
    ) throws(TokenError) -> String {
        try checkCryptography()
        try TokenIdentifier.checkApplicationKey(applicationKey)
        try TokenIdentifier.checkUserID(userID)
        guard let day = CivilDate(unixTime: issuedAt)?.compact else {
            throw TokenError(.claimType, "the time of issue \(issuedAt) is no Unix time of the years 1970 to 9999")
        }
        let (expiry, overflow) = issuedAt.addingReportingOverflow(lifetime)
        guard lifetime >= minimumLifetime, !overflow, CivilDate.unixTimes.contains(expiry) else {
            throw TokenError(
                .lifetime, "a token cannot be valid for \(lifetime) s",
                hint: "ask for at least \(minimumLifetime) s; 600 s is usual")
        }
        guard !nonce.isEmpty, nonce.utf8.count <= maxNonceBytes else {
            throw TokenError(.nonce, "the nonce has \(nonce.utf8.count) bytes, 1 to \(maxNonceBytes) are allowed")
        }
        if let instanceExpiry { try checkInstanceExpiry(instanceExpiry, issuedAt: issuedAt) }

        let issuer = applicationsPath + applicationKey
        var claims: [(name: String, json: String)] = [
            ("iss", jsonLiteral(issuer)), ("sub", jsonLiteral(issuer + usersPath + userID)),
            ("iat", String(issuedAt)), ("exp", String(expiry)), ("nonce", jsonLiteral(nonce)),
        ]
        if let instanceExpiry { claims.append(("sinch:rtc:instance:exp", String(instanceExpiry))) }
        if claimOrder == .sorted { claims.sort { $0.name < $1.name } }
        let payload = "{" + claims.map { "\"\($0.name)\":\($0.json)" }.joined(separator: ",") + "}"
        let header = "{\"alg\":\"HS256\",\"kid\":\"\(keyIDPrefix)\(day)\"}"

        let signed = base64URLEncode(Array(header.utf8)) + "." + base64URLEncode(Array(payload.utf8))
        let signature = hmacSHA256(key: applicationSecret.signingKey(day: day), Array(signed.utf8))
        return signed + "." + base64URLEncode(signature)
    }

    /// A nonce: a random UUID (RFC 9562, version 4) as text.
    public static func makeNonce(random: inout RandomSource) -> String {
        var digits = Array(random.hexadecimal(bits: 128).utf8)
        let variants = Array("89ab".utf8)
        digits[12] = UInt8(ascii: "4")
        digits[16] = variants[Int(random.next() & 3)]
        var text: [UInt8] = []
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append(UInt8(ascii: "-")) }
            text.append(digit)
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Both times are in `CivilDate.unixTimes` or refused here, so the difference cannot overflow.
    static func checkInstanceExpiry(_ instanceExpiry: Int64, issuedAt: Int64) throws(TokenError) {
        guard CivilDate.unixTimes.contains(instanceExpiry) else {
            throw TokenError(
                .lifetime, "the registration's limit \(instanceExpiry) is no Unix time of the years 1970 to 9999")
        }
        guard instanceExpiry - issuedAt >= minimumInstanceLifetime else {
            throw TokenError(
                .lifetime,
                "the registration would end at \(utcText(unixTime: instanceExpiry)), less than 48 hours after the "
                    + "token's issue at \(utcText(unixTime: issuedAt))",
                hint: "set sinch:rtc:instance:exp to at least \(minimumInstanceLifetime) s after iat")
        }
    }

    static func checkCryptography() throws(TokenError) {
        guard sha256IsAvailable else {
            throw TokenError(
                .cryptography, "OpenSSL computes no SHA-256 on this machine",
                hint: "check the OpenSSL configuration (OPENSSL_CONF): its default provider must be active")
        }
    }
}
