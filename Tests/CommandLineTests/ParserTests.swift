import Configuration
import Testing

@testable import CommandLineInterface

private func parse(_ arguments: String..., environment: [String: String] = [:]) throws -> ParsedCommand {
    try CommandParser.parse(arguments, environment: environment)
}

/// What the user reads when a command line makes no sense.
private func complaint(_ arguments: String...) -> String? {
    do {
        _ = try CommandParser.parse(arguments)
        return nil
    } catch {
        #expect(error.exit == .usage)
        return error.description
    }
}

@Suite struct ParserForms {
    @Test func valueAfterEqualsSignOrSpace() throws {
        for parsed in [
            try parse("call", "bob", "--duration=5"), try parse("call", "bob", "--duration", "5"),
            try parse("call", "bob", "-d5"), try parse("call", "bob", "-d", "5"), try parse("call", "-d5", "bob"),
            try parse("-q", "call", "-d", "5", "--", "bob"),
        ] {
            #expect(parsed.name == "call")
            #expect(parsed.argument("DESTINATION") == "bob")
            #expect(parsed.duration("duration") == .seconds(5))
        }
    }

    @Test func shortFlagsCombineAndCount() throws {
        let parsed = try parse("events", "-fvv", "--verbose")
        #expect(parsed.flag("follow"))
        #expect(parsed.count("verbose") == 3)
        #expect(!parsed.flag("jsonl"))
        let mixed = try parse("start", "-vualice")
        #expect(mixed.count("verbose") == 1)
        #expect(mixed.string("user") == "alice")
    }

    @Test func doubleDashEndsOptions() throws {
        #expect(try parse("call", "--", "--weird").argument("DESTINATION") == "--weird")
        #expect(try parse("jwt", "inspect", "-").argument("TOKEN") == "-")
    }

    @Test func aliasesAndSubcommandsResolve() throws {
        #expect(try parse("stop", "--as", "bob").name == "terminate")
        #expect(try parse("stop", "--as", "bob").string("user") == "bob")
        #expect(try parse("--json", "jwt", "--profile", "x", "sign", "--user", "foo").path == ["jwt", "sign"])
        #expect(try parse("mute", "--user", "alice").string("as") == "alice")
    }

    @Test func valueMayLookLikeAnything() throws {
        #expect(try parse("verify", "--", "-a.wav", "-b.wav").argument("HEARD") == "-b.wav")
        #expect(try parse("call", "bob", "--play=--record").string("play") == "--record")
        #expect(try parse("call", "bob", "--play", "-x.wav").string("play") == "-x.wav")
        #expect(try parse("call", "bob", "--play=a=b.wav").string("play") == "a=b.wav")
    }

    @Test func repeatableOptionsKeepTheirOrder() throws {
        let parsed = try parse("call", "bob", "--header", "x-a: 1", "--header=X-B: 2")
        #expect(parsed.strings("header") == ["x-a: 1", "X-B: 2"])
    }

    @Test func defaultsAreNotGiven() throws {
        let parsed = try parse("call", "bob")
        #expect(parsed.duration("ring-timeout") == .seconds(60))
        #expect(!parsed.isGiven("timeout"))
        #expect(!parsed.isGiven("ring-timeout"))
        #expect(parsed.string("play") == nil)
        #expect(parsed.duration("duration") == nil)
        #expect(try parse("calls").integer("limit") == 20)
        #expect(try parse("calls", "--limit", "3").integer("limit") == 3)
    }

    @Test func helpAndVersionWinOverWhatIsMissing() throws {
        let help = try parse("jwt", "sign", "--help")
        #expect(help.name == "help")
        #expect(help.arguments("COMMAND") == ["jwt", "sign"])
        #expect(try parse("--help").arguments("COMMAND") == [])
        #expect(try parse("-V", "--json").name == "version")
        #expect(try parse("-V", "--json").flag("json"))
        #expect(try parse("call", "--version").name == "version")
    }
}

@Suite struct ParserEnvironment {
    @Test func variableStandsInForAnOption() throws {
        #expect(try parse("start", environment: ["SINCHCTL_USER": "alice"]).string("user") == "alice")
        let both = try parse("start", "-u", "bob", environment: ["SINCHCTL_USER": "alice"])
        #expect(both.string("user") == "bob")
    }

    @Test func optionDisplacesAVariableThatConflicts() throws {
        let parsed = try parse("call", "bob", "--user", "carol", environment: ["SINCHCTL_AS": "alice"])
        #expect(parsed.string("user") == "carol")
        #expect(parsed.string("as") == nil)
    }

    @Test func settingsOfAProfileAreLeftToTheConfiguration() throws {
        let parsed = try parse("status", environment: ["SINCHCTL_ENVIRONMENT_HOST": "example.com"])
        #expect(!parsed.isGiven("environment-host"))
    }

