import Agent
import Configuration

/// `sinchctl hold [CALL]`
@Sendable func runHold(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let result = try parsed.conversation("hold", parsed.callParameter, context)
    context.output.agentResult(result) { "on hold; go on with: sinchctl resume" }
    return .ok
}

/// `sinchctl resume [CALL]`
@Sendable func runResume(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let result = try parsed.conversation("resume", parsed.callParameter, context)
    context.output.agentResult(result) { "the call goes on" }
    return .ok
}

/// `sinchctl dtmf KEYS [CALL]`
@Sendable func runDTMF(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let keys = parsed.argument("KEYS") ?? ""
    var parameters = parsed.callParameter
    parameters["keys"] = .string(keys)
    let result = try parsed.conversation("dtmf", parameters, context)
    context.output.agentResult(result) { "sent \(keys)" }
    return .ok
}

/// `sinchctl transfer [CALL] --to DESTINATION | --to-call CALL`
@Sendable func runTransfer(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    var parameters = parsed.callParameter
    parameters["destination"] = parsed.string("to").map { .string($0) }
    parameters["toCall"] = parsed.string("to-call").map { .string($0) }
    let result = try parsed.conversation("transfer", parameters, context)
    context.output.agentResult(result) {
        "\(result["remote"]?.string ?? "the other side") is transferred; the call has ended here"
    }
    return .ok
}

extension ParsedCommand {
    /// Has a running client do something with a call, and waits until it is done.
    fileprivate func conversation(
        _ method: String, _ parameters: [String: AgentValue], _ context: CommandContext
    ) throws(CommandFailure) -> AgentValue {
        let channel = try channel(context)
        let limit = duration("timeout") ?? .seconds(30)
        do throws(CommandFailure) {
            return try channel.request(method, .object(parameters), timeout: limit)
        } catch {
            guard error.exit == .timeout else { throw error }
            throw CommandFailure(
                exit: .timeout, step: method, message: "\(method): not done within \(Numbers.seconds(limit.seconds))",
                hint: "see: sinchctl calls --as \(channel.user)")
        }
    }
}
