import Glibc
import Testing
import Token

@testable import Configuration

@Suite struct ConfigurationTests {
    @Test func withoutAFileTheEmbeddedEnvironmentIsUsed() throws {
        let scratch = try Scratch()
        let configuration = try scratch.load()
        #expect(!configuration.hasFile)
        #expect(configuration.profile == Profile(name: "default"))
        #expect(configuration.profile.usesEmbeddedEnvironment)
        #expect(configuration.sources.isEmpty)
        #expect(configuration.warnings.isEmpty)
        // Loading writes nothing.
        #expect(scratch.mode(scratch.path + "/.config") == nil)
        #expect(scratch.mode(scratch.path + "/run/sinchctl") == nil)
    }

    @Test func aWholeProfile() throws {
        let scratch = try Scratch()
        try scratch.configure(
            """
            { profiles: { default: {
              applicationKey: "\(applicationKey)", applicationSecret: "\(secretText)",
              tokenCommand: ["fetch", "a b"], tokenURL: "https://backend.example.com/token?x=1",
              tokenFile: "token.jwt", environmentHost: "SIP.example.com:5061;transport=tls", transport: "tls",
              outboundProxy: "[::1]:5061", caFile: "/etc/ca.pem", authentication: "bearer", mediaSecurity: "required",
              iceServers: [{urls: "stun:s.example"}, {urls: ["turn:t.example?transport=udp", "turns:[::1]:5349"],
                username: "u", credential: "c"}],
              capture: "file:in.wav", playback: "null",
            }, other: {} } }
            """)
        let configuration = try scratch.load()
        let profile = configuration.profile
        #expect(profile.applicationKey == applicationKey)
        #expect(profile.applicationSecret == (try ApplicationSecret(base64: secretText)))
        #expect(profile.tokenCommand == ["fetch", "a b"])
        #expect(profile.tokenURL == "https://backend.example.com/token?x=1")
        #expect(profile.tokenFile == scratch.path + "/.config/sinchctl/token.jwt")
        #expect(profile.environmentHost == EnvironmentHost(host: "sip.example.com", port: 5061, transport: .tls))
        #expect(profile.transport == .tls)
        #expect(profile.outboundProxy == EnvironmentHost(host: "::1", port: 5061))
        #expect(profile.caFile == "/etc/ca.pem")
        #expect(profile.authentication == .bearer)
        #expect(profile.mediaSecurity == .required)
        #expect(profile.iceServers?.count == 2)
        #expect(profile.iceServers?[1].credential?.revealed() == "c")
        #expect(profile.capture == "file:in.wav")
        #expect(profile.playback == "null")
        #expect(profile.tokenSource == .command(["fetch", "a b"]))
        #expect(configuration.profileNames == ["default", "other"])
        #expect(configuration.sources[.transport] == "profiles.default")
    }

    @Test func flagsBeatVariablesBeatTheProfile() throws {
        let scratch = try Scratch()
        try scratch.configure(
            "{profiles: {default: {transport: 'tls', environmentHost: 'a.example', capture: 'echo', playback: 'null'}}}"
        )
        let configuration = try scratch.load(
            ["SINCHCTL_TRANSPORT": "tcp", "SINCHCTL_CAPTURE": "silence", "SINCHCTL_PLAYBACK": ""],
            overrides: Overrides([.transport: "udp", .environmentHost: "embedded"]))
        #expect(configuration.profile.transport == .udp)
        #expect(configuration.profile.environmentHost == nil)
        #expect(configuration.profile.capture == "silence")
        #expect(configuration.profile.playback == "null")
        #expect(configuration.sources[.transport] == "--transport")
        #expect(configuration.sources[.capture] == "SINCHCTL_CAPTURE")
        #expect(configuration.sources[.playback] == "profiles.default")
    }

