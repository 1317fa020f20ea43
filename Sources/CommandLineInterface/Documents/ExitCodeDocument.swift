import Configuration

/// The page docs/exit-codes.md.
enum ExitCodeDocument {
    /// The page in Markdown.
    static func text() -> String {
        var lines = [
            "# Exit codes", "",
            "This page is made by `make docs` from the command table; a test fails when it differs.", "",
        ]
        lines += TextLayout.wrap(Topics.exitCodes, width: 100) + [""]
        lines += ["| code | name | meaning | commands |", "|---:|---|---|---|"]
        let always: [ExitCode] = [.ok, .usage, .internalError, .ioError]
        for code in ExitCode.allCases {
            let commands = CommandTable.leaves.filter { $0.command.exitCodes.contains(code) }
                .map { $0.path.joined(separator: " ") }
            let users =
                always.contains(code)
                ? "all"
                : code == .interrupted || code == .terminated
                    ? "all that wait" : commands.joined(separator: ", ")
            lines.append("| \(code.rawValue) | `\(code.name)` | \(code.meaning) | \(users) |")
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
