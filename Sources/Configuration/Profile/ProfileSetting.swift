import Token

/// A value for a setting, its type already right.
enum Setting: Equatable, Sendable {
    case text(String)
    case list([String])
    case servers([ICEServer])
    /// Back to the default: `null` in a file, `embedded` for the host.
    case unset
}

/// Why a value is refused; the caller adds where it came from.
struct SettingProblem: Error, Equatable {
    var code: ConfigurationError.Code = .invalidValue
    var reason: String
    var hint: String?
}

extension Profile {
    /// Checks a value and sets it.
    mutating func set(_ key: ProfileKey, to setting: Setting) throws(SettingProblem) {
        switch key {
        case .applicationKey:
            applicationKey = try checkedText(setting, TokenIdentifier.checkApplicationKey)
        case .applicationSecret:
            applicationSecretFile = nil
            applicationSecret = nil
            if case .text(let text) = setting {
                do throws(TokenError) {
                    applicationSecret = try ApplicationSecret(base64: text)
                } catch {
                    throw SettingProblem(reason: error.message, hint: error.hint)
                }
            }
        case .applicationSecretFile:
            applicationSecret = nil
            applicationSecretFile = try path(setting)
        case .tokenCommand:
            tokenCommand = nil
            if case .list(let words) = setting {
                guard let program = words.first, !program.isEmpty else {
                    throw SettingProblem(reason: "the command is empty", hint: "write [\"program\", \"argument\"]")
                }
                guard words.allSatisfy({ !$0.utf8.contains(0) }) else {
                    throw SettingProblem(reason: "the command contains a NUL character")
                }
                tokenCommand = words
            }
        case .authenticationUser: authenticationUser = try line(setting, "the user name")
        case .password:
            passwordFile = nil
            password = try line(setting, "the password").map { ConcealedText($0) }
        case .passwordFile:
            password = nil
            passwordFile = try path(setting)
        case .tokenURL: tokenURL = try url(setting)
        case .tokenFile: tokenFile = try path(setting)
        case .environmentHost: environmentHost = try host(setting)
        case .outboundProxy: outboundProxy = try host(setting)
        case .transport: transport = try choice(setting)
        case .authentication: authentication = try choice(setting)
        case .mediaSecurity: mediaSecurity = try choice(setting)
        case .caFile: caFile = try path(setting)
        case .iceServers:
            iceServers = nil
            if case .servers(let servers) = setting {
                for server in servers { try checkICEServer(server) }
                iceServers = servers
            }
        case .capture: capture = try audioDevice(setting)
        case .playback: playback = try audioDevice(setting)
        }
    }
}

private func checkedText(
    _ setting: Setting, _ check: (String) throws(TokenError) -> Void
) throws(SettingProblem) -> String? {
    guard case .text(let text) = setting else { return nil }
    do throws(TokenError) {
        try check(text)
    } catch {
        throw SettingProblem(reason: error.message, hint: error.hint)
    }
    return text
}

/// A text on one line. The problem does not quote it: it may be a secret.
private func line(_ setting: Setting, _ name: String) throws(SettingProblem) -> String? {
    guard case .text(let text) = setting else { return nil }
    guard !text.isEmpty, text.utf8.count <= 1_024, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
        throw SettingProblem(
            reason: "\(name) is empty, longer than 1024 bytes or holds control characters", hint: "correct it")
    }
    return text
}

private func choice<Choice: RawRepresentable & CaseIterable>(
    _ setting: Setting
) throws(SettingProblem) -> Choice? where Choice.RawValue == String {
    guard case .text(let text) = setting else { return nil }
    if let choice = Choice(rawValue: text) { return choice }
    let names = Choice.allCases.map(\.rawValue)
    let nearest = nearestName(to: text, among: names).map { "; did you mean '\($0)'?" } ?? ""
    throw SettingProblem(
        reason: "'\(printable(text))' is not one of \(names.joined(separator: ", "))",
        hint: "choose one of them" + nearest)
}

private func host(_ setting: Setting) throws(SettingProblem) -> EnvironmentHost? {
    guard case .text(let text) = setting else { return nil }
    do throws(ConfigurationError) {
        return try EnvironmentHost(parsing: text)
    } catch {
        throw SettingProblem(code: error.code, reason: error.message, hint: error.hint)
    }
}

private func path(_ setting: Setting) throws(SettingProblem) -> String? {
    guard case .text(let text) = setting else { return nil }
    guard !text.isEmpty, !text.utf8.contains(0) else {
        throw SettingProblem(reason: "the path is empty or contains a NUL character", hint: "name a file")
    }
    guard !text.hasPrefix("~") else {
        throw SettingProblem(
            reason: "'\(printable(text))' begins with ~, which only a shell replaces", hint: "write the whole path")
    }
    return text
}