    @Test func everyKeyHasAVariableAndAFlag() throws {
        #expect(ProfileKey.tokenURL.environmentVariable == "SINCHCTL_TOKEN_URL")
        #expect(ProfileKey.environmentHost.environmentVariable == "SINCHCTL_ENVIRONMENT_HOST")
        #expect(ProfileKey.iceServers.flag == "--ice-servers")
        #expect(ProfileKey.caFile.flag == "--ca-file")
        #expect(Set(ProfileKey.allCases.map(\.environmentVariable)).count == ProfileKey.allCases.count)
        let scratch = try Scratch()
        let secretFile = try scratch.write(secretText + "\n", to: "secret")
        let passwordFile = try scratch.write("pass word\n", to: "password")
        let values: [ProfileKey: String] = [
            .applicationKey: applicationKey, .applicationSecretFile: secretFile, .tokenCommand: "fetch --user alice",
            .tokenURL: "http://127.0.0.1:8080/t", .tokenFile: "t", .environmentHost: "h.example", .transport: "wss",
            .outboundProxy: "10.0.0.5", .caFile: "ca.pem", .authentication: "none", .authenticationUser: "1001",
            .passwordFile: passwordFile, .mediaSecurity: "optional",
            .iceServers: "stun:a.example,stun:b.example", .capture: "tone:440", .playback: "alsa:default",
        ]
        for key in ProfileKey.allCases where !key.isSecret {
            let value = try #require(values[key])
            let configuration = try scratch.load([key.environmentVariable: value])
            #expect(configuration.profile != Profile(name: "default"), "\(key)")
            #expect(configuration.sources == [key: key.environmentVariable])
            #expect(try scratch.load(overrides: Overrides([key: value])).profile == configuration.profile)
        }
        #expect(try scratch.load(["SINCHCTL_TOKEN_COMMAND": "fetch --user alice"]).profile.tokenCommand?.count == 3)
        #expect(try scratch.load(["SINCHCTL_TOKEN_COMMAND": "['a b', 'c']"]).profile.tokenCommand == ["a b", "c"])
        #expect(scratch.refusal(["SINCHCTL_TOKEN_COMMAND": "['a"])?.code == .invalidValue)
        #expect(scratch.refusal(["SINCHCTL_TOKEN_COMMAND": "[1]"])?.code == .wrongType)
    }

    @Test func secretsComeFromFilesOnly() throws {
        let scratch = try Scratch()
        for error in [
            scratch.refusal(["SINCHCTL_APPLICATION_SECRET": secretText]),
            scratch.refusal(overrides: Overrides([.applicationSecret: secretText])),
        ] {
            let error = try #require(error)
            #expect(error.code == .secretInEnvironment)
            #expect(!error.description.contains("ax8h"))
            #expect(error.hint?.contains("SINCHCTL_APPLICATION_SECRET_FILE") == true)
        }
    }

    @Test func accountsOfSIPServices() throws {
        let scratch = try Scratch()
        let path = try scratch.write("pass word \n", to: ".config/sinchctl/account")
        try scratch.configure(
            "{profiles: {default: {authentication: 'digest', authenticationUser: '1001', passwordFile: 'account'}}}")
        let profile = try scratch.load().profile
        let account = try #require(profile.digestCredentials(user: "alice"))
        #expect(account.username == "1001")
        #expect(account.password.revealed() == "pass word ")
        // Without a name it is the user's; without a password it is the application's key and secret.
        var other = profile
        other.authenticationUser = nil
        #expect(other.digestCredentials(user: "alice")?.username == "alice")
        other.password = nil
        #expect(other.digestCredentials(user: "alice") == nil)
        other.applicationKey = applicationKey
        other.applicationSecret = try ApplicationSecret(base64: secretText)
        #expect(other.digestCredentials(user: "alice")?.username == applicationKey)
        #expect(other.digestCredentials(user: "alice")?.password.revealed() == secretText)

        #expect(chmod(path, 0o644) == 0)
        #expect(scratch.refusal()?.hint == "run: chmod 600 \(path)")
        try scratch.write("two\nlines", to: ".config/sinchctl/account", mode: 0o600)
        #expect(chmod(path, 0o600) == 0)
        #expect(scratch.refusal()?.message.contains("one line") == true)
        try scratch.configure("{profiles: {default: {password: 'canary'}}}")
        let configuration = try scratch.load()
        #expect(configuration.profile.password?.revealed() == "canary")
        var texts = configuration.report() + "\(configuration)"
        dump(configuration, to: &texts)
        #expect(!texts.contains("canary"))
        #expect(texts.contains("set, not shown"))
        for error in [
            scratch.refusal(["SINCHCTL_PASSWORD": "canary"]),
            scratch.refusal(overrides: Overrides([.password: "canary"])),
        ] {
            #expect(error?.code == .secretInEnvironment)
            #expect(error?.description.contains("canary") == false)
            #expect(error?.hint?.contains("SINCHCTL_PASSWORD_FILE") == true)
        }
        // Who can read the password of a configuration file can use the account.
        try scratch.configure("{profiles: {default: {password: 'canary'}}}", mode: 0o644)
        #expect(scratch.refusal()?.code == .exposed)
    }

