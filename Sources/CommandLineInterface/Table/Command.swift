import Configuration

/// One entry of the command table: what the parser, `--help`, the manual page and the completions say about a
/// command all comes from here.
struct Command: Sendable {
    /// What the user types.
    var name: String
    /// Other names that mean the same.
    var aliases: [String] = []
    /// The heading under which the overview lists the command.
    var group: CommandGroup = .tools
    /// One line, without a full stop.
    var summary: String
    /// Paragraphs separated by an empty line; lines are wrapped where they are shown.
    var discussion = ""
    /// Positional arguments, in order.
    var arguments: [CommandArgument] = []
    /// Options of this command only; one that has the name of a global option takes its place.
    var options: [CommandOption] = []
    /// Lines that can be typed as they are.
    var examples: [CommandExample] = []
    /// The exit codes that have a special meaning here, beside 0, 64, 70 and 74 that every command has.
    var exitCodes: [ExitCode] = []
    /// Commands below this one; a command that has some does nothing by itself.
    var subcommands: [Command] = []
}

/// The headings of the command overview, in the order shown.
enum CommandGroup: String, CaseIterable, Sendable {
    case client = "Clients"
    case calls = "Calls"
    case observe = "Watching"
    case tools = "Settings and tools"
}

/// A positional argument.
struct CommandArgument: Sendable {
    /// Name in capitals, as shown; also the key in `ParsedCommand`.
    var name: String
    /// What may be given.
    var kind: ValueKind
    /// One line, without a full stop.
    var summary: String
    /// Whether the command works without it.
    var isOptional = false
    /// Whether all remaining arguments belong to it; only for the last one.
    var isRepeatable = false

    /// `NAME`, `[NAME]`, `NAME...` or `[NAME...]`.
    var usage: String {
        let text = isRepeatable ? "\(name)..." : name
        return isOptional ? "[\(text)]" : text
    }
}

/// An option: `--long`, perhaps `-s`, perhaps with a value.
struct CommandOption: Sendable {
    /// The name without dashes; also the key in `ParsedCommand`.
    var long: String
    /// The letter of the short form.
    var short: Character?
    /// Other long names that mean the same.
    var aliases: [String] = []
    /// What may be given.
    var kind: ValueKind
    /// One line, without a full stop.
    var summary: String
    /// The value that counts when nothing is given, as the user would type it.
    var defaultValue: String?
    /// Whether the command refuses to run without it.
    var isRequired = false
    /// Whether it may be given more than once; other options refuse a second value.
    var isRepeatable = false
    /// The environment variable that is read when the option is not given.
    var variable: String?
    /// The key of the configuration file's profile that is read when neither is given.
    var profileKey: String?
    /// Long names of options that cannot be given together with this one.
    var conflicts: [String] = []
    /// Whether help, manual and completions leave it out.
    var isHidden = false
    /// Set on options that exist only to be refused: what to do instead.
    var refusal: String?

    /// A flag: an option without a value.
    static func flag(
        _ long: String, short: Character? = nil, _ summary: String, conflicts: [String] = [], isHidden: Bool = false
    ) -> CommandOption {
        CommandOption(
            long: long, short: short, kind: .flag, summary: summary, conflicts: conflicts, isHidden: isHidden)
    }

    /// An option that is recognised only to explain why it is not accepted.
    static func refused(_ long: String, because reason: String) -> CommandOption {
        CommandOption(long: long, kind: .text("VALUE"), summary: "not accepted", isHidden: true, refusal: reason)
    }

    /// All long names, the main one first.
    var longNames: [String] { [long] + aliases }

    /// `-u, --user USER` for help and manual.
    var usage: String {
        let value = kind.valueName.map { " \($0)" } ?? ""
        let names = (short.map { ["-\($0)"] } ?? []) + longNames.map { "--\($0)" }
        return names.joined(separator: ", ") + value
    }
}

/// A line to type, and what it is for.
struct CommandExample: Sendable {
    /// What the line does.
    var summary: String
    /// The line, starting with `sinchctl`.
    var line: String

    init(_ line: String, _ summary: String) {
        self.line = line
        self.summary = summary
    }
}

extension Command {
    /// The subcommand with this name or alias; no abbreviations, so that a new command never changes an old script.
    func subcommand(named name: String) -> Command? {
        subcommands.first { $0.name == name || $0.aliases.contains(name) }
    }

    /// The command's own options, then the global ones that it does not replace.
    var allOptions: [CommandOption] {
        let own = Set(options.map(\.long))
        return options + CommandTable.globalOptions.filter { !own.contains($0.long) }
    }

    /// `sinchctl call [OPTIONS] DESTINATION`.
    func usage(path: [String]) -> String {
        var words = ["sinchctl"] + path
        if subcommands.isEmpty {
            words += options.filter(\.isRequired).map { "--\($0.long) \($0.kind.valueName ?? "")" }
            words.append("[OPTIONS]")
            words += arguments.map(\.usage)
        } else {
            words += ["[OPTIONS]", "COMMAND"]
        }
        return words.joined(separator: " ")
    }
}
