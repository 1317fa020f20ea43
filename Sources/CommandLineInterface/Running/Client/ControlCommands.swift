import Agent
import Configuration

extension ParsedCommand {
    /// The running client that the command means.
    func channel(_ context: CommandContext) throws(CommandFailure) -> AgentChannel {
        let user = has("as") ? string("as") : string("user")
        return try AgentChannel.connect(user: user, paths: paths(context))
    }

    /// The call that the command means, for the agent's methods.
    var callParameter: [String: AgentValue] {
        argument("CALL").map { ["call": .string($0)] } ?? [:]
    }
}

/// `sinchctl answer [CALL]`
@Sendable func runAnswer(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let signals = SignalInput([])
    let channel = try parsed.channel(context)
    _ = try channel.request("events")
    var parameters = mediaParameters(parsed, context)
    parameters.merge(parsed.callParameter) { $1 }
    let call = try channel.request("answer", .object(parameters))
    let id = call["id"]?.string ?? ""
    while true {
        switch try channel.nextEvent(timeout: .zero) {
        case .nothing: _ = signals.wait(alsoFor: [channel.descriptor], timeout: nil)
        case .end: throw channel.gone
        case .happened(let event):
            guard let report = event.call, report.id == id else { continue }
            if event.event == "established" {
                context.output.agentResult(JSONConversion.value(report)) {
                    "talking to \(report.remote); end the call: sinchctl hangup --as \(channel.user)"
                }
                return .ok
            }
            if event.event == "ended" {
                throw report.failure
                    ?? CommandFailure(
                        exit: .canceled, step: "answering", message: "the call ended before it was established")
            }
        }
    }
}

/// `sinchctl hangup [CALL]`
@Sendable func runHangup(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    var parameters = parsed.callParameter
    if parsed.flag("all") { parameters["all"] = .bool(true) }
    if parsed.flag("busy") { parameters["reason"] = .string("busy") }
    let channel = try parsed.channel(context)
    _ = try channel.request("events")
    let result = try channel.request("hangup", .object(parameters))
    var pending: Set<String> = []
    if case .array(let calls)? = result["calls"] { pending = Set(calls.compactMap(\.string)) }
    let count = pending.count
    // Returns when the calls are over: recordings are complete, statistics final.
    while !pending.isEmpty {
        switch try channel.nextEvent(timeout: .seconds(5)) {
        case .happened(let event):
            if event.event == "ended", let id = event.call?.id { pending.remove(id) }
        case .end: pending = []
        case .nothing:
            throw CommandFailure(
                exit: .timeout, step: "hangingUp", message: "the call of \(channel.user) did not end within 5 s",
                hint: "see: sinchctl calls --as \(channel.user)")
        }
    }
    context.output.agentResult(result) { count == 1 ? "the call has ended" : "\(count) calls have ended" }
    return .ok
}

/// `sinchctl mute [CALL]`
@Sendable func runMute(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let result = try parsed.channel(context).request("mute", .object(parsed.callParameter))
    context.output.agentResult(result) { "muted: the other side hears silence" }
    return .ok
}

/// `sinchctl unmute [CALL]`
@Sendable func runUnmute(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let result = try parsed.channel(context).request("unmute", .object(parsed.callParameter))
    context.output.agentResult(result) { "unmuted: the other side hears you" }
    return .ok
}

/// `sinchctl terminate --user USER | --all`
@Sendable func runTerminate(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let paths = try parsed.paths(context)
    let channels: [AgentChannel]
    if parsed.flag("all") {
        channels = AgentChannel.all(paths)
    } else {
        channels = [try parsed.channel(context)]
    }
    var ended: [AgentValue] = []
    for channel in channels {
        try channel.terminate(within: parsed.duration("timeout") ?? .seconds(10))
        ended.append(.string(channel.user))
    }
    context.output.agentResult(.object(["terminated": .array(ended)])) {
        ended.isEmpty
            ? "no client is running" : ended.compactMap(\.string).map { "\($0) has ended" }.joined(separator: "\n")
    }
    return .ok
}
