import Agent
import Audio
import Configuration

/// JSON as the agent's protocol has it.
typealias AgentValue = JSONValue

extension ParsedCommand {
    /// What a background client is to be, from the options of `start`, `register` and `call --user`.
    func agentOptions(_ context: CommandContext, user: String) throws(CommandFailure) -> AgentOptions {
        var options = AgentOptions(user: user)
        options.profile = namedProfile
        for (key, value) in overrides(context).values { options.overrides[key.flag] = value }
        options.configFile = string("config").map { context.absolute(path: $0) }
        if has("auto-answer") { options.autoAnswer = flag("auto-answer") }
        if has("accept-transfers") { options.acceptTransfers = flag("accept-transfers") }
        if has("display-name") { options.displayName = string("display-name") }
        if has("record") { options.record = string("record").map { context.absolute(path: $0) } }
        if has("hangup-after-play") { options.hangUpAfterPlay = flag("hangup-after-play") }
        if has("max-calls") { options.maximumCalls = integer("max-calls") }
        if let path = string("token-file"), path != "-" {
            options.tokenFile = context.absolute(path: path)
            let file = context.absolute(path: path)
            _ = try TokenInput.compact(TokenInput.readPrivate(path: file), from: "'\(path)'")
        } else if string("token-file") == "-" || integer("token-fd") != nil {
            options.token = try TokenInput.compact(token(context), from: "what was given as the token")
        }
        return options
    }

    /// Whether this command has an option of that name at all.
    func has(_ name: String) -> Bool {
        command.allOptions.contains { $0.long == name }
    }

    /// The paths of this user's files and sockets.
    func paths(_ context: CommandContext) throws(CommandFailure) -> Paths {
        do {
            return try Paths(environment: variables(context))
        } catch {
            throw error.commandFailure
        }
    }
}
