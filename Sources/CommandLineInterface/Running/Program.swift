import Agent
import Configuration
import Glibc
import Network

/// The program: reads the command line, runs the command, and ends the process with the command's exit code.
///
/// The executable's `main.swift` holds this one call: closures formed there would belong to the main actor.
public func runProgram() -> Never {
    signal(SIGPIPE, SIG_IGN)  // a reader that has gone is a write error (74), not a death
    let arguments = Array(CommandLine.arguments.dropFirst())
    let environment = ProcessEnvironment.all
    if arguments.first == "agent-process" {
        SignalWatcher.blockAtStart(AgentProcess.signals)
        runUntilDone { await runAgentProcess() }
    }
    switch Invocation(arguments: arguments, environment: environment, handlers: .all) {
    case .finished(let code):
        exit(code.rawValue)
    case .waiting(let run):
        SignalWatcher.blockAtStart(AgentProcess.signals)
        runUntilDone(run)
    }
}

/// Runs on the concurrency runtime's threads, which end the process; this thread has nothing to do. Interrupts are
/// blocked by then in every thread, so that the command reads them as input.
private func runUntilDone(_ run: @escaping @Sendable () async -> ExitCode) -> Never {
    Task.detached { exit(await run().rawValue) }
    while true { pause() }
}

/// A command line on its way to an exit code.
enum Invocation: Sendable {
    /// The command is done, or never started.
    case finished(ExitCode)
    /// The command has to wait for something.
    case waiting(@Sendable () async -> ExitCode)

    /// Reads the arguments and runs the command, as far as that is possible without waiting.
    ///
    /// `output` is for tests; without one, results go to the process's standard streams.
    init(
        arguments: [String], environment: [String: String], handlers: CommandHandlers, output: Output? = nil,
        standardInput: Int32 = 0
    ) {
        let parsed: ParsedCommand
        do {
            parsed = try CommandParser.parse(arguments, environment: environment)
        } catch {
            // The arguments make no sense, but whether the answer should be JSON can be seen all the same.
            let isJSON = arguments.prefix { $0 != "--" }.contains("--json")
            let noColor = arguments.contains("--no-color")
            (output ?? Self.standardOutput(environment, isJSON: isJSON, noColor: noColor)).failure(error)
            self = .finished(error.exit)
            return
        }
        let output =
            output
            ?? Self.standardOutput(
                environment, isJSON: parsed.flag("json"), noColor: parsed.flag("no-color"),
                isQuiet: parsed.flag("quiet"), verbosity: parsed.count("verbose"))
        let context = CommandContext(
            environment: environment, output: output, standardInput: standardInput, now: { Int64(time(nil)) },
            currentDirectory: currentDirectory())
        switch handlers[parsed.name]?.resolved(parsed) {
        case .immediate(let run)?:
            do throws(CommandFailure) {
                self = .finished(Self.checked(try run(parsed, context), output))
            } catch {
                output.failure(error)
                self = .finished(error.exit)
            }
        case .asynchronous(let run)?:
            self = .waiting {
                do throws(CommandFailure) {
                    return Self.checked(try await run(parsed, context), output)
                } catch {
                    output.failure(error)
                    return error.exit
                }
            }
        case .chosen?, nil:
            output.failure(
                CommandFailure(exit: .internalError, message: "\(parsed.name): this build cannot run the command"))
            self = .finished(.internalError)
        }
    }

    /// A result that could not be written is no success.
    private static func checked(_ code: ExitCode, _ output: Output) -> ExitCode {
        guard code == .ok, output.isBroken else { return code }
        output.failure(
            CommandFailure(
                exit: .ioError, message: "standard output cannot be written",
                hint: "check the disk space, and whether the reader is still there"))
        return .ioError
    }

    private static func standardOutput(
        _ environment: [String: String], isJSON: Bool, noColor: Bool, isQuiet: Bool = false, verbosity: Int = 0
    ) -> Output {
        Output(
            terminal: Terminal(descriptor: 1, environment: environment, noColor: noColor),
            errorTerminal: Terminal(descriptor: 2, environment: environment, noColor: noColor),
            isJSON: isJSON, isQuiet: isQuiet, verbosity: verbosity)
    }
}

/// The working directory; `.` when it was removed.
func currentDirectory() -> String {
    guard let path = getcwd(nil, 0) else { return "." }
    defer { free(path) }
    return String(cString: path)
}