    @Test func secretFile() throws {
        let scratch = try Scratch()
        try scratch.write("  \(secretText)\n", to: ".config/sinchctl/secret")
        try scratch.configure(
            "{profiles: {default: {applicationKey: '\(applicationKey)', applicationSecretFile: 'secret'}}}")
        let secret = try ApplicationSecret(base64: secretText)
        let profile = try scratch.load().profile
        #expect(profile.applicationSecret == secret)
        #expect(profile.tokenSource == .signed(applicationKey: applicationKey, applicationSecret: secret))

        let open = try scratch.write(secretText, to: "open", mode: 0o640)
        let error = try #require(scratch.refusal(["SINCHCTL_APPLICATION_SECRET_FILE": open]))
        #expect(error.code == .exposed)
        #expect(error.hint == "run: chmod 600 \(open)")
        let bad = try scratch.write("hunter2", to: "bad")
        let invalid = try #require(scratch.refusal(["SINCHCTL_APPLICATION_SECRET_FILE": bad]))
        #expect(invalid.code == .invalidValue)
        #expect(!invalid.description.contains("hunter2"))
        #expect(scratch.refusal(["SINCHCTL_APPLICATION_SECRET_FILE": "/nonexistent/x"])?.code == .unreadable)
    }

    @Test func secretReadableByOthersIsRefused() throws {
        let scratch = try Scratch()
        let text = "{profiles: {default: {}, other: {applicationSecret: '\(secretText)'}}}"
        for mode: UInt32 in [0o640, 0o604, 0o644, 0o660] {
            try scratch.configure(text, mode: mode)
            let error = try #require(scratch.refusal())
            #expect(error.code == .exposed)
            #expect(error.hint?.hasPrefix("run: chmod ") == true)
            #expect(error.hint?.hasSuffix(scratch.configFile) == true)
            #expect(error.commandFailure.exit == .configuration)
        }
        try scratch.configure(text, mode: 0o400)
        #expect(scratch.refusal() == nil)
        // A TURN credential is a secret, too; without a secret others may read, but not write.
        let turn = "{profiles: {default: {iceServers: [{urls: 'turn:h', username: 'u', credential: 'c'}]}}}"
        try scratch.configure(turn, mode: 0o644)
        #expect(scratch.refusal()?.code == .exposed)
        try scratch.configure("{profiles: {default: {transport: 'tls'}}}", mode: 0o644)
        #expect(scratch.refusal() == nil)
        try scratch.configure("{profiles: {default: {transport: 'tls'}}}", mode: 0o664)
        #expect(scratch.refusal()?.hint == "run: chmod go-w \(scratch.configFile)")
    }

    @Test func chmodCommandQuotesThePath() throws {
        let scratch = try Scratch()
        let file = try scratch.write(
            "{profiles: {default: {applicationSecret: '\(secretText)'}}}", to: "it's a file", mode: 0o644)
        let error = try #require(scratch.refusal(["SINCHCTL_CONFIG": file]))
        #expect(error.hint == "run: chmod 600 '\(scratch.path)/it'\\''s a file'")
    }

    @Test func brokenFileNamesLineAndColumn() throws {
        let scratch = try Scratch()
        try scratch.configure("{\n  profiles: {\n    default: { transport: tls }\n  }\n}\n")
        let error = try #require(scratch.refusal())
        #expect(error.code == .syntax)
        #expect(error.message.contains("line 3, column 27"))
        #expect(error.message.contains(scratch.configFile))
    }

    @Test func unknownKeysNameTheNearest() throws {
        let scratch = try Scratch()
        try scratch.configure("{\n  profiles: { default: { mediaSecurty: 'required' } }\n}")
        let error = try #require(scratch.refusal())
        #expect(error.code == .unknownKey)
        #expect(error.message == "\(scratch.configFile):2:26: the key profiles.default.mediaSecurty is unknown")
        #expect(error.hint == "did you mean 'mediaSecurity'?")
        try scratch.configure("{transport: 'tls'}")
        #expect(scratch.refusal()?.hint?.contains("profiles") == true)
        try scratch.configure("{profile: {}}")
        #expect(scratch.refusal()?.hint == "did you mean 'profiles'?")
        try scratch.configure("{profiles: {default: {iceServers: [{url: 'stun:x'}]}}}")
        let ice = try #require(scratch.refusal())
        #expect(ice.message.contains("profiles.default.iceServers[0].url: "))
        #expect(ice.hint == "did you mean 'urls'?")
    }

