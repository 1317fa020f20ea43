import Configuration

/// Turns arguments into a `ParsedCommand` by the rules of GNU programs: `--name=value`, `--name value`, `-n value`,
/// `-nvalue`, `-vvq`, options before and after arguments, `--` ends the options. Names are never abbreviated.
struct CommandParser {
    private let environment: [String: String]
    private var rest: ArraySlice<String>
    private var command = CommandTable.root
    private var path: [String] = []
    private var flags: [String: Int] = [:]
    private var texts: [String: [String]] = [:]
    private var words: [String] = []
    private var optionsEnded = false

    private init(_ arguments: [String], environment: [String: String]) {
        self.environment = environment
        rest = arguments[...]
    }

    /// Reads the arguments after the program's name.
    ///
    /// `--help` and `--version` become the commands `help` and `version`, whatever else is missing.
    ///
    /// - Throws: a failure with exit code 64 that says what is wrong and what was probably meant, or 78 when the value
    ///   of an environment variable is wrong.
    static func parse(
        _ arguments: [String], environment: [String: String] = [:]
    ) throws(CommandFailure) -> ParsedCommand {
        var parser = CommandParser(arguments, environment: environment)
        return try parser.parse()
    }

    private mutating func parse() throws(CommandFailure) -> ParsedCommand {
        while let argument = rest.popFirst() {
            if optionsEnded || argument == "-" || !argument.hasPrefix("-") {
                try take(word: argument)
            } else if argument == "--" {
                optionsEnded = true
            } else if argument.hasPrefix("--") {
                try take(long: argument.dropFirst(2))
            } else {
                try take(shorts: argument.dropFirst())
            }
        }
        if let instead = informationCommand() { return instead }
        guard command.subcommands.isEmpty else { throw missingCommand() }
        return try finished()
    }

    // MARK: Words

    private mutating func take(word: String) throws(CommandFailure) {
        guard !command.subcommands.isEmpty else {
            words.append(word)
            return
        }
        guard let next = command.subcommand(named: word) else {
            let known = command.subcommands.flatMap { [$0.name] + $0.aliases }
            throw usage(
                "unknown command '\(printable(word))'",
                suggestion: Suggestion.nearest(to: word, among: known).map { (path + [$0]).joined(separator: " ") })
        }
        command = next
        path.append(next.name)
    }

    // MARK: Options

    private mutating func take(long text: Substring) throws(CommandFailure) {
        let name = String(text.prefix { $0 != "=" })
        let attached = name.count < text.count ? String(text.dropFirst(name.count + 1)) : nil
        guard let option = command.allOptions.first(where: { $0.longNames.contains(name) }) else {
            let known = command.allOptions.filter { !$0.isHidden }.flatMap(\.longNames)
            throw usage(
                "unknown option '--\(printable(name))'",
                suggestion: Suggestion.nearest(to: name, among: known).map { "--\($0)" })
        }
        try take(option, shown: "--\(name)", attached: attached)
    }

    private mutating func take(shorts text: Substring) throws(CommandFailure) {
        var letters = text
        while let letter = letters.popFirst() {
            guard let option = command.allOptions.first(where: { $0.short == letter }) else {
                throw usage("unknown option '-\(letter)'")
            }
            if option.kind == .flag {
                try take(option, shown: "-\(letter)", attached: nil)
            } else {
                let attached = letters.isEmpty ? nil : String(letters)
                return try take(option, shown: "-\(letter)", attached: attached)
            }
        }
    }

    private mutating func take(_ option: CommandOption, shown: String, attached: String?) throws(CommandFailure) {
        if let refusal = option.refusal { throw usage("option '\(shown)' is not accepted: \(refusal)") }
        if option.kind == .flag {
            guard attached == nil else { throw usage("option '\(shown)' takes no value") }
            flags[option.long, default: 0] += 1
            return
        }
        let valueName = option.kind.valueName ?? "VALUE"
        guard let value = attached ?? rest.popFirst() else {
            throw usage("option '\(shown)' needs a value: \(shown) \(valueName)")
        }
        // `--play --record x` is a forgotten file name, not a file that is called --record.
        if attached == nil, value.hasPrefix("--"),
            value == "--" || command.allOptions.contains(where: { $0.longNames.contains(String(value.dropFirst(2))) })
        {
            throw usage("option '\(shown)' needs a value: \(shown) \(valueName)")
        }
        if !option.isRepeatable, texts[option.long] != nil {
            throw usage("option '--\(option.long)' is given more than once")
        }
        texts[option.long, default: []].append(value)
    }

    // MARK: The end

