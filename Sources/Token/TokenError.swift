/// Why a token was not made, not read or not accepted.
public struct TokenError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of trouble; each rule has its own, so that a caller can tell them apart.
    public enum Code: String, Sendable, CaseIterable {
        /// Not three parts, or an empty part.
        case malformed
        /// Larger than a token may be.
        case tooLarge
        /// A part is not base64url without padding.
        case base64
        /// Header or claims are not valid JSON, not UTF-8, not an object, or nested too deeply.
        case json
        /// A claim or header member occurs twice.
        case duplicateClaim
        /// A claim or header member that must be there is not.
        case missingClaim
        /// A claim or header member has the wrong type or a value out of range.
        case claimType
        /// The algorithm is not HS256.
        case algorithm
        /// The header asks for something that is never done: an extension, a key from the token, compression.
        case header
        /// The key id is not `hkdfv1-YYYYMMDD`, or its day is not the day of issue in UTC.
        case keyID
        /// The signature is missing or not the one the secret gives.
        case signature
        /// No secret is known for the application that issued the token.
        case unknownApplication
        /// The token, or the registration it limits, has expired.
        case expired
        /// The token is not valid yet.
        case notYetValid
        /// The issuer is not an application.
        case issuer
        /// The subject is not a user of the issuer.
        case subject
        /// The token is meant for another service.
        case audience
        /// The token's life, or the registration's, is shorter than allowed.
        case lifetime
        /// The user id breaks the rule for user ids.
        case userID
        /// The application key is not a UUID.
        case applicationKey
        /// The application secret is not base64 or too short.
        case secret
        /// The nonce is empty or too long.
        case nonce
        /// OpenSSL computes no SHA-256.
        case cryptography
    }

    /// The kind of trouble.
    public var code: Code
    /// What failed and why. Contains no secret, and nothing of a token but claims, cut short and printable.
    public var message: String
    /// What to do about it.
    public var hint: String?

    /// Creates an error.
    public init(_ code: Code, _ message: String, hint: String? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
    }

    /// The message, and the hint after a semicolon.
    public var description: String {
        guard let hint else { return message }
        return "\(message); \(hint)"
    }
}

/// Text from a token or from a user, fit for a message: in quotes, cut to 80 characters, printable ASCII only, so that it
/// can neither flood a log nor steer a terminal.
func quoted(_ text: String) -> String {
    var result = "'"
    for (count, scalar) in text.unicodeScalars.enumerated() {
        guard count < 80 else { return result + "…'" }
        if (0x20..<0x7f).contains(scalar.value) {
            result.unicodeScalars.append(scalar)
        } else {
            result += "\\u{" + String(scalar.value, radix: 16) + "}"
        }
    }
    return result + "'"
}

/// Whether two texts are the same bytes. `==` on strings also equates canonically equivalent spellings, such as the
/// Kelvin sign and `K`; identifiers must not.
func sameBytes(_ left: some StringProtocol, _ right: some StringProtocol) -> Bool {
    left.utf8.elementsEqual(right.utf8)
}