    @Test(arguments: [
        ("{profiles: {default: {transport: 5}}}", "profiles.default.transport"),
        ("{profiles: {default: {tokenCommand: 'x'}}}", "profiles.default.tokenCommand"),
        ("{profiles: {default: {tokenCommand: ['x', 1]}}}", "profiles.default.tokenCommand[1]"),
        ("{profiles: {default: {iceServers: {}}}}", "profiles.default.iceServers"),
        ("{profiles: {default: {iceServers: ['stun:x']}}}", "profiles.default.iceServers[0]"),
        ("{profiles: {default: {iceServers: [{urls: [true]}]}}}", "profiles.default.iceServers[0].urls[0]"),
        ("{profiles: {default: {applicationKey: true}}}", "profiles.default.applicationKey"),
        ("{profiles: {default: []}}", "profiles.default"), ("{profiles: []}", "profiles"), ("[]", "an object"),
    ])
    func wrongTypesNameThePath(_ wrong: (text: String, path: String)) throws {
        let scratch = try Scratch()
        try scratch.configure(wrong.text)
        let error = try #require(scratch.refusal())
        #expect(error.code == .wrongType)
        #expect(error.message.contains(wrong.path), "\(error.message)")
    }

    @Test(arguments: [
        (ProfileKey.transport, "TLS"), (.transport, "tlss"), (.authentication, "basic"), (.mediaSecurity, "srtp"),
        (.applicationKey, "key"), (.tokenURL, "http://backend.example.com/t"), (.tokenURL, "ftp://localhost/"),
        (.tokenURL, "https://user:pw@host/"), (.tokenURL, "https:///x"), (.tokenURL, "token"),
        (.tokenURL, "https://a b/"), (.environmentHost, "a b"), (.outboundProxy, "10.0.0.5:0"),
        (.capture, "wav:x"), (.capture, "alsa:"), (.capture, "tone:x"), (.playback, "tone:1"), (.playback, "speaker"),
        (.caFile, "~/ca.pem"), (.iceServers, "http://x"), (.iceServers, "turn:no-credential.example"),
        (.iceServers, "stun:"), (.iceServers, "stun:h?transport=udp"), (.iceServers, "stun:h;transport=udp"),
        (.tokenCommand, "   "), (.tokenCommand, "[]"),
    ])
    func invalidValuesNameTheirOrigin(_ wrong: (key: ProfileKey, text: String)) throws {
        let scratch = try Scratch()
        let error = try #require(scratch.refusal([wrong.key.environmentVariable: wrong.text]))
        #expect(error.code == .invalidValue)
        #expect(error.message.hasPrefix(wrong.key.environmentVariable + ": "))
        let flag = try #require(scratch.refusal(overrides: Overrides([wrong.key: wrong.text])))
        #expect(flag.message.hasPrefix(wrong.key.flag + ": "))
        #expect(!error.description.contains("user:pw"))
    }

    @Test func misspelledChoicesNameTheNearest() throws {
        let scratch = try Scratch()
        #expect(scratch.refusal(["SINCHCTL_TRANSPORT": "TLS"])?.hint?.contains("did you mean 'tls'?") == true)
        #expect(scratch.refusal(["SINCHCTL_MEDIA_SECURITY": "requird"])?.hint?.contains("'required'") == true)
        #expect(scratch.refusal(["SINCHCTL_CAPTURE": "also:default"])?.hint?.contains("'alsa:'") == true)
    }

    @Test func misspelledVariablesAreWarnedOf() throws {
        let scratch = try Scratch()
        let warnings = try scratch.load(["SINCHCTL_TRANPSORT": "tls", "SINCHCTL_XYZZY": "1", "PATH": "/bin"]).warnings
        #expect(warnings.count == 1)
        #expect(warnings.first?.hint == "did you mean SINCHCTL_TRANSPORT?")
    }