/// A token is worth as much as a password, so it travels with TLS, or not at all beyond this machine.
private func url(_ setting: Setting) throws(SettingProblem) -> String? {
    guard case .text(let text) = setting else { return nil }
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
        throw SettingProblem(reason: "the URL contains blanks or characters beyond ASCII", hint: "escape them with %")
    }
    guard let separator = text.firstRange(of: "://") else {
        throw SettingProblem(
            reason: "'\(withoutQuery(text))' is no URL", hint: "write https://HOST/PATH")
    }
    let scheme = text[..<separator.lowerBound].lowercased()
    let authority = text[separator.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard !authority.contains("@") else {
        throw SettingProblem(
            reason: "the URL contains a user name or password", hint: "use tokenCommand for an endpoint that needs one")
    }
    let host: EnvironmentHost
    do throws(ConfigurationError) {
        host = try EnvironmentHost(parsing: String(authority))
    } catch {
        throw SettingProblem(reason: error.message, hint: "write https://HOST/PATH")
    }
    guard scheme == "https" || (scheme == "http" && host.isLoopback) else {
        throw SettingProblem(
            reason: "'\(withoutQuery(text))' would carry the token without TLS", hint: "use https")
    }
    return text
}

/// A URL for messages and reports: what follows `?` may be a secret.
public func withoutQuery(_ url: String) -> String {
    let path = url.prefix { $0 != "?" && $0 != "#" }
    return printable(String(path)) + (path.utf8.count < url.utf8.count ? "?(not shown)" : "")
}

private func checkICEServer(_ server: ICEServer) throws(SettingProblem) {
    guard !server.urls.isEmpty else { throw SettingProblem(reason: "an ICE server has no urls") }
    for url in server.urls {
        let scheme = url.prefix { $0 != ":" }
        guard ["stun", "stuns", "turn", "turns"].contains(scheme), scheme.count < url.count else {
            throw SettingProblem(
                reason: "'\(printable(url))' is no STUN or TURN URI",
                hint: "write stun:HOST[:PORT] or turn:HOST[:PORT][?transport=udp|tcp]")
        }
        let rest = url.dropFirst(scheme.count + 1)
        let address = rest.prefix { $0 != "?" }
        let query = rest.dropFirst(address.count)
        guard query.isEmpty || (scheme.hasPrefix("turn") && ["?transport=udp", "?transport=tcp"].contains(query)) else {
            throw SettingProblem(
                reason:
                    "'\(printable(url))' ends in something other than ?transport=udp or ?transport=tcp of a turn URI")
        }
        let host: EnvironmentHost
        do throws(ConfigurationError) {
            host = try EnvironmentHost(parsing: String(address))
        } catch {
            throw SettingProblem(reason: "'\(printable(url))' is no STUN or TURN URI: \(error.message)")
        }
        guard host.transport == nil else {
            throw SettingProblem(reason: "'\(printable(url))' has a ; where ? must stand")
        }
        if scheme.hasPrefix("turn"), server.username == nil || server.credential == nil {
            throw SettingProblem(
                reason: "the TURN server '\(printable(url))' lacks username or credential", hint: "add both")
        }
    }
}

/// Checks the form of an audio device name; whether the device exists is seen when it is opened.
private func audioDevice(_ setting: Setting) throws(SettingProblem) -> String? {
    guard case .text(let text) = setting else { return nil }
    let kinds = ["alsa:", "file:", "tone:", "silence", "null", "echo"]
    let isKnown = kinds.contains { kind in
        kind.hasSuffix(":") ? text.hasPrefix(kind) && text.count > kind.count : text == kind
    }
    guard isKnown, !text.utf8.contains(0) else {
        let kind = text.firstIndex(of: ":").map { String(text[...$0]) } ?? text
        let nearest = nearestName(to: kind, among: kinds).map { "; did you mean '\($0)'?" } ?? ""
        throw SettingProblem(
            reason: "'\(printable(text))' is no audio device name",
            hint: "write alsa:PCM, file:PATH.wav, tone:HERTZ, silence, null or echo" + nearest)
    }
    if text.hasPrefix("tone:") {
        guard let hertz = Double(text.dropFirst("tone:".count)), hertz >= 20, hertz <= 20_000 else {
            throw SettingProblem(reason: "'\(printable(text))' is no tone of 20 to 20000 Hz", hint: "write tone:440")
        }
    }
    return text
}
