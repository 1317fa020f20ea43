import Glibc

extension Configuration {
    /// How the settings in effect fit together, and whether the files they name are there.
    static func advice(on profile: Profile) -> [Finding] {
        credentials(profile) + transport(profile) + files(profile)
    }

    private static func credentials(_ profile: Profile) -> [Finding] {
        var findings: [Finding] = []
        if profile.applicationSecret != nil, profile.applicationKey == nil {
            findings.append(
                Finding(
                    .error, .invalidValue, "there is an applicationSecret but no applicationKey",
                    hint: "add the application's key to the profile"))
        }
        let ways = [
            profile.tokenCommand.map { _ in "tokenCommand" }, profile.tokenURL.map { _ in "tokenURL" },
            profile.tokenFile.map { _ in "tokenFile" }, profile.applicationSecret.map { _ in "applicationSecret" },
        ].compactMap(\.self)
        if let first = ways.first, ways.count > 1, profile.authentication ?? .bearer == .bearer {
            findings.append(
                Finding(
                    .warning, .invalidValue, "tokens could come from \(ways.joined(separator: ", ")); \(first) is used",
                    hint: "keep one of them"))
        }
        guard !profile.usesEmbeddedEnvironment else { return findings }
        switch profile.authentication ?? .bearer {
        case .bearer where profile.tokenSource == nil:
            findings.append(
                Finding(
                    .error, .invalidValue, "nothing says where tokens for \(host(profile)) come from",
                    hint: "set tokenCommand, tokenURL, tokenFile or applicationKey with applicationSecret"))
        case .digest where profile.digestCredentials(user: "") == nil:
            findings.append(
                Finding(
                    .error, .invalidValue, "digest authentication with \(host(profile)) needs user name and password",
                    hint: "set passwordFile, and authenticationUser where it is not the client's user"))
        default: break
        }
        return findings
    }

    private static func transport(_ profile: Profile) -> [Finding] {
        var findings: [Finding] = []
        guard let environmentHost = profile.environmentHost else { return findings }
        if let inHost = environmentHost.transport, let separate = profile.transport, inHost != separate {
            findings.append(
                Finding(
                    .warning, .invalidValue,
                    "environmentHost says transport \(inHost.rawValue) and transport says \(separate.rawValue); "
                        + "\(inHost.rawValue) is used", hint: "keep one of them"))
        }
        guard !environmentHost.isLoopback else { return findings }
        if let transport = profile.effectiveTransport, !transport.isSecure, profile.authentication ?? .bearer == .bearer
        {
            findings.append(
                Finding(
                    .error, .invalidValue,
                    "a token is never sent to \(host(profile)) over \(transport.rawValue), which has no TLS",
                    hint: "set transport to tls or wss, or authentication to digest"))
        }
        if profile.mediaSecurity == MediaSecurity.none {
            findings.append(
                Finding(
                    .warning, .invalidValue, "media to and from \(host(profile)) is not encrypted",
                    hint: "set mediaSecurity to required or optional, unless the network is protected otherwise"))
        }
        return findings
    }

    private static func files(_ profile: Profile) -> [Finding] {
        var findings: [Finding] = []
        for (key, path) in [(ProfileKey.caFile, profile.caFile), (.tokenFile, profile.tokenFile)] {
            guard let path, access(path, R_OK) != 0 else { continue }
            findings.append(
                Finding(
                    .error, .unreadable, "\(key.rawValue) \(printable(path)) cannot be read: \(systemMessage(errno))",
                    hint: "correct the path or the file's mode"))
        }
        if let program = profile.tokenCommand?.first, program.contains("/"), access(program, X_OK) != 0 {
            findings.append(
                Finding(
                    .error, .unreadable,
                    "the program of tokenCommand, \(printable(program)), cannot be run: \(systemMessage(errno))",
                    hint: "correct the path or the file's mode"))
        }
        return findings
    }

    private static func host(_ profile: Profile) -> String { profile.environmentHost?.host ?? "" }
}