    @Test func badVariableIsAConfigurationError() {
        let error = #expect(throws: CommandFailure.self) {
            try CommandParser.parse(["start"], environment: ["SINCHCTL_USER": "a b"])
        }
        #expect(error?.exit == .configuration)
        #expect(
            error?.description
                == "bad value 'a b' in SINCHCTL_USER: a user's name has no spaces and at most 255 bytes; "
                + "correct or unset the environment variable")
    }
}

@Suite struct ParserComplaints {
    @Test func unknownNamesAreAnsweredWithTheNearest() {
        #expect(complaint("cal", "bob") == "unknown command 'cal'; did you mean 'call'? see 'sinchctl help'")
        #expect(complaint("frobnicate") == "unknown command 'frobnicate'; see 'sinchctl help'")
        #expect(
            complaint("call", "--recrod", "x")
                == "call: unknown option '--recrod'; did you mean '--record'? see 'sinchctl help call'")
        #expect(
            complaint("jwt", "sgin") == "jwt: unknown command 'sgin'; did you mean 'jwt sign'? see 'sinchctl help jwt'")
        #expect(complaint("call", "-x") == "call: unknown option '-x'; see 'sinchctl help call'")
    }

    @Test func namesAreNeverAbbreviated() {
        #expect(complaint("stat") != nil)
        #expect(complaint("call", "bob", "--dur", "5")?.hasPrefix("call: unknown option '--dur'") == true)
    }

    @Test func missingPiecesAreNamed() {
        #expect(complaint() == "no command given; see 'sinchctl help'")
        #expect(complaint("jwt") == "jwt: needs a command: sign, inspect or verify; see 'sinchctl help jwt'")
        #expect(complaint("call") == "call: DESTINATION is missing: the user to call; see 'sinchctl help call'")
        #expect(
            complaint("start")
                == "start: --user USER is missing: the user to register, or set SINCHCTL_USER; see 'sinchctl help start'"
        )
        #expect(
            complaint("call", "bob", "--play")
                == "call: option '--play' needs a value: --play FILE; see 'sinchctl help call'")
        #expect(
            complaint("call", "bob", "--play", "--record", "x.wav")
                == "call: option '--play' needs a value: --play FILE; see 'sinchctl help call'")
    }

    @Test func valuesAreChecked() {
        #expect(
            complaint("wait", "--for", "regisered")
                == "wait: bad value 'regisered' for --for: it must be registered, incoming, established or ended; "
                + "did you mean 'registered'? see 'sinchctl help wait'")
        #expect(
            complaint("call", "bob", "--duration", "soon")
                == "call: bad value 'soon' for --duration: it must be a length of time such as 5, 5s, 500ms, 2m or 1h; "
                + "see 'sinchctl help call'")
        #expect(complaint("jwt", "sign", "-u", "a", "--ttl", "59")?.contains("it must be at least 1m") == true)
        #expect(complaint("calls", "--limit", "0")?.contains("a whole number from 1 to 10000") == true)
        #expect(complaint("calls", "--limit=")?.contains("it is empty") == true)
        #expect(complaint("call", "bo\u{1B}[31mb")?.contains("bad value 'bo?[31mb' for DESTINATION") == true)
    }

    @Test func tooMuchIsRefused() {
        #expect(
            complaint("status", "x")
                == "status: unexpected argument 'x': the command takes none; see 'sinchctl help status'")
        #expect(
            complaint("call", "a", "b")
                == "call: unexpected argument 'b': the command takes DESTINATION; see 'sinchctl help call'")
        #expect(
            complaint("call", "b", "-d1", "-d2")
                == "call: option '--duration' is given more than once; see 'sinchctl help call'")
        #expect(
            complaint("status", "--json=yes") == "status: option '--json' takes no value; see 'sinchctl help status'")
    }

    @Test func optionsThatExcludeEachOther() {
        #expect(
            complaint("call", "bob", "--play", "a.wav", "--capture", "silence")
                == "call: --capture and --play exclude each other; see 'sinchctl help call'")
        #expect(complaint("call", "bob", "--as", "a", "--user", "b")?.contains("exclude each other") == true)
        #expect(complaint("terminate", "--all", "--user", "b")?.contains("exclude each other") == true)
        #expect(complaint("status", "-q", "-v")?.contains("exclude each other") == true)
    }

    @Test func secretsAreNeverTakenFromArguments() {
        for option in ["--token", "--application-secret"] {
            let text = complaint("start", "--user", "alice", "\(option)=very-secret")
            #expect(text?.hasPrefix("start: option '\(option)' is not accepted: arguments are visible") == true)
            #expect(text?.contains("very-secret") == false)
        }
    }
}
