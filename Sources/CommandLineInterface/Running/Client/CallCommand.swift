import Agent
import CSys
import Configuration
import FoundationEssentials
import Glibc
import Network

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
        deadline: deadline, isDetached: parsed.flag("detach"))
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
    var headers: [String: AgentValue] = [:]
    for header in parsed.strings("header") {
        let parts = header.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { continue }
        headers[String(parts[0])] = .string(String(parts[1].drop { $0 == " " }))
    }
    if !headers.isEmpty { parameters["headers"] = .object(headers) }
    return .object(parameters)
}

/// Devices and recording of a call; paths are absolute, since the agent has a working directory of its own.
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
    return parameters
}

/// One call as its command sees it: events until the end, a time limit, and the user's interrupts.
private struct CallConversation {
    let channel: AgentChannel
    let callId: String
    let signals: SignalInput
    let context: CommandContext
    let deadline: ContinuousClock.Instant?
    let isDetached: Bool

    /// How the waiting ended before the call did.
    private enum Interruption {
        case timeout
        case signal(Int32)
    }

    func run() throws(CommandFailure) -> ExitCode {
        var interruption: Interruption?
        while true {
            switch try channel.nextEvent(timeout: .zero) {
            case .end: throw channel.gone
            case .happened(let event):
                guard let call = event.call, call.id == callId else { continue }
                if event.event == "ended" { return try finish(call, interruption) }
                context.output.progress(progress(event.event, call))
                if isDetached, event.event == "established" { return detach(call) }
                continue
            case .nothing: break
            }
            let left = interruption == nil ? deadline.map { max(.zero, $0 - .now) } : nil
            switch signals.wait(alsoFor: channel.descriptor, timeout: left) {
            case .readable: continue
            case .signal(let number):
                // The first interrupt hangs up; the second ends the command at once.
                if interruption != nil { _exit(number == SIGINT ? 130 : 143) }
                interruption = .signal(number)
                _ = try? channel.request("hangup", .object(["call": .string(callId)]), timeout: .seconds(2))
            case .timedOut:
                interruption = .timeout
                _ = try? channel.request("hangup", .object(["call": .string(callId)]), timeout: .seconds(2))
            }
        }
    }

    private func progress(_ event: String, _ call: CallReport) -> String {
        let delay = call.delays[event].map { " after \(Numbers.milliseconds($0))" } ?? ""
        return switch event {
        case "initiating": "calling \(call.remote)"
        case "progressing": "the environment is working on the call\(delay)"
        case "ringing": "\(call.remote) is ringing\(delay)"
        case "answered": "\(call.remote) answered\(delay)"
        case "established": "both sides hear each other\(delay)"
        default: "\(event)\(delay)"
        }
    }

    private func detach(_ call: CallReport) -> ExitCode {
        context.output.agentResult(JSONConversion.value(call)) {
            "the call to \(call.remote) is established and goes on; end it: sinchctl hangup \(call.id.prefix(8))"
        }
        return .ok
    }

    private func finish(_ call: CallReport, _ interruption: Interruption?) throws(CommandFailure) -> ExitCode {
        switch interruption {
        case .timeout:
            throw CommandFailure(
                exit: .timeout, step: call.end?.step, message: "the call was not over in the time of --timeout")
        case .signal(let number):
            throw CommandFailure(
                exit: number == SIGINT ? .interrupted : .terminated, step: call.end?.step,
                message: "interrupted; the call was hung up")
        case nil: break
        }
        if let failure = call.failure {
            // The document says everything: the report of the call, and the error in it.
            var report = JSONConversion.value(call)
            if case .object(var members) = report {
                members["error"] = JSONConversion.value(failure)
                report = .object(members)
            }
            if context.output.isJSON { context.output.agentResult(report) { "" } }
            throw failure
        }
        context.output.agentResult(JSONConversion.value(call)) { CallSummary.text(call) }
        return .ok
    }
}
