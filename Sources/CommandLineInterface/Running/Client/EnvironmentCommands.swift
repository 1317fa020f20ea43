import Agent
import Configuration
import Glibc
import Network
import Primitives

/// `sinchctl environment run`
@Sendable func runEnvironment(
    _ parsed: ParsedCommand, _ context: CommandContext
) async throws(CommandFailure) -> ExitCode {
    let configuration = try parsed.configuration(context)
    let pipe = ReadinessPipe.takeFromEnvironment()
    var options = EnvironmentProcess.Options()
    options.host = parsed.string("bind") ?? "127.0.0.1"
    options.port = UInt16(clamping: parsed.integer("port") ?? 0)
    let output = context.output
    if parsed.flag("verbose") { options.log = { output.progress($0) } }
    let result = await EnvironmentProcess.run(options: options, configuration: configuration, pipe: pipe) { file in
        let address = TransportAddress(host: file.host, port: file.port)
        output.progress("the embedded environment listens on \(address) (UDP and TCP); Ctrl-C ends it")
        if !address.isLoopback {
            output.warning("the environment can be reached from the network, and its media is not encrypted")
        }
    }
    return try result.get()
}

/// `sinchctl environment start`
@Sendable func runEnvironmentStart(
    _ parsed: ParsedCommand, _ context: CommandContext
) throws(CommandFailure) -> ExitCode {
    let paths = try parsed.paths(context)
    let file = try AgentLauncher.ensureEnvironment(
        paths: paths, host: parsed.isGiven("bind") ? parsed.string("bind") : nil,
        port: parsed.isGiven("port") ? parsed.integer("port") : nil)
    context.output.agentResult(describe(file)) {
        "the embedded environment runs on \(TransportAddress(host: file.host, port: file.port))"
    }
    return .ok
}

/// `sinchctl environment status`
@Sendable func runEnvironmentStatus(
    _ parsed: ParsedCommand, _ context: CommandContext
) throws(CommandFailure) -> ExitCode {
    let file = try runningEnvironment(parsed, context)
    context.output.agentResult(describe(file)) {
        """
        the embedded environment runs
          address      \(TransportAddress(host: file.host, port: file.port)) (UDP and TCP)
          domain       \(file.realm)
          application  \(file.applicationKey)
          process      \(file.pid)
        """
    }
    return .ok
}

/// `sinchctl environment stop`
@Sendable func runEnvironmentStop(
    _ parsed: ParsedCommand, _ context: CommandContext
) throws(CommandFailure) -> ExitCode {
    let file = try runningEnvironment(parsed, context)
    guard file.process.terminate(within: .seconds(5)) else {
        throw CommandFailure(
            exit: .timeout, message: "the embedded environment (process \(file.pid)) did not end within 5 s",
            hint: "end it by force: kill -9 \(file.pid)")
    }
    context.output.agentResult(.object(["stopped": .bool(true)])) { "the embedded environment has ended" }
    return .ok
}

private func runningEnvironment(
    _ parsed: ParsedCommand, _ context: CommandContext
) throws(CommandFailure) -> EnvironmentFile {
    let running: EnvironmentFile?
    do {
        running = try EnvironmentFile.running(try parsed.paths(context).environmentFile)
    } catch let error as ConfigurationError {
        throw error.commandFailure
    } catch {
        throw (error as? CommandFailure) ?? CommandFailure(exit: .internalError, message: "\(error)")
    }
    guard let running else {
        throw CommandFailure(
            exit: .unreachable, message: "the embedded environment is not running",
            hint: "it is started when needed, or by: sinchctl environment start")
    }
    return running
}

/// What a script may know of it: everything but the secret.
private func describe(_ file: EnvironmentFile) -> AgentValue {
    .object([
        "running": .bool(true), "host": .string(file.host), "port": .integer(Int64(file.port)),
        "realm": .string(file.realm), "application": .string(file.applicationKey), "pid": .integer(Int64(file.pid)),
        "transports": .array(file.transports.map { .string($0.rawValue) }), "version": .string(file.version),
    ])
}
