import Configuration

/// Lays text out in lines of a given width.
enum TextLayout {
    /// Breaks paragraphs (separated by an empty line) into lines of at most `width` columns. A longer word has a line
    /// of its own.
    static func wrap(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        for (index, paragraph) in paragraphs(text).enumerated() {
            if index > 0 { lines.append("") }
            var line = ""
            for word in paragraph.split(whereSeparator: \.isWhitespace) {
                if !line.isEmpty, line.count + 1 + word.count > width {
                    lines.append(line)
                    line = ""
                }
                line += line.isEmpty ? String(word) : " \(word)"
            }
            lines.append(line)
        }
        return lines
    }

    /// The paragraphs of a text.
    static func paragraphs(_ text: String) -> [String] {
        var result: [String] = []
        var current = ""
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.isEmpty {
                if !current.isEmpty { result.append(current) }
                current = ""
            } else {
                current += current.isEmpty ? String(line) : " \(line)"
            }
        }
        if !current.isEmpty { result.append(current) }
        return result
    }

    /// Pairs of term and explanation, explanations aligned; a term that is too long has a line of its own.
    static func definitions(_ entries: [(term: String, text: String)], column: Int, width: Int) -> [String] {
        entries.flatMap { entry -> [String] in
            let explanation = wrap(entry.text, width: max(20, width - column))
            let indented = explanation.map { String(repeating: " ", count: column) + $0 }
            let term = "  " + entry.term
            guard term.count + 2 <= column, let first = explanation.first else { return [term] + indented }
            return [term + String(repeating: " ", count: column - term.count) + first] + indented.dropFirst()
        }
    }

    /// Names and values, values aligned.
    static func fields(_ fields: [(name: String, value: String)]) -> String {
        let width = fields.map(\.name.count).max() ?? 0
        return fields.map { field in
            field.name + String(repeating: " ", count: width - field.name.count + 2) + field.value + "\n"
        }.joined()
    }
}

extension CommandOption {
    /// The summary with what the table knows beside it: default, allowed words, variable, key.
    var explanation: String {
        var notes: [String] = []
        if case .choice(_, let words) = kind { notes.append(ValueReader.list(words)) }
        if case .integer(_, let range) = kind { notes.append("\(range.lowerBound) to \(range.upperBound)") }
        if let defaultValue { notes.append("default: \(defaultValue)") }
        if isRequired { notes.append("required") }
        if isRepeatable { notes.append("may be repeated") }
        if let variable { notes.append("variable: \(variable)") }
        if let profileKey { notes.append("setting: \(profileKey)") }
        return notes.isEmpty ? summary : "\(summary) (\(notes.joined(separator: "; ")))"
    }
}

extension Command {
    /// Own options that help shows.
    var shownOptions: [CommandOption] { options.filter { !$0.isHidden } }

    /// Global options that hold for this command and that help shows.
    var shownGlobalOptions: [CommandOption] {
        let own = Set(options.map(\.long))
        return CommandTable.globalOptions.filter { !$0.isHidden && !own.contains($0.long) }
    }

    /// The exit codes that help explains: the command's own between those of every command.
    var shownExitCodes: [ExitCode] {
        let own = Set(exitCodes + [.ok, .usage, .internalError, .ioError])
        return ExitCode.allCases.filter(own.contains)
    }
}
