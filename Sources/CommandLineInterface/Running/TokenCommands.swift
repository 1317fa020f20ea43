import Configuration
import Primitives
import Token

/// `sinchctl jwt sign`
@Sendable func runTokenSign(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let profile = try parsed.configuration(context).profile
    guard let applicationKey = profile.applicationKey, let secret = profile.applicationSecret else {
        let missing = profile.applicationKey == nil ? "applicationKey" : "applicationSecret"
        throw CommandFailure(
            exit: .configuration, message: "jwt sign: the profile '\(profile.name)' has no \(missing)",
            hint: "add it to the configuration file ('sinchctl config show' says where that is)")
    }
    var random = RandomSource.system
    let now = context.now()
    let lifetime = wholeSeconds(parsed.duration("ttl") ?? .seconds(600))
    let instanceExpiry = parsed.duration("instance-ttl").map { now + wholeSeconds($0) }
    let token: String
    do throws(TokenError) {
        token = try RegistrationToken.sign(
            applicationKey: applicationKey, applicationSecret: secret, userID: parsed.string("user") ?? "",
            issuedAt: now, lifetime: lifetime,
            nonce: parsed.string("nonce") ?? RegistrationToken.makeNonce(random: &random),
            instanceExpiry: instanceExpiry)
    } catch {
        throw CommandFailure(signing: error)
    }
    context.output.result(
        ["token": .string(token), "expires": JSONValue(Timestamp.text(unixSeconds: now + lifetime))], text: token)
    return .ok
}

/// `sinchctl jwt inspect`
@Sendable func runTokenInspect(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let text = try parsed.token(context)
    let token: RegistrationToken
    do throws(TokenError) {
        token = try RegistrationToken.parse(text)
    } catch {
        throw CommandFailure(reading: error)
    }
    show(token, signature: "not checked", context)
    return .ok
}

/// `sinchctl jwt verify`
@Sendable func runTokenVerify(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let text = try parsed.token(context)
    let profile = try parsed.configuration(context).profile
    guard let applicationKey = profile.applicationKey, let secret = profile.applicationSecret else {
        throw CommandFailure(
            exit: .configuration,
            message: "jwt verify: the profile '\(profile.name)' has no applicationKey with applicationSecret",
            hint: "add them to the configuration file ('sinchctl config show' says where that is)")
    }
    let token: RegistrationToken
    do throws(TokenError) {
        token = try RegistrationToken.verify(
            text, secrets: { $0 == applicationKey ? secret : nil }, now: context.now())
    } catch {
        throw CommandFailure(reading: error)
    }
    show(token, signature: "valid", context)
    return .ok
}

/// What a token says, for people and programs.
private func show(_ token: RegistrationToken, signature: String, _ context: CommandContext) {
    let claims = token.claims
    let now = context.now()
    let limit = claims.instanceExpiry.flatMap { Timestamp.text(unixSeconds: $0) }
    context.output.result(
        [
            "applicationKey": .string(token.applicationKey), "userId": .string(token.userID),
            "algorithm": .string(token.header.algorithm), "keyId": JSONValue(token.header.keyID),
            "issued": JSONValue(Timestamp.text(unixSeconds: claims.issuedAt)),
            "expires": JSONValue(Timestamp.text(unixSeconds: claims.expiry)),
            "isExpired": .bool(claims.expiry <= now), "nonce": .string(claims.nonce),
            "registrationLimit": JSONValue(limit), "signature": .string(signature),
        ],
        text: TextLayout.fields([
            ("user", token.userID), ("application", token.applicationKey),
            ("issued", moment(claims.issuedAt, now)), ("expires", moment(claims.expiry, now)),
            ("registration", limit.map { "ends at \($0)" } ?? "without limit"), ("nonce", claims.nonce),
            ("algorithm", token.header.algorithm), ("key id", token.header.keyID ?? "none"),
            ("signature", signature),
        ]))
}

/// `2026-01-31T12:00:00Z, in 10m` or `…, 3s ago`.
private func moment(_ time: Int64, _ now: Int64) -> String {
    let text = Timestamp.text(unixSeconds: time) ?? "\(time)"
    let (distance, overflow) = time.subtractingReportingOverflow(now)
    guard !overflow, distance.magnitude <= 1 << 40 else { return text }
    let length = DurationText.rounded(seconds: Int(distance.magnitude))
    return distance > 0 ? "\(text), in \(length)" : "\(text), \(length) ago"
}

private func wholeSeconds(_ duration: Duration) -> Int64 {
    duration.wholeNanoseconds / 1_000_000_000
}
