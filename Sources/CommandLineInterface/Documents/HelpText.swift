import Configuration

/// What `--help` and `sinchctl help` print.
enum HelpText {
    private static let column = 28

    /// The help of a command, or of the program when the path is empty.
    static func text(for command: Command, path: [String], width: Int = 80) -> String {
        var lines = ["Usage: \(command.usage(path: path))", ""]
        let opening = command.summary.prefix(1).uppercased() + command.summary.dropFirst() + "."
        lines += TextLayout.wrap(path.isEmpty ? "sinchctl is \(command.summary)." : opening, width: width)
        if !command.discussion.isEmpty { lines += [""] + TextLayout.wrap(command.discussion, width: width) }
        if !command.aliases.isEmpty { lines += ["", "Other name: \(command.aliases.joined(separator: ", "))"] }
        if path.isEmpty { lines += overview(width) } else { lines += commands(of: command, width) }
        lines += section("Arguments", command.arguments.map { ($0.usage, explanation(of: $0)) }, width)
        lines += section("Options", command.shownOptions.map { (term(of: $0), $0.explanation) }, width)
        let globals = command.shownGlobalOptions
        if path.isEmpty {
            lines += section("Options of every command", globals.map { (term(of: $0), $0.explanation) }, width)
        }
        if !command.examples.isEmpty {
            lines += ["", "Examples:"]
            for example in command.examples { lines += ["  # \(example.summary)", "  \(example.line)"] }
        }
        if !path.isEmpty, command.subcommands.isEmpty {
            let codes = command.shownExitCodes.map { "\($0.rawValue) \($0.name)" }.joined(separator: ", ")
            lines += ["", "Exit codes:"] + TextLayout.wrap(codes, width: width - 2).map { "  \($0)" }
        }
        lines += [""] + TextLayout.wrap(closing(of: command, path: path), width: width)
        return lines.joined(separator: "\n") + "\n"
    }

    /// Names that `sinchctl help` explains beside commands.
    static let topics = ["exit-codes", "settings"]

    /// The text of a topic; nil when there is none of that name.
    static func topic(_ name: String, width: Int = 80) -> String? {
        var lines: [String]
        switch name {
        case "exit-codes":
            lines = TextLayout.wrap(Topics.exitCodes, width: width) + [""]
            lines += TextLayout.definitions(
                ExitCode.allCases.map { ("\(padded($0.rawValue))  \($0.name)", $0.meaning) }, column: column,
                width: width)
        case "settings":
            lines = TextLayout.wrap(Topics.settings, width: width) + ["", "Settings of a profile:"]
            lines += TextLayout.definitions(
                Topics.profileSettings.map { ($0.name, $0.text) }, column: column, width: width)
            lines += ["", "Other environment variables:"]
            lines += TextLayout.definitions(
                Topics.variables.map { ($0.name, $0.text) }, column: column, width: width)
            lines += ["", "Files:"]
            lines += Topics.files.flatMap { TextLayout.definitions([($0.name, $0.text)], column: 8, width: width) }
        default:
            return nil
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func overview(_ width: Int) -> [String] {
        CommandGroup.allCases.flatMap { group in
            section(
                group.rawValue,
                CommandTable.root.subcommands.filter { $0.group == group }
                    .map { (([$0.name] + $0.aliases).joined(separator: ", "), $0.summary) }, width)
        }
    }

    private static func commands(of command: Command, _ width: Int) -> [String] {
        section("Commands", command.subcommands.map { ($0.name, $0.summary) }, width)
    }

    private static func section(_ title: String, _ entries: [(String, String)], _ width: Int) -> [String] {
        guard !entries.isEmpty else { return [] }
        return ["", "\(title):"]
            + TextLayout.definitions(entries.map { (term: $0.0, text: $0.1) }, column: column, width: width)
    }

    /// Long options stand below each other whether they have a short form or not.
    private static func term(of option: CommandOption) -> String {
        option.short == nil ? "    \(option.usage)" : option.usage
    }

    private static func explanation(of argument: CommandArgument) -> String {
        argument.summary
    }

    private static func closing(of command: Command, path: [String]) -> String {
        if path.isEmpty {
            return "See 'sinchctl help COMMAND' for a command, 'sinchctl help exit-codes', 'sinchctl help settings', "
                + "and man sinchctl."
        }
        if !command.subcommands.isEmpty {
            return "See 'sinchctl help \(path.joined(separator: " ")) COMMAND' for a command's options."
        }
        let names = command.shownGlobalOptions.map { "--\($0.long)" }.joined(separator: ", ")
        return "Every command also takes \(names): see 'sinchctl help'."
    }

    private static func padded(_ code: Int32) -> String {
        String(repeating: " ", count: max(0, 3 - String(code).count)) + String(code)
    }
}
