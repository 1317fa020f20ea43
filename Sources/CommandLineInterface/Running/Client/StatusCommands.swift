import Agent
import Configuration
import FoundationEssentials
import Primitives

/// `sinchctl status [--user USER]`
@Sendable func runStatus(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let paths = try parsed.paths(context)
    let channels: [AgentChannel]
    if let user = parsed.string("user") {
        channels = [try AgentChannel.connect(user: user, paths: paths)]
    } else {
        channels = AgentChannel.all(paths)
    }
    var clients: [AgentValue] = []
    for channel in channels {
        // One client that is stuck does not hide the others.
        guard !channel.isStuck else {
            context.output.warning(
                "the client for \(channel.user) did not answer; end it: sinchctl terminate --user \(channel.user)")
            continue
        }
        clients.append(try channel.request("status"))
    }
    context.output.agentResult(.object(["clients": .array(clients)])) {
        guard !clients.isEmpty else { return "no client is running; start one: sinchctl start --user NAME" }
        return clients.map { statusText($0, context.output.terminal) }.joined(separator: "\n\n")
    }
    return .ok
}

private func statusText(_ status: AgentValue, _ terminal: Terminal) -> String {
    let registration = status["registration"]
    let state = registration?["state"]?.string ?? "unknown"
    let media = status["media"]
    let signalling = status["signalling"]
    var rows: [(String, String)] = []
    var registered = state
    if let lifetime = registration?["lifetimeSeconds"]?.double, state == "registered" {
        registered += ", renewed within \(Int(lifetime)) s"
    }
    if let next = registration?["nextAttemptInSeconds"]?.double { registered += ", next try in \(Int(next)) s" }
    rows.append(("registration", registered))
    if let failure = registration?["lastFailure"]?.string { rows.append(("last failure", failure)) }
    if let remote = signalling?["remote"]?.string {
        rows.append(("signalling", "\(signalling?["transport"]?.string ?? "") to \(remote)"))
        if let tls = signalling?["tls"]?.string { rows.append(("encryption", tls)) }
        if let keepAlive = signalling?["keepAlive"]?.string { rows.append(("kept alive", "by \(keepAlive)")) }
    }
    rows.append(("process", status["pid"]?.integer.map { "\($0)" } ?? ""))
    rows.append(("media thread", media?["thread"]?.string ?? ""))
    rows.append(("media security", media?["security"]?.string ?? ""))
    rows.append(("devices", "\(media?["capture"]?.string ?? "") → \(media?["playback"]?.string ?? "")"))
    if media?["muted"]?.bool ?? false { rows.append(("microphone", "muted")) }
    if status["autoAnswer"]?.bool ?? false { rows.append(("answers", "by itself")) }
    var calls: [String] = []
    if case .array(let list)? = status["calls"] {
        calls = list.map { call in
            "\(call["direction"]?.string ?? "") \(call["remote"]?.string ?? ""), \(call["state"]?.string ?? ""), "
                + "id \(call["id"]?.string?.prefix(8) ?? "")"
        }
    }
    rows.append(("calls", calls.isEmpty ? "none" : calls.joined(separator: "; ")))
    let width = rows.map(\.0.count).max() ?? 0
    let title = terminal.styled(status["user"]?.string ?? "", .strong)
    return title
        + rows.map { "\n  " + $0.0 + String(repeating: " ", count: width - $0.0.count) + "  " + $0.1 }.joined()
}

