import Configuration
import Testing

@testable import CommandLineInterface

@Suite struct Invocations {
    private let handlers = CommandHandlers([
        "status": .immediate { parsed, context throws(CommandFailure) in
            context.output.result(["running": []], text: "nothing runs")
            return .ok
        },
        "call": .asynchronous { parsed, context async throws(CommandFailure) in
            await Task.yield()
            guard parsed.argument("DESTINATION") == "bob" else {
                throw CommandFailure(exit: .noSuchUser, sipStatus: 404, message: "no such user")
            }
            return .ok
        },
    ])

    @Test func handlersOfBothKindsRun() async {
        #expect(
            await run("status", handlers: handlers) == RunResult(code: .ok, output: "nothing runs\n", error: ""))
        #expect(
            await run("status", handlers: handlers, json: true)
                == RunResult(code: .ok, output: "{\"running\":[]}\n", error: ""))
        #expect(await run("call", "bob", handlers: handlers).code == .ok)
        #expect(
            await run("call", "eve", handlers: handlers)
                == RunResult(code: .noSuchUser, output: "", error: "sinchctl: no such user\n"))
    }

    @Test func usageErrorsAreDocumentsToo() async {
        let result = await run("call", "--json", json: true)
        #expect(result.code == .usage)
        #expect(
            result.output == """
                {"error":{"code":"usage","exitCode":64,"hint":"see 'sinchctl help call'",\
                "message":"call: DESTINATION is missing: the user to call"}}

                """)
    }

    @Test func resultThatCannotBeWrittenIsNoSuccess() {
        let capture = Capture(isFull: true)
        let invocation = Invocation(
            arguments: ["status"], environment: [:], handlers: handlers, output: capture.makeOutput())
        guard case .finished(let code) = invocation else {
            Issue.record("status does not wait")
            return
        }
        #expect(code == .ioError)
        #expect(capture.error.hasPrefix("sinchctl: standard output cannot be written"))
    }

    @Test func everyHandlerBelongsToACommand() {
        let names = Set(CommandTable.leaves.map { $0.path.joined(separator: " ") })
        #expect(CommandHandlers.all.names.subtracting(names) == [])
    }

    @Test func versionNamesTheBuild() async {
        #expect(await run("version") == RunResult(code: .ok, output: "sinchctl \(Version.current)\n", error: ""))
        let json = await run("--version", json: true)
        #expect(json.output.contains("\"version\":\"\(Version.current)\""))
        #expect(json.output.contains("\"build\":\"debug\""))
    }

    @Test func helpExplainsCommandsAndTopics() async {
        #expect(await run("help").output.hasPrefix("Usage: sinchctl [OPTIONS] COMMAND\n"))
        #expect(await run("help", "stop").output.hasPrefix("Usage: sinchctl terminate [OPTIONS]\n"))
        #expect(await run("jwt", "sign", "-h").output.hasPrefix("Usage: sinchctl jwt sign --user USER [OPTIONS]\n"))
        #expect(await run("help", "exit-codes").output.contains("124  timeout"))
        #expect(await run("help", "settings").output.contains("SINCHCTL_PROFILE"))
        let unknown = await run("help", "cal")
        #expect(unknown.code == .usage)
        #expect(unknown.error == "sinchctl: help: no command or topic 'cal'; did you mean 'call'?\n")
    }
}
