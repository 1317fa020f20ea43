import Crypto

extension RegistrationToken {
    /// The most that clocks may differ, in seconds.
    public static let maximumLeeway: Int64 = 60

    /// Reads a token and checks that it is authentic, well-formed and valid now (RFC 8725).
    ///
    /// Whatever is wrong, the token is refused; the order of the checks only decides which reason is given. What can be
    /// read from the token comes first (so that a wrong key id is called that), then the signature, and only for an
    /// authentic token its times. A key id whose day is not the UTC day of `iat` is refused, even if the signature fits:
    /// it comes from an issuer that formats the date in its local time zone, whose tokens fail near midnight.
    ///
    /// - Parameters:
    ///   - text: The compact token.
    ///   - secrets: Gives the secret of an application key, spelled as in the token; nil for an unknown application.
    ///   - now: Unix seconds.
    ///   - leeway: How many seconds the issuer's clock may differ; at most 60 are granted.
    public static func verify(
        _ text: String, secrets: (_ applicationKey: String) -> ApplicationSecret?, now: Int64, leeway: Int64 = 60
    ) throws(TokenError) -> RegistrationToken {
        try checkCryptography()
        let token = try parse(text)
        try token.checkHeader()
        guard let secret = secrets(token.applicationKey) else {
            throw TokenError(
                .unknownApplication, "no secret is known for the application \(token.applicationKey)",
                hint: "check that the token was made for this environment")
        }
        try token.checkSignature(secret)
        try token.checkClaims()
        try token.checkTimes(now: now, leeway: min(max(leeway, 0), maximumLeeway))
        return token
    }

    private func checkHeader() throws(TokenError) {
        guard sameBytes(header.algorithm, "HS256") else {
            if header.algorithm.lowercased() == "none" {
                throw TokenError(.algorithm, "the token is not signed (alg \(quoted(header.algorithm)))")
            }
            throw TokenError(.algorithm, "the token's algorithm is \(quoted(header.algorithm)), not HS256")
        }
        if let name = header.forbidden.first {
            let reason =
                switch name {
                case "crit", "b64": "demands extensions, and none is understood"
                case "zip": "announces compression, which is not allowed"
                default: "names a key, and keys are never taken from a token"
                }
            throw TokenError(.header, "the header's '\(name)' \(reason)")
        }
        if let type = header.type, type.lowercased() != "jwt" {
            throw TokenError(.header, "the token's type is \(quoted(type)), not JWT")
        }
        guard let keyID = header.keyID else { throw TokenError(.missingClaim, "the header's 'kid' is missing") }
        let day = keyID.utf8.dropFirst(Self.keyIDPrefix.utf8.count)
        guard keyID.utf8.starts(with: Self.keyIDPrefix.utf8), day.count == 8,
            day.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else {
            throw TokenError(.keyID, "the key id \(quoted(keyID)) is not \(Self.keyIDPrefix)YYYYMMDD")
        }
        guard day.elementsEqual(issueDay.utf8) else {
            throw TokenError(
                .keyID,
                "the key id \(quoted(keyID)) names another day than the token's issue at "
                    + "\(utcText(unixTime: claims.issuedAt))",
                hint: "the issuer must take the day in UTC: \(Self.keyIDPrefix)\(issueDay)")
        }
    }

    private func checkSignature(_ secret: ApplicationSecret) throws(TokenError) {
        guard !signature.isEmpty else { throw TokenError(.signature, "the token's signature is empty") }
        let expected = hmacSHA256(key: secret.signingKey(day: issueDay), signedBytes)
        guard constantTimeEqual(signature, expected) else {
            throw TokenError(
                .signature, "the token's signature is not the one of application \(applicationKey)",
                hint: "check that the issuer uses this application's secret, decoded from base64")
        }
    }

    /// The day of issue in UTC, `YYYYMMDD`. `parse` has checked that the time is in range.
    private var issueDay: String { CivilDate(unixTime: claims.issuedAt)?.compact ?? "" }

    private func checkClaims() throws(TokenError) {
        guard !claims.hasAudience else {
            throw TokenError(.audience, "the token names an audience ('aud'): it is meant for another service")
        }
        let lifetime = claims.expiry - claims.issuedAt
        guard lifetime >= Self.minimumLifetime else {
            throw TokenError(
                .lifetime,
                "the token is valid for \(lifetime) s (\(utcText(unixTime: claims.issuedAt)) to "
                    + "\(utcText(unixTime: claims.expiry))), at least \(Self.minimumLifetime) s are demanded",
                hint: "let the issuer set exp later; 600 s after iat is usual")
        }
        if let instanceExpiry = claims.instanceExpiry {
            try Self.checkInstanceExpiry(instanceExpiry, issuedAt: claims.issuedAt)
        }
    }

    private func checkTimes(now: Int64, leeway: Int64) throws(TokenError) {
        let clockHint = "fetch a fresh token; if it is fresh, compare the clocks of issuer and verifier"
        // The claims are between 1970 and 9999, so adding the leeway to them cannot overflow, while `now` is anything.
        if now >= claims.expiry + leeway {
            throw TokenError(
                .expired,
                "the token expired at \(utcText(unixTime: claims.expiry)), it is \(utcText(unixTime: now)) now",
                hint: clockHint)
        }
        if let end = claims.instanceExpiry, now >= end + leeway {
            throw TokenError(
                .expired,
                "the registration ended at \(utcText(unixTime: end)), it is \(utcText(unixTime: now)) now",
                hint: "fetch a token with a later sinch:rtc:instance:exp")
        }
        let start = max(claims.issuedAt, claims.notBefore ?? 0)
        if now < start - leeway {
            throw TokenError(
                .notYetValid,
                "the token is valid from \(utcText(unixTime: start)), it is \(utcText(unixTime: now)) now",
                hint: clockHint)
        }
    }
}