    @Test func profiles() throws {
        let scratch = try Scratch()
        try scratch.configure("{profiles: {staging: {transport: 'tcp'}, production: {transport: 'tls'}}}")
        #expect(try scratch.load(profile: "staging").profile.transport == .tcp)
        #expect(try scratch.load(["SINCHCTL_PROFILE": "production"]).profile.transport == .tls)
        // The flag beats the variable.
        #expect(try scratch.load(["SINCHCTL_PROFILE": "production"], profile: "staging").profile.transport == .tcp)
        let error = try #require(scratch.refusal(profile: "stagging"))
        #expect(error.code == .unknownProfile)
        #expect(error.hint?.contains("did you mean 'staging'?") == true)
        #expect(error.hint?.contains("known are: staging, production") == true)
        // Nobody chose one, and there is no default: better to ask than to call somewhere else.
        #expect(scratch.refusal()?.code == .unknownProfile)
        try scratch.configure("{profiles: {}}")
        #expect(scratch.refusal() == nil)
        #expect(scratch.refusal(profile: "x")?.code == .unknownProfile)
        unlink(scratch.configFile)
        let missing = try #require(scratch.refusal(profile: "x"))
        #expect(missing.code == .unknownProfile)
        #expect(missing.hint?.contains("config init") == true)
    }

    @Test func mistakesInOtherProfilesAreForCheck() throws {
        let scratch = try Scratch()
        try scratch.configure("{profiles: {default: {}, other: {transprot: 'tls', transport: 1}, 'a/b': {}}}")
        // A profile's impossible name is the file's mistake; a mistake within a profile is that profile's.
        #expect(scratch.refusal()?.code == .invalidValue)
        try scratch.configure("{profiles: {default: {}, other: {transprot: 'tls', transport: 1}}}")
        #expect(scratch.refusal() == nil)
        #expect(scratch.refusal(profile: "other")?.code == .unknownKey)
        let findings = Configuration.check(environment: scratch.environment)
        #expect(findings.map(\.code) == [.unknownKey, .wrongType])
    }

    @Test func oddFiles() throws {
        let scratch = try Scratch()
        try scratch.makeDirectory("directory", 0o700)
        #expect(scratch.refusal(["SINCHCTL_CONFIG": scratch.path + "/directory"])?.code == .fileKind)
        // Opening a pipe must not wait for a writer.
        try #require(mkfifo(scratch.path + "/pipe", 0o600) == 0)
        #expect(scratch.refusal(["SINCHCTL_CONFIG": scratch.path + "/pipe"])?.code == .fileKind)
        let huge = try scratch.write("//" + String(repeating: "x", count: 300_000), to: "huge")
        #expect(scratch.refusal(["SINCHCTL_CONFIG": huge])?.code == .tooLarge)
        try #require(symlink("/nonexistent/target", scratch.path + "/dangling") == 0)
        let dangling = try #require(scratch.refusal(["SINCHCTL_CONFIG": scratch.path + "/dangling"]))
        #expect(dangling.message.contains("symbolic link"))
        let target = try scratch.write(
            "{profiles: {default: {applicationSecret: '\(secretText)'}}}", to: "t", mode: 0o644)
        try #require(symlink(target, scratch.path + "/link") == 0)
        #expect(scratch.refusal(["SINCHCTL_CONFIG": scratch.path + "/link"])?.code == .exposed)
        try #require(chmod(target, 0o600) == 0)
        #expect(scratch.refusal(["SINCHCTL_CONFIG": scratch.path + "/link"]) == nil)
        #expect(scratch.refusal(["SINCHCTL_CONFIG": "/dev/null"]) == nil)
        let empty = try scratch.write(" \n", to: "empty")
        #expect(scratch.refusal(["SINCHCTL_CONFIG": empty]) == nil)
        let missing = try #require(scratch.refusal(["SINCHCTL_CONFIG": scratch.path + "/missing"]))
        #expect(missing.message.contains("does not exist"))
        #expect(scratch.refusal(["SINCHCTL_CONFIG": scratch.path + "/empty/below"])?.code == .unreadable)
    }

