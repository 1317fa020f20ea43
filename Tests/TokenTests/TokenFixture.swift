import Crypto
import Testing

@testable import Token

/// The inputs of the vendor's published vectors.
enum Published {
    static let applicationKey = "a32e5a8d-f7d8-411c-9645-9038e8dd051d"
    static let secretText = "ax8hTTQJF0OPXL32r1LHMA=="
    static let nonce = "6b438bda-2d5c-4e8c-92b0-39f20a94b34e"
    static let issuedAt: Int64 = 1_514_862_245
    static let instanceExpiry: Int64 = 1_530_414_245

    static func secret() throws -> ApplicationSecret { try ApplicationSecret(base64: secretText) }

    private static let header = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImhrZGZ2MS0yMDE4MDEwMiJ9"

    /// Claims in the guide's order.
    static let guide =
        header
        + ".eyJpc3MiOiIvL3J0Yy5zaW5jaC5jb20vYXBwbGljYXRpb25zL2EzMmU1YThkLWY3ZDgtNDExYy05NjQ1LTkwMzhlOGRkMDUxZCIsInN1YiI6"
        + "Ii8vcnRjLnNpbmNoLmNvbS9hcHBsaWNhdGlvbnMvYTMyZTVhOGQtZjdkOC00MTFjLTk2NDUtOTAzOGU4ZGQwNTFkL3VzZXJzL2ZvbyIsImlh"
        + "dCI6MTUxNDg2MjI0NSwiZXhwIjoxNTE0ODYyODQ1LCJub25jZSI6IjZiNDM4YmRhLTJkNWMtNGU4Yy05MmIwLTM5ZjIwYTk0YjM0ZSJ9"
        + ".EUltTTD4fxhkwCgLgj6qSQXKawpwQ952Ywm3OwQSARo"

    /// Claims sorted by name.
    static let sorted =
        header
        + ".eyJleHAiOjE1MTQ4NjI4NDUsImlhdCI6MTUxNDg2MjI0NSwiaXNzIjoiLy9ydGMuc2luY2guY29tL2FwcGxpY2F0aW9ucy9hMzJlNWE4ZC1m"
        + "N2Q4LTQxMWMtOTY0NS05MDM4ZThkZDA1MWQiLCJub25jZSI6IjZiNDM4YmRhLTJkNWMtNGU4Yy05MmIwLTM5ZjIwYTk0YjM0ZSIsInN1YiI6"
        + "Ii8vcnRjLnNpbmNoLmNvbS9hcHBsaWNhdGlvbnMvYTMyZTVhOGQtZjdkOC00MTFjLTk2NDUtOTAzOGU4ZGQwNTFkL3VzZXJzL2ZvbyJ9"
        + ".10N-QAvRK0-dacox5X5YusK7C0AWb-kZLiNNTKLQw8I"

    /// Sorted, with the registration limited to 180 days.
    static let limited =
        header
        + ".eyJleHAiOjE1MTQ4NjI4NDUsImlhdCI6MTUxNDg2MjI0NSwiaXNzIjoiLy9ydGMuc2luY2guY29tL2FwcGxpY2F0aW9ucy9hMzJlNWE4ZC1m"
        + "N2Q4LTQxMWMtOTY0NS05MDM4ZThkZDA1MWQiLCJub25jZSI6IjZiNDM4YmRhLTJkNWMtNGU4Yy05MmIwLTM5ZjIwYTk0YjM0ZSIsInNpbmNo"
        + "OnJ0YzppbnN0YW5jZTpleHAiOjE1MzA0MTQyNDUsInN1YiI6Ii8vcnRjLnNpbmNoLmNvbS9hcHBsaWNhdGlvbnMvYTMyZTVhOGQtZjdkOC00"
        + "MTFjLTk2NDUtOTAzOGU4ZGQwNTFkL3VzZXJzL2ZvbyJ9"
        + ".Z1KlXha3ubMWjMI2z949NkUHmekpe31z0fNx-XiMDuo"
}

/// A token from any header and claims text, signed with the published secret for a day.
func forge(
    header: String = #"{"alg":"HS256","kid":"hkdfv1-20180102"}"#, claims: String = claims(), day: String = "20180102"
) throws -> String {
    let signed = base64URLEncode(Array(header.utf8)) + "." + base64URLEncode(Array(claims.utf8))
    let key = try Published.secret().signingKey(day: day)
    return signed + "." + base64URLEncode(hmacSHA256(key: key, Array(signed.utf8)))
}

/// Claims as JSON, each replaceable by other JSON text or, with nil, left out; `extra` is put at the end.
func claims(
    iss: String? = "\"//rtc.sinch.com/applications/\(Published.applicationKey)\"",
    sub: String? = "\"//rtc.sinch.com/applications/\(Published.applicationKey)/users/foo\"",
    iat: String? = "1514862245", exp: String? = "1514862845", nonce: String? = "\"n\"", extra: String = ""
) -> String {
    let members = [("iss", iss), ("sub", sub), ("iat", iat), ("exp", exp), ("nonce", nonce)]
    let texts = members.compactMap { name, value in value.map { "\"\(name)\":\($0)" } }
    return "{" + texts.joined(separator: ",") + extra + "}"
}

/// Verifies with the published secret, by default a second after the time of issue.
@discardableResult
func verify(_ token: String, now: Int64 = Published.issuedAt + 1, leeway: Int64 = 60) throws -> RegistrationToken {
    let secret = try Published.secret()
    return try RegistrationToken.verify(
        token, secrets: { $0 == Published.applicationKey ? secret : nil }, now: now, leeway: leeway)
}

/// The error that verifying gives; nil when it succeeds.
func refusal(_ token: String, now: Int64 = Published.issuedAt + 1, leeway: Int64 = 60) -> TokenError? {
    do {
        try verify(token, now: now, leeway: leeway)
        return nil
    } catch {
        return error as? TokenError
    }
}
