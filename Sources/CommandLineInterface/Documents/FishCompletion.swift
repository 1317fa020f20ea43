/// The completion script for fish.
enum FishCompletion {
    /// The script's text.
    static func script() -> String {
        var lines = [
            "# fish completion for sinchctl; made by \"make docs\" from the command table.", "",
            "complete -c sinchctl -f",
        ]
        for option in CommandTable.root.shownGlobalOptions { lines += completion(of: option, when: nil) }
        lines += entries(CommandTable.root, [])
        return lines.joined(separator: "\n") + "\n"
    }

    private static func entries(_ command: Command, _ path: [String]) -> [String] {
        var lines: [String] = []
        let here = condition(command, path)
        if !path.isEmpty { lines.append("") }
        for subcommand in command.subcommands {
            for name in [subcommand.name] + subcommand.aliases {
                lines.append("complete -c sinchctl -n \(quote(here)) -a \(name) -d \(quote(subcommand.summary))")
            }
        }
        for option in command.shownOptions { lines += completion(of: option, when: here) }
        for argument in command.arguments {
            if argument.kind == .file { lines.append("complete -c sinchctl -n \(quote(here)) -F") }
            var words = argument.kind.words
            if path == ["help"] { words = CommandTable.root.subcommands.map(\.name) + HelpText.topics }
            if !words.isEmpty {
                lines.append("complete -c sinchctl -n \(quote(here)) -a \(quote(words.joined(separator: " ")))")
            }
        }
        return lines + command.subcommands.flatMap { entries($0, path + [$0.name]) }
    }

    /// When a command's completions count: after its name, and before that of a subcommand.
    private static func condition(_ command: Command, _ path: [String]) -> String {
        guard let last = path.last, let own = CommandTable.command(at: path) else { return "__fish_use_subcommand" }
        var conditions = path.dropLast().map { "__fish_seen_subcommand_from \($0)" }
        conditions.append("__fish_seen_subcommand_from \(([last] + own.command.aliases).joined(separator: " "))")
        if !command.subcommands.isEmpty {
            let names = command.subcommands.map(\.name).joined(separator: " ")
            conditions.append("not __fish_seen_subcommand_from \(names)")
        }
        return conditions.joined(separator: "; and ")
    }

    private static func completion(of option: CommandOption, when condition: String?) -> [String] {
        var words = ["complete -c sinchctl"]
        if let condition { words.append("-n \(quote(condition))") }
        if let short = option.short { words.append("-s \(short)") }
        words += option.longNames.map { "-l \($0)" }
        if option.kind != .flag {
            words.append(option.kind == .file ? "-r -F" : "-x")
            if !option.kind.words.isEmpty { words.append("-a \(quote(option.kind.words.joined(separator: " ")))") }
        }
        words.append("-d \(quote(option.summary))")
        return [words.joined(separator: " ")]
    }

    private static func quote(_ text: String) -> String {
        "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
    }
}