/// `sinchctl calls`
@Sendable func runCalls(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let user = parsed.string("as")
    let channels =
        user == nil ? AgentChannel.all(try parsed.paths(context)) : [try parsed.channel(context)]
    if channels.isEmpty { _ = try parsed.channel(context) }
    let limit = parsed.integer("limit") ?? 20
    var calls: [AgentValue] = []
    for channel in channels {
        let result = try channel.request("calls")
        calls += list(result, "active", of: channel.user)
        if !parsed.flag("active") { calls += list(result, "ended", of: channel.user) }
    }
    // Times in UTC sort as text; the newest first.
    calls.sort { ($0["times"]?["started"]?.string ?? "") > ($1["times"]?["started"]?.string ?? "") }
    calls = Array(calls.prefix(limit))
    context.output.agentResult(.object(["calls": .array(calls)])) {
        guard !calls.isEmpty else { return "no calls" }
        var table = TextTable(["USER", "CALL", "DIRECTION", "REMOTE", "STATE", "DURATION", "END"])
        for call in calls {
            table.add([
                call["user"]?.string ?? "", String(call["id"]?.string?.prefix(8) ?? ""),
                call["direction"]?.string ?? "",
                call["remote"]?.string ?? "", call["state"]?.string ?? "",
                call["duration"]?.double.map { Numbers.seconds($0) } ?? "", call["end"]?["cause"]?.string ?? "",
            ])
        }
        return table.text(for: context.output.terminal)
    }
    return .ok
}

/// The calls under one member of the answer, each with whose it is.
private func list(_ result: AgentValue, _ key: String, of user: String) -> [AgentValue] {
    guard case .array(let calls)? = result[key] else { return [] }
    return calls.map { call in
        guard case .object(var members) = call else { return call }
        members["user"] = .string(user)
        return .object(members)
    }
}

/// `sinchctl events`
@Sendable func runEvents(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let channel = try parsed.channel(context)
    let follows = parsed.flag("follow")
    let result = try channel.request(
        "events", .object(["since": .integer(0), "follow": .bool(follows)]))
    let isJSON = context.output.isJSON || parsed.flag("jsonl")
    let oldest = parsed.duration("since").map { Timestamps.text(Date().addingTimeInterval(-$0.seconds)) }
    func show(_ event: AgentValue) {
        // RFC 3339 in UTC sorts as text.
        if let oldest, let time = event["time"]?.string, time < oldest { return }
        if isJSON {
            context.output.element(String(decoding: AgentProtocol.encode(event), as: UTF8.self))
        } else {
            context.output.line(eventText(event))
        }
    }
    if case .array(let events)? = result["events"] {
        for event in events { show(event) }
    }
    guard follows else { return .ok }
    while true {
        switch try channel.nextEvent(timeout: nil) {
        case .happened(let event):
            show(JSONConversion.value(event))
            // Whoever read them has gone.
            if context.output.isBroken { return .ok }
        case .nothing: continue
        case .end: return .ok
        }
    }
}

private func eventText(_ event: AgentValue) -> String {
    let time = event["time"]?.string ?? ""
    let call = event["call"].map { " \($0["direction"]?.string ?? "") \($0["remote"]?.string ?? "")" } ?? ""
    let id = event["call"]?["id"]?.string.map { " (\($0.prefix(8)))" } ?? ""
    let end = event["call"]?["end"]?["message"]?.string.map { ": \($0)" } ?? ""
    let message = event["message"]?.string.map { ": \($0)" } ?? ""
    return "\(time) \(event["event"]?.string ?? "")\(call)\(id)\(end)\(message)"
}

/// `sinchctl wait --for STATE`
@Sendable func runWait(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let condition = parsed.string("for") ?? "registered"
    let channel = try parsed.channel(context)
    let limit = parsed.duration("timeout") ?? .seconds(30)
    let met: AgentValue
    do throws(CommandFailure) {
        met = try channel.request("wait", .object(["for": .string(condition)]), timeout: limit)
    } catch {
        guard error.exit == .timeout else { throw error }
        throw CommandFailure(
            exit: .timeout, step: "waiting",
            message: "\(channel.user): not \(condition) within \(Numbers.seconds(limit.seconds))",
            hint: "see: sinchctl status --user \(channel.user)")
    }
    context.output.agentResult(met) { "\(channel.user): \(condition)" }
    return .ok
}