    /// `--help` and `--version` win over everything that may be missing.
    private func informationCommand() -> ParsedCommand? {
        func instead(_ name: String) -> ParsedCommand? {
            guard let found = CommandTable.command(at: [name]) else { return nil }
            var parsed = ParsedCommand(command: found.command, path: found.path, flags: flags)
            parsed.flags["help"] = nil
            parsed.flags["version"] = nil
            return parsed
        }
        if flags["help"] != nil {
            var help = instead("help")
            help?.positional["COMMAND"] = path.map { .text($0) }
            return help
        }
        return flags["version"] == nil ? nil : instead("version")
    }

    private func missingCommand() -> CommandFailure {
        if path.isEmpty {
            return CommandFailure(
                exit: .usage, message: "no command given", hint: "see 'sinchctl help'")
        }
        let name = path.joined(separator: " ")
        return CommandFailure(
            exit: .usage, message: "\(name): needs a command: \(ValueReader.list(command.subcommands.map(\.name)))",
            hint: "see 'sinchctl help \(name)'")
    }

    private func finished() throws(CommandFailure) -> ParsedCommand {
        var parsed = ParsedCommand(command: command, path: path, flags: flags)
        for option in command.allOptions where option.kind != .flag {
            if let given = texts[option.long] {
                var values: [ParsedCommand.Value] = []
                for text in given { values.append(try read(text, for: "--\(option.long)", as: option.kind)) }
                parsed.values[option.long] = values
            } else if let value = try fromEnvironment(option) {
                parsed.values[option.long] = [value]
            }
        }
        for option in command.allOptions {
            let isGiven = texts[option.long] != nil || flags[option.long] != nil
            if isGiven, let other = option.conflicts.first(where: { texts[$0] != nil || flags[$0] != nil }) {
                throw usage("--\(option.long) and --\(other) exclude each other")
            }
            if option.isRequired, parsed.values[option.long] == nil {
                let variable = option.variable.map { ", or set \($0)" } ?? ""
                throw usage("--\(option.long) \(option.kind.valueName ?? "") is missing: \(option.summary)\(variable)")
            }
        }
        // What was typed displaces what a variable says: --user beats SINCHCTL_AS.
        for option in command.allOptions where texts[option.long] != nil || flags[option.long] != nil {
            for other in option.conflicts { parsed.values[other] = nil }
        }
        parsed.positional = try positional()
        return parsed
    }

    private func positional() throws(CommandFailure) -> [String: [ParsedCommand.Value]] {
        var result: [String: [ParsedCommand.Value]] = [:]
        var remaining = words[...]
        for argument in command.arguments {
            let taken = argument.isRepeatable ? remaining : remaining.prefix(1)
            remaining = remaining.dropFirst(taken.count)
            guard !taken.isEmpty || argument.isOptional else {
                throw usage("\(argument.name) is missing: \(argument.summary)")
            }
            var values: [ParsedCommand.Value] = []
            for text in taken { values.append(try read(text, for: argument.name, as: argument.kind)) }
            result[argument.name] = values
        }
        if let extra = remaining.first {
            let wanted = command.arguments.map(\.usage).joined(separator: " ")
            throw usage(
                "unexpected argument '\(printable(extra))': the command takes \(wanted.isEmpty ? "none" : wanted)")
        }
        return result
    }

    private func read(_ text: String, for name: String, as kind: ValueKind) throws(CommandFailure)
        -> ParsedCommand.Value
    {
        do {
            return try ValueReader.read(text, as: kind)
        } catch {
            throw usage("bad value '\(printable(text))' for \(name): \(error.reason)", suggestion: error.suggestion)
        }
    }

    /// Variables that stand for settings of a profile are left to the configuration, which knows where a setting
    /// comes from.
    private func fromEnvironment(_ option: CommandOption) throws(CommandFailure) -> ParsedCommand.Value? {
        guard option.profileKey == nil, let variable = option.variable, let text = environment[variable], !text.isEmpty
        else { return nil }
        do {
            return try ValueReader.read(text, as: option.kind)
        } catch {
            throw CommandFailure(
                exit: .configuration, message: "bad value '\(printable(text))' in \(variable): \(error.reason)",
                hint: "correct or unset the environment variable")
        }
    }

    private func usage(_ problem: String, suggestion: String? = nil) -> CommandFailure {
        let name = path.joined(separator: " ")
        let see = "see 'sinchctl help\(name.isEmpty ? "" : " \(name)")'"
        return CommandFailure(
            exit: .usage, message: name.isEmpty ? problem : "\(name): \(problem)",
            hint: suggestion.map { "did you mean '\($0)'? \(see)" } ?? see)
    }

    /// A terminal must not obey what was typed or pasted.
    private func printable(_ text: String) -> String {
        String(text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? "?" : Character($0) })
    }
}
