import Configuration

/// The manual page man/sinchctl.1, in roff with the man macros.
enum ManualPage {
    /// The page's source. It carries no date, so that the same table always makes the same page.
    static func text() -> String {
        let root = CommandTable.root
        var lines = [
            #".\" Made by "make docs" from the command table; changes here are lost."#,
            ".TH SINCHCTL 1 \"\" \"sinchctl \(Version.current)\" \"User Commands\"",
            ".SH NAME", "sinchctl \\- \(escape(root.summary))",
            ".SH SYNOPSIS", ".B sinchctl", ".RI [ OPTIONS ] \" COMMAND \" [ ARGUMENTS ]",
            ".SH DESCRIPTION",
        ]
        lines += paragraphs(root.discussion)
        lines.append(".SH COMMANDS")
        for group in CommandGroup.allCases {
            for command in root.subcommands where command.group == group { lines += entry(command, [command.name]) }
        }
        lines.append(".SH OPTIONS")
        lines.append("Every command takes these options, before or after its name.")
        for option in root.shownGlobalOptions { lines += definition(of: option) }
        lines.append(".SH AUDIO DEVICES")
        lines += definitions(Topics.devices)
        lines.append(".SH EXIT STATUS")
        lines += paragraphs(Topics.exitCodes)
        for code in ExitCode.allCases {
            lines += [".TP", "\\fB\(code.rawValue)\\fR (\(code.name))", escapeLine(code.meaning)]
        }
        lines.append(".SH CONFIGURATION")
        lines += paragraphs(Topics.settings)
        lines += definitions(Topics.profileSettings)
        lines.append(".SH ENVIRONMENT")
        lines += definitions(Topics.variables)
        lines.append(".SH FILES")
        lines += definitions(Topics.files)
        lines.append(".SH EXAMPLES")
        for example in root.examples { lines += self.example(example) }
        lines += [".SH SEE ALSO", ".BR aplay (1),", ".BR systemd (1)"]
        return lines.joined(separator: "\n") + "\n"
    }

    private static func entry(_ command: Command, _ path: [String]) -> [String] {
        guard command.subcommands.isEmpty else {
            return [".SS \(escape(path.joined(separator: " ")))"]
                + paragraphs(sentence(command.summary) + "\n\n" + command.discussion)
                + command.subcommands.flatMap { entry($0, path + [$0.name]) }
        }
        var usage = ["\\fBsinchctl \(escape(path.joined(separator: " ")))\\fR"]
        usage += command.options.filter(\.isRequired).map {
            "\\fB\\-\\-\(escape($0.long))\\fR \\fI\(escape($0.kind.valueName ?? ""))\\fR"
        }
        if !command.shownOptions.isEmpty { usage.append("[\\fIOPTIONS\\fR]") }
        usage += command.arguments.map { "\\fI\(escape($0.usage))\\fR" }
        var lines = [".SS \(escape(path.joined(separator: " ")))", usage.joined(separator: " "), ".PP"]
        lines += paragraphs(sentence(command.summary) + "\n\n" + command.discussion)
        if !command.aliases.isEmpty {
            lines += [".PP", "Other name: \(command.aliases.map { "\\fB\(escape($0))\\fR" }.joined(separator: ", "))"]
        }
        for argument in command.arguments {
            lines += [".TP", "\\fI\(escape(argument.usage))\\fR", escapeLine(argument.summary)]
        }
        for option in command.shownOptions { lines += definition(of: option) }
        for example in command.examples { lines += self.example(example) }
        return lines
    }

    private static func definition(of option: CommandOption) -> [String] {
        let names = (option.short.map { ["-\($0)"] } ?? []) + option.longNames.map { "--\($0)" }
        let bold = names.map { "\\fB\(escape($0))\\fR" }.joined(separator: ", ")
        let value = option.kind.valueName.map { " \\fI\(escape($0))\\fR" } ?? ""
        return [".TP", bold + value, escapeLine(option.explanation)]
    }

    private static func definitions(_ entries: [(name: String, text: String)]) -> [String] {
        entries.flatMap { [".TP", "\\fB\(escape($0.name))\\fR", escapeLine($0.text)] }
    }

    private static func example(_ example: CommandExample) -> [String] {
        [
            ".PP", "Example: \(escape(example.summary)).", ".PP", ".RS", ".nf", escapeLine(example.line), ".fi",
            ".RE",
        ]
    }

    private static func paragraphs(_ text: String) -> [String] {
        Array(TextLayout.paragraphs(text).map { [escapeLine($0)] }.joined(separator: [".PP"]))
    }

    private static func sentence(_ text: String) -> String {
        text.prefix(1).uppercased() + text.dropFirst() + "."
    }

    /// A line that must not be taken for a request: those begin with a full stop or an apostrophe.
    private static func escapeLine(_ text: String) -> String {
        let escaped = escape(text)
        return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&\(escaped)" : escaped
    }

    /// Characters that mean something to roff. A hyphen is written as a minus sign, so that options can be copied.
    private static func escape(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "'": result += "\\(aq"
            case "^": result += "\\(ha"
            case "~": result += "\\(ti"
            case "`": result += "\\(ga"
            default: result.append(character)
            }
        }
        return result
    }
}
