import Token

/// The settings of one command: flags beat environment variables beat the profile beat the defaults.
public struct Configuration: Sendable, Equatable {
    /// Where files are kept.
    public let paths: Paths
    /// Whether there is a configuration file. Without one everything has its default.
    public let hasFile: Bool
    /// The names of the file's profiles, in its order.
    public let profileNames: [String]
    /// The settings in effect.
    public let profile: Profile
    /// Where each setting that is not a default comes from: `profiles.default`, a variable's or a flag's name.
    public let sources: [ProfileKey: String]
    /// What is probably not meant, but does not keep a command from working.
    public let warnings: [Finding]

    /// Loads the configuration.
    ///
    /// A missing file is no error: calls then go to the embedded environment.
    /// - Parameters:
    ///   - environment: The environment variables.
    ///   - profile: The profile that a flag names; nil for `$SINCHCTL_PROFILE`, else `default`.
    ///   - overrides: What flags say.
    /// - Throws: The first thing that is wrong with the file outside other profiles, the profile, a variable or a flag.
    public static func load(
        environment: [String: String], profile: String? = nil, overrides: Overrides = Overrides()
    ) throws(ConfigurationError) -> Configuration {
        let paths = try Paths(environment: environment)
        let document = try ConfigurationDocument.read(paths.configFile)
        let (configuration, findings) = try assemble(
            paths: paths, document: document, environment: environment, profile: profile, overrides: overrides)
        if let error = findings.first(where: { $0.severity == .error }) { throw error.error }
        return configuration
    }

    /// Everything that is wrong or doubtful: in the file with all its profiles, in environment variables and flags, and
    /// in how the settings in effect fit together. Empty: all is well.
    public static func check(
        environment: [String: String], profile: String? = nil, overrides: Overrides = Overrides()
    ) -> [Finding] {
        do throws(ConfigurationError) {
            let paths = try Paths(environment: environment)
            let document = try ConfigurationDocument.read(paths.configFile)
            var findings: [Finding] = []
            var selected: String?
            do throws(ConfigurationError) {
                let (configuration, own) = try assemble(
                    paths: paths, document: document, environment: environment, profile: profile,
                    overrides: overrides)
                findings = own + advice(on: configuration.profile)
                selected = configuration.profile.name
            } catch {
                findings.append(Finding(error))
            }
            for member in document?.profiles ?? [] where member.name != selected {
                var other = Profile(name: member.name)
                findings += document?.apply(member, to: &other).findings ?? []
            }
            return findings
        } catch {
            return [Finding(error)]
        }
    }

    /// Puts the layers on each other. Throws only when no profile can be chosen; all else is a finding.
    private static func assemble(
        paths: Paths, document: ConfigurationDocument?, environment: [String: String], profile named: String?,
        overrides: Overrides
    ) throws(ConfigurationError) -> (Configuration, [Finding]) {
        var findings = document?.findings ?? []
        if document == nil, paths.isConfigFileExplicit, paths.configFile != "/dev/null" {
            findings.append(
                // Who names a file wants what is in it: going on with the defaults would call somewhere else.
                Finding(
                    .error, .unreadable,
                    "the configuration file \(paths.configFile), named by --config or SINCHCTL_CONFIG, does not exist",
                    hint: "correct the name; 'config init' writes a file there"))
        }
        let (name, member) = try choose(
            named, environment["SINCHCTL_PROFILE"], document: document, configFile: paths.configFile,
            structureIsSound: findings.allSatisfy { $0.severity != .error })
        var profile = Profile(name: name)
        var sources: [ProfileKey: String] = [:]
        if let document, let member {
            let (keys, own) = document.apply(member, to: &profile)
            findings += own
            for key in keys { sources[key] = "profiles." + name }
        }
        for key in ProfileKey.allCases {
            if let text = environment[key.environmentVariable], !text.isEmpty {
                findings += apply(text, to: key, of: &profile, origin: key.environmentVariable, &sources)
            }
        }
        for key in ProfileKey.allCases {
            if let text = overrides[key] { findings += apply(text, to: key, of: &profile, origin: key.flag, &sources) }
        }
        findings += misspelledVariables(environment)
        findings += readSecretFiles(&profile)
        let configuration = Configuration(
            paths: paths, hasFile: document != nil, profileNames: document?.profiles.map(\.name) ?? [],
            profile: profile, sources: sources, warnings: findings.filter { $0.severity == .warning })
        return (configuration, findings)
    }

    private static func choose(
        _ flag: String?, _ variable: String?, document: ConfigurationDocument?, configFile: String,
        structureIsSound: Bool
    ) throws(ConfigurationError) -> (name: String, member: JSON5Member?) {
        let variable = variable.flatMap { $0.isEmpty ? nil : $0 }
        let name = flag ?? variable ?? "default"
        let profiles = document?.profiles ?? []
        if let member = profiles.first(where: { $0.name == name }) { return (name, member) }
        let names = profiles.map(\.name)
        // Nobody named one: without profiles the defaults apply. And where the file's structure is wrong, that is the
        // cause to report.
        if name == "default", names.isEmpty || !structureIsSound { return (name, nil) }
        guard structureIsSound else { return (name, nil) }
        let origin = flag != nil || variable != nil ? " (--profile or SINCHCTL_PROFILE)" : ""
        if names.isEmpty {
            let reason = document == nil ? "does not exist" : "has no profiles"
            throw ConfigurationError(
                .unknownProfile, "there is no profile '\(printable(name))'\(origin): \(configFile) \(reason)",
                hint: document == nil ? "write one with 'config init'" : "add the profile to the file")
        }
        let nearest = nearestName(to: name, among: names).map { "did you mean '\($0)'? " } ?? ""
        throw ConfigurationError(
            .unknownProfile, "\(configFile) has no profile '\(printable(name))'\(origin)",
            hint: "\(nearest)known are: \(names.joined(separator: ", ")); choose with --profile")
    }

