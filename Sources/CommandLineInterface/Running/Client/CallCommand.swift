import Agent
import Configuration
import Glibc

/// `sinchctl call DESTINATION`
@Sendable func runCall(
    _ parsed: ParsedCommand, _ context: CommandContext
) throws(CommandFailure) -> ExitCode {
    let deadline = parsed.duration("timeout").map { ContinuousClock.now + $0 }
    let (channel, isOneShot) = try callChannel(parsed, context)
    // From here on an interrupt is something to read, not to die of. Before, there is nothing to put in order: a client
    // for one call ends with this process.
    let signals = SignalInput([SIGINT, SIGTERM])
    defer {
        if isOneShot { try? channel.terminate(within: .seconds(5)) }
    }
    // Asked for before the call: what happens at once would be missed otherwise. A call that this command stays with
    // brings its events along.
    if parsed.flag("detach") { _ = try channel.request("events") }
    let placed = try channel.request("call", callParameters(parsed, context), timeout: .seconds(10))
    let conversation = CallConversation(
        channel: channel, callId: placed["id"]?.string ?? "", signals: signals, context: context,
        deadline: deadline, isDetached: parsed.flag("detach"),
        live: parsed.flag("detach") ? nil : LiveLine(context.output))
    return try conversation.run()
}

/// The client that places the call: a running one, or one for this call alone.
private func callChannel(
    _ parsed: ParsedCommand, _ context: CommandContext
) throws(CommandFailure) -> (AgentChannel, isOneShot: Bool) {
    guard let user = parsed.string("user") else {
        return (try AgentChannel.connect(user: parsed.string("as"), paths: try parsed.paths(context)), false)
    }
    var options = try parsed.agentOptions(context, user: user)
    options.record = nil
    options.parent = getpid()
    let configuration = try AgentConfiguration.load(options)
    context.warnAboutSound(options, configuration)
    _ = try AgentLauncher.start(
        options, configuration: configuration, timeout: min(parsed.duration("timeout") ?? .seconds(30), .seconds(30)))
    return (try AgentChannel.connect(user: user, paths: configuration.paths), true)
}

private func callParameters(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> AgentValue {
    var parameters: [String: AgentValue] = [
        "destination": .string(parsed.argument("DESTINATION") ?? ""), "follow": .bool(!parsed.flag("detach")),
    ]
    parameters.merge(mediaParameters(parsed, context)) { $1 }
    parameters["hangUpAfterPlay"] = .bool(parsed.flag("hangup-after-play"))
    parameters["duration"] = parsed.duration("duration").map { .number($0.seconds) }
    parameters["ringTimeout"] = parsed.duration("ring-timeout").map { .number($0.seconds) }
    return .object(parameters)
}

/// Devices, recording and headers of a call; paths are absolute, since the agent has a working directory of its own.
func mediaParameters(_ parsed: ParsedCommand, _ context: CommandContext) -> [String: AgentValue] {
    var parameters: [String: AgentValue] = [:]
    if let path = parsed.string("play") {
        parameters["capture"] = .string("file:" + context.absolute(path: path))
    } else if parsed.isGiven("capture") {
        parameters["capture"] = parsed.string("capture").map { .string(context.absolute(device: $0)) }
    }
    if parsed.isGiven("playback") {
        parameters["playback"] = parsed.string("playback").map { .string(context.absolute(device: $0)) }
    }
    parameters["record"] = parsed.string("record").map { .string(context.absolute(path: $0)) }
    var headers: [String: AgentValue] = [:]
    for header in parsed.strings("header") {
        let parts = header.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { continue }
        headers[String(parts[0])] = .string(String(parts[1].drop { $0 == " " }))
    }
    if !headers.isEmpty { parameters["headers"] = .object(headers) }
    return parameters
}
