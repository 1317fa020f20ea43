/// A command line that makes sense: which command, with which values. All values were checked by the parser, so the
/// accessors do not fail.
struct ParsedCommand: Sendable {
    /// A value after checking.
    enum Value: Sendable, Equatable {
        case text(String)
        case integer(Int)
        case duration(Duration)
    }

    /// The command's entry in the table.
    let command: Command
    /// The command's full name, such as `["jwt", "sign"]`; aliases are resolved.
    let path: [String]
    /// How often each flag was given.
    var flags: [String: Int] = [:]
    /// Values by option, in the order given; defaults are not among them.
    var values: [String: [Value]] = [:]
    /// Values by positional argument.
    var positional: [String: [Value]] = [:]

    /// The full name in one text: `jwt sign`.
    var name: String { path.joined(separator: " ") }

    /// Whether a flag was given.
    func flag(_ name: String) -> Bool {
        count(name) > 0
    }

    /// How often a flag was given.
    func count(_ name: String) -> Int {
        assert(declares(name), "no option --\(name) in '\(self.name)'")
        return flags[name] ?? 0
    }

    /// Whether an option's value comes from the command line or an environment variable, not from its default.
    func isGiven(_ name: String) -> Bool {
        assert(declares(name), "no option --\(name) in '\(self.name)'")
        return flags[name] != nil || values[name] != nil
    }

    /// An option's text, or its default.
    func string(_ name: String) -> String? {
        strings(name).last
    }

    /// All texts of a repeatable option, in the order given.
    func strings(_ name: String) -> [String] {
        all(name).compactMap { if case .text(let text) = $0 { text } else { nil } }
    }

    /// An option's number, or its default.
    func integer(_ name: String) -> Int? {
        if case .integer(let number)? = all(name).last { number } else { nil }
    }

    /// An option's length of time, or its default.
    func duration(_ name: String) -> Duration? {
        if case .duration(let duration)? = all(name).last { duration } else { nil }
    }

    /// A positional argument; nil when it is optional and was not given.
    func argument(_ name: String) -> String? {
        arguments(name).first
    }

    /// A positional argument that repeats.
    func arguments(_ name: String) -> [String] {
        assert(command.arguments.contains { $0.name == name }, "no argument \(name) in '\(self.name)'")
        return (positional[name] ?? []).compactMap { if case .text(let text) = $0 { text } else { nil } }
    }

    private func all(_ name: String) -> [Value] {
        assert(declares(name), "no option --\(name) in '\(self.name)'")
        if let given = values[name] { return given }
        guard let option = command.allOptions.first(where: { $0.long == name }), let text = option.defaultValue,
            let value = try? ValueReader.read(text, as: option.kind)
        else { return [] }
        return [value]
    }

    private func declares(_ name: String) -> Bool {
        command.allOptions.contains { $0.long == name }
    }
}