    private static func apply(
        _ text: String, to key: ProfileKey, of profile: inout Profile, origin: String,
        _ sources: inout [ProfileKey: String]
    ) -> [Finding] {
        if let file = key.secretFileKey {
            return [
                Finding(
                    .error, .secretInEnvironment,
                    "\(origin) would hold a secret, and environment variables and arguments are seen by others",
                    hint: "put the secret into a file of mode 0600 and name it with "
                        + "\(file.environmentVariable), or put it into the profile")
            ]
        }
        do throws(SettingProblem) {
            try profile.set(key, to: try setting(key, text))
        } catch {
            return [Finding(.error, error.code, "\(origin): \(error.reason)", hint: error.hint)]
        }
        sources[key] = origin
        for secret in ProfileKey.allCases where secret.secretFileKey == key { sources[secret] = nil }
        return []
    }

    /// A setting as text: lists are words between blanks, or JSON5.
    private static func setting(_ key: ProfileKey, _ text: String) throws(SettingProblem) -> Setting {
        switch key {
        case .environmentHost where text == "embedded": return .unset
        case .tokenCommand where text.hasPrefix("["):
            let hint = "write [\"program\", \"argument\"], or the words with blanks between them"
            guard let list = try? JSON5Reader.parse(Array(text.utf8)), let elements = list.array else {
                throw SettingProblem(reason: "the list is not JSON5", hint: hint)
            }
            let words = elements.compactMap(\.string)
            guard words.count == elements.count else {
                throw SettingProblem(code: .wrongType, reason: "the list must contain strings only", hint: hint)
            }
            return .list(words)
        case .tokenCommand:
            return .list(text.split(whereSeparator: \.isWhitespace).map(String.init))
        case .iceServers:
            let urls = text.split { $0 == "," || $0.isWhitespace }.map(String.init)
            return .servers(urls.isEmpty ? [] : [ICEServer(urls: urls)])
        default: return .text(text)
        }
    }

    /// Variables that begin like ours and are nearly spelled like one of them. Others are not ours to judge.
    private static func misspelledVariables(_ environment: [String: String]) -> [Finding] {
        let prefix = "SINCHCTL_"
        let known = ProfileKey.allCases.map(\.environmentVariable) + ["SINCHCTL_CONFIG", "SINCHCTL_PROFILE"]
        let suffixes = known.map { String($0.dropFirst(prefix.count)) }
        return environment.keys.filter { $0.hasPrefix(prefix) && !known.contains($0) }.sorted().compactMap { name in
            guard let nearest = nearestName(to: String(name.dropFirst(prefix.count)), among: suffixes) else {
                return nil
            }
            return Finding(
                .warning, .unknownKey, "the environment variable \(printable(name)) is unknown and has no effect",
                hint: "did you mean \(prefix)\(nearest)?")
        }
    }

    /// Reads the secrets from the files that settings name.
    private static func readSecretFiles(_ profile: inout Profile) -> [Finding] {
        do throws(ConfigurationError) {
            if let path = profile.applicationSecretFile {
                let bytes = try secret(inFile: path, "application secret", .applicationSecretFile)
                do throws(TokenError) {
                    profile.applicationSecret = try ApplicationSecret(
                        base64: String(decoding: bytes.filter { $0 > 0x20 }, as: UTF8.self))
                } catch {
                    throw ConfigurationError(.invalidValue, "\(path): \(error.message)", hint: error.hint)
                }
            }
            if let path = profile.passwordFile {
                // Blanks may belong to a password; the line's end, which editors add, does not.
                let bytes = try secret(inFile: path, "password", .passwordFile)
                let text = String(decoding: bytes.prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
                guard !text.isEmpty, bytes.dropFirst(text.utf8.count).allSatisfy({ $0 <= 0x20 }) else {
                    throw ConfigurationError(
                        .invalidValue, "\(path) does not hold one line with the password", hint: "correct the file")
                }
                profile.password = ConcealedText(text)
            }
            return []
        } catch {
            return [Finding(error)]
        }
    }

    private static func secret(
        inFile path: String, _ name: String, _ key: ProfileKey
    ) throws(ConfigurationError) -> [UInt8] {
        guard let file = try ProtectedFile.read(path, limit: 4_096) else {
            throw ConfigurationError(
                .unreadable, "the file of the \(name), \(path), does not exist",
                hint: "create it with mode 0600, or correct \(key.rawValue)")
        }
        try file.requirePrivate(because: "holds the \(name)")
        return file.bytes
    }
}
