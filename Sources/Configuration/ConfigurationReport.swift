extension Configuration {
    /// The settings in effect as a JSON document, secrets masked: for `config show`.
    ///
    /// `configFile`, `profile`, `profiles`, `runtimeDirectory`, `stateDirectory`, `settings`, and in `sources` where each
    /// setting comes from that is not a default.
    public func report() -> String {
        let settings = ProfileKey.allCases.compactMap { key in
            value(key).map { (name: key.rawValue, value: $0) }
        }
        let sources = ProfileKey.allCases.compactMap { key in
            self.sources[key].map { (name: key.rawValue, value: JSONText.string($0)) }
        }
        return JSONText.object([
            ("configFile", .string(paths.configFile)), ("configFileExists", .boolean(hasFile)),
            ("profile", .string(profile.name)), ("profiles", .array(profileNames.map(JSONText.string))),
            ("runtimeDirectory", .string(paths.runtimeDirectory)), ("stateDirectory", .string(paths.stateDirectory)),
            ("settings", .object(settings)), ("sources", .object(sources)),
        ]).text() + "\n"
    }

    private static let concealed = JSONText.string("set, not shown")

    private func value(_ key: ProfileKey) -> JSONText? {
        switch key {
        case .applicationKey: profile.applicationKey.map(JSONText.string)
        case .applicationSecret: profile.applicationSecret.map { _ in Self.concealed }
        case .applicationSecretFile: profile.applicationSecretFile.map(JSONText.string)
        case .tokenCommand: profile.tokenCommand.map(Self.command)
        case .tokenURL: profile.tokenURL.map { .string(withoutQuery($0)) }
        case .tokenFile: profile.tokenFile.map(JSONText.string)
        case .environmentHost: .string(profile.environmentHost?.description ?? "embedded")
        case .transport: profile.transport.map { .string($0.rawValue) }
        case .outboundProxy: profile.outboundProxy.map { .string($0.description) }
        case .caFile: profile.caFile.map(JSONText.string)
        case .authentication: profile.authentication.map { .string($0.rawValue) }
        case .authenticationUser: profile.authenticationUser.map(JSONText.string)
        case .password: profile.password.map { _ in Self.concealed }
        case .passwordFile: profile.passwordFile.map(JSONText.string)
        case .mediaSecurity: profile.mediaSecurity.map { .string($0.rawValue) }
        case .iceServers: profile.iceServers.map { .array($0.map(Self.server)) }
        case .capture: profile.capture.map(JSONText.string)
        case .playback: profile.playback.map(JSONText.string)
        }
    }

    /// The program only: its arguments may carry a password.
    private static func command(_ words: [String]) -> JSONText {
        let program = words.first ?? ""
        let rest = words.count - 1
        guard rest > 0 else { return .string(program) }
        return .string("\(program) (\(rest) argument\(rest == 1 ? "" : "s"), not shown)")
    }

    private static func server(_ server: ICEServer) -> JSONText {
        var members: [(name: String, value: JSONText)] = [("urls", .array(server.urls.map(JSONText.string)))]
        if let username = server.username { members.append(("username", .string(username))) }
        if server.credential != nil { members.append(("credential", concealed)) }
        return .object(members)
    }
}
