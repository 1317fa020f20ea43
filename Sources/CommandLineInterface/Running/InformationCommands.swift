import Configuration

/// `sinchctl help [COMMAND...]`
@Sendable func runHelp(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    if parsed.flag("man") {
        context.output.document(ManualPage.text())
        return .ok
    }
    if parsed.flag("exit-code-table") {
        context.output.document(ExitCodeDocument.text())
        return .ok
    }
    let words = parsed.arguments("COMMAND")
    let width = min(context.output.terminal.width, 100)
    let text: String
    if let topic = words.first, words.count == 1, let explained = HelpText.topic(topic, width: width) {
        text = explained
    } else if let found = CommandTable.command(at: words) {
        text = HelpText.text(for: found.command, path: found.path, width: width)
    } else {
        let known = CommandTable.root.subcommands.map(\.name) + HelpText.topics
        let suggestion = words.first.flatMap { Suggestion.nearest(to: $0, among: known) }
        throw CommandFailure(
            exit: .usage, message: "help: no command or topic '\(words.joined(separator: " "))'",
            hint: suggestion.map { "did you mean '\($0)'?" } ?? "see 'sinchctl help'")
    }
    context.output.result(["help": .string(text)], text: text)
    return .ok
}

/// `sinchctl version`
@Sendable func runVersion(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    context.output.result(
        [
            "name": "sinchctl", "version": .string(Version.current), "build": .string(Version.build),
            "platform": .string(Version.platform), "license": "Apache-2.0",
        ],
        text: "sinchctl \(Version.current)")
    return .ok
}

/// `sinchctl completion SHELL`
@Sendable func runCompletion(_ parsed: ParsedCommand, _ context: CommandContext) throws(CommandFailure) -> ExitCode {
    let shell = parsed.argument("SHELL") ?? ""
    let script =
        switch shell {
        case "bash": BashCompletion.script()
        case "zsh": ZshCompletion.script()
        default: FishCompletion.script()
        }
    context.output.result(["shell": .string(shell), "script": .string(script)], text: script)
    return .ok
}
