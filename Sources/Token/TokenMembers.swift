// From JSON members to header and claims: which must be there, and of what type.

extension RegistrationToken.Header {
    init(members: [String: JSONValue]) throws(TokenError) {
        algorithm = try requiredText(members, "alg", "the header's")
        keyID = try text(members, "kid", "the header's")
        type = try text(members, "typ", "the header's")
        // `crit` lists extensions that must be understood, and none is (RFC 7515, section 4.1.11); the others name keys
        // that the sender chose (RFC 8725, section 3.10) or compression (section 3.6).
        forbidden = ["crit", "jku", "jwk", "x5c", "x5u", "zip", "b64"].filter { members[$0] != nil }
    }
}

extension RegistrationToken.Claims {
    init(members: [String: JSONValue]) throws(TokenError) {
        issuer = try requiredText(members, "iss", "the claim")
        subject = try requiredText(members, "sub", "the claim")
        issuedAt = try required(try time(members, "iat"), "iat", "the claim")
        expiry = try required(try time(members, "exp"), "exp", "the claim")
        nonce = try requiredText(members, "nonce", "the claim")
        notBefore = try time(members, "nbf")
        instanceExpiry = try time(members, "sinch:rtc:instance:exp")
        hasAudience = members["aud"] != nil
        guard !nonce.isEmpty else { throw TokenError(.nonce, "the claim 'nonce' is empty") }
    }
}

private func required<Value>(_ value: Value?, _ name: String, _ owner: String) throws(TokenError) -> Value {
    guard let value else { throw TokenError(.missingClaim, "\(owner) '\(name)' is missing") }
    return value
}

private func requiredText(
    _ members: [String: JSONValue], _ name: String, _ owner: String
) throws(TokenError) -> String {
    try required(try text(members, name, owner), name, owner)
}

private func text(_ members: [String: JSONValue], _ name: String, _ owner: String) throws(TokenError) -> String? {
    switch members[name] {
    case nil: return nil
    case .string(let text): return text
    case .some(let value): throw TokenError(.claimType, "\(owner) '\(name)' is \(value.kind), not a string")
    }
}

/// A point in time: whole Unix seconds from 1970 to 9999, so that later arithmetic cannot overflow.
private func time(_ members: [String: JSONValue], _ name: String) throws(TokenError) -> Int64? {
    switch members[name] {
    case nil: return nil
    case .integer(let seconds):
        guard CivilDate.unixTimes.contains(seconds) else {
            throw TokenError(
                .claimType, "the claim '\(name)' is \(seconds), no Unix time in seconds of the years 1970 to 9999",
                hint: seconds > CivilDate.unixTimes.upperBound ? "it may be in milliseconds" : nil)
        }
        return seconds
    case .some(let value):
        throw TokenError(.claimType, "the claim '\(name)' is \(value.kind), not whole Unix seconds")
    }
}
