import Configuration
import Testing

@testable import CommandLineInterface

@Suite struct ConfigurationCommands {
    private let scratch: Scratch

    init() throws {
        scratch = try Scratch()
    }

    @Test func initWritesOnceAndCheckAcceptsIt() async {
        let path = "\(scratch.path)/config/sinchctl/config.json"
        let first = await run("config", "init", environment: scratch.environment)
        #expect(first == RunResult(code: .ok, output: "wrote \(path)\n", error: ""))
        #expect(shell("stat -c %a '\(path)'").text == "600\n")
        let again = await run("config", "init", environment: scratch.environment)
        #expect(again.code == .cannotCreate)
        let check = await run("config", "check", environment: scratch.environment)
        #expect(check == RunResult(code: .ok, output: "the configuration is valid\n", error: ""))
    }

    @Test func optionsBeatVariablesBeatTheProfile() async {
        let path = scratch.write(
            #"{profiles: {default: {environmentHost: "a.example"}, other: {environmentHost: "b.example"}}}"#,
            to: "own.json")
        var environment = scratch.environment
        func host(_ arguments: String...) async -> String? {
            let capture = Capture()
            _ = Invocation(
                arguments: ["config", "show", "--config", path] + arguments, environment: environment, handlers: .all,
                output: capture.makeOutput())
            return capture.output.split(separator: "\n").first { $0.contains("\"environmentHost\": ") }
                .map { $0.split(separator: "\"")[3].description }
        }
        #expect(await host() == "a.example")
        #expect(await host("--profile", "other") == "b.example")
        environment["SINCHCTL_PROFILE"] = "other"
        #expect(await host() == "b.example")
        environment["SINCHCTL_ENVIRONMENT_HOST"] = "c.example"
        #expect(await host() == "c.example")
        #expect(await host("--environment-host", "d.example:5061") == "d.example:5061")
    }

    @Test func faultsOfTheFileEndWith78() async {
        let faults = [
            scratch.write("{profiles: {", to: "broken.json"),
            scratch.write(
                #"{profiles: {default: {applicationSecret: "ax8hTTQJF0OPXL32r1LHMA=="}}}"#, to: "open", mode: 0o644),
        ]
        for path in faults {
            for command in ["show", "check"] {
                let result = await run("config", command, "--config", path, environment: scratch.environment)
                #expect(result.code == .configuration)
                #expect(result.error.contains(path))
            }
        }
        let open = await run("config", "check", "--config", faults[1], environment: scratch.environment, json: true)
        #expect(open.code == .configuration)
        #expect(open.output.contains("chmod 600"))
        #expect(open.output.split(separator: "\n").count == 1)
        let profile = await run("config", "show", "--profile", "nope", environment: scratch.environment)
        #expect(profile.code == .configuration)
    }

    @Test func vendorHostIsExplained() async {
        let result = await run(
            "config", "show", "--environment-host", "ocra.api.sinch.com", environment: scratch.environment)
        #expect(result.code == .configuration)
        #expect(result.error.contains("private signalling protocol"))
    }

    @Test func pathsForOtherProcessesAreAbsolute() throws {
        let context = CommandContext(
            environment: [:], output: Capture().makeOutput(), now: { 0 }, currentDirectory: "/home/me")
        let playing = try CommandParser.parse(["call", "bob", "--play", "a.wav", "--playback", "file:b.wav"])
        #expect(
            playing.overrides(context).values == [.capture: "file:/home/me/a.wav", .playback: "file:/home/me/b.wav"])
        let token = try CommandParser.parse(["start", "-u", "a", "--token-file", "/t", "--capture", "tone:440"])
        #expect(token.overrides(context).values == [.tokenFile: "/t", .capture: "tone:440"])
        let standardInput = try CommandParser.parse(["start", "-u", "a", "--token-file", "-"])
        #expect(standardInput.overrides(context).values == [:])
    }

    /// The table repeats the names of variables; the configuration is what reads them.
    @Test func tableAndConfigurationNameTheSameVariables() {
        for (path, command) in CommandTable.leaves {
            for option in command.allOptions {
                guard let name = option.profileKey else { continue }
                let key = ProfileKey(rawValue: name)
                #expect(key != nil && option.variable == key?.environmentVariable, "\(path) --\(option.long)")
            }
        }
    }
}