    @Test func contradictions() throws {
        let scratch = try Scratch()
        func codes(_ settings: String) throws -> [Finding] {
            try scratch.configure("{profiles: {default: {\(settings)}}}")
            return Configuration.check(environment: scratch.environment)
        }
        #expect(try codes("").isEmpty)
        #expect(try codes("environmentHost: 'h.example'").first?.message.contains("tokens") == true)
        #expect(try codes("environmentHost: 'h.example', authentication: 'none'").isEmpty)
        #expect(try codes("environmentHost: 'h.example', authentication: 'digest'").first?.severity == .error)
        #expect(try codes("applicationSecret: '\(secretText)'").first?.message.contains("applicationKey") == true)
        #expect(
            try codes("environmentHost: 'h.example', transport: 'udp', tokenCommand: ['x']").first?.message
                .contains("TLS") == true)
        #expect(try codes("environmentHost: '127.0.0.1', transport: 'udp', tokenCommand: ['x']").isEmpty)
        #expect(
            try codes("environmentHost: 'h;transport=tls', transport: 'wss', tokenCommand: ['x']").map(\.severity)
                == [.warning])
        #expect(
            try codes("environmentHost: 'h', mediaSecurity: 'none', tokenCommand: ['x']").map(\.severity) == [.warning])
        #expect(try codes("tokenCommand: ['x'], tokenURL: 'https://h/'").map(\.severity) == [.warning])
        #expect(
            try codes("caFile: 'missing.pem', tokenCommand: ['/nonexistent/x']").map(\.code) == [
                .unreadable, .unreadable,
            ])
        #expect(
            try codes("applicationSecret: '\(secretText)', applicationSecretFile: 'x'").contains {
                $0.code == .invalidValue
            })
    }

    @Test func checkReportsWhatLoadThrows() throws {
        let scratch = try Scratch()
        try scratch.configure("{")
        #expect(Configuration.check(environment: scratch.environment).map(\.code) == [.syntax])
        try scratch.configure("{profiles: {a: {}}}")
        #expect(Configuration.check(environment: scratch.environment, profile: "b").map(\.code) == [.unknownProfile])
    }

    @Test func reportMasksSecrets() throws {
        let scratch = try Scratch()
        try scratch.configure(
            """
            {profiles: {default: {applicationKey: '\(applicationKey)', applicationSecret: '\(secretText)',
              tokenCommand: ['curl', '-H', 'canary-argument'], tokenURL: 'https://h/t?key=canary-query',
              iceServers: [{urls: 'turn:h', username: 'u', credential: 'canary-turn'}], transport: 'tls'}}}
            """)
        let configuration = try scratch.load()
        let report = configuration.report()
        let value = try JSON5Reader.parse(Array(report.utf8))
        #expect(value["settings"]?["applicationSecret"]?.string == "set, not shown")
        #expect(value["settings"]?["transport"]?.string == "tls")
        #expect(value["settings"]?["environmentHost"]?.string == "embedded")
        #expect(value["sources"]?["transport"]?.string == "profiles.default")
        #expect(value["profile"]?.string == "default")
        var dumped = ""
        dump(configuration, to: &dumped)
        #expect(!report.contains("canary") && !report.contains("ax8h"))
        #expect(!dumped.contains("canary-turn") && !dumped.contains("ax8h"))
    }

    @Test func template() throws {
        let scratch = try Scratch()
        let paths = try Paths(environment: scratch.environment)
        try Configuration.writeTemplate(paths: paths)
        #expect(scratch.mode(paths.configFile) == 0o600)
        #expect(try scratch.load().profile == Profile(name: "default"))
        #expect(Configuration.check(environment: scratch.environment).isEmpty)
        let error = #expect(throws: ConfigurationError.self) { try Configuration.writeTemplate(paths: paths) }
        #expect(error?.code == .exists)
        #expect(error?.commandFailure.exit == .cannotCreate)
        // With every example switched on it is still valid, and shows all keys but the one for a secret.
        try scratch.configure(templateWithExamples())
        try scratch.write(secretText, to: ".config/sinchctl/application-secret")
        try scratch.write("pass word", to: ".config/sinchctl/password")
        let configuration = try scratch.load()
        #expect(Set(configuration.sources.keys) == Set(ProfileKey.allCases.filter { !$0.isSecret }))
    }

    @Test func loadingIsFast() throws {
        let scratch = try Scratch()
        try scratch.configure(Configuration.template)
        let clock = ContinuousClock()
        // The best of several: a command's start must not wait for this. Tens of times the usual, for slow machines.
        let best = try (0..<10).map { _ in try clock.measure { _ = try scratch.load() } }.min()
        #expect(try #require(best) < .milliseconds(20))
    }
}
