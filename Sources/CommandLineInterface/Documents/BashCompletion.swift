/// The completion script for bash (4.2 or newer); it needs nothing but bash itself.
enum BashCompletion {
    /// The script's text.
    static func script() -> String {
        """
        # bash completion for sinchctl; made by "make docs" from the command table.

        _sinchctl() {
            local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
            local path= word index
            COMPREPLY=()
            # In --name=value bash makes three words of it.
            if [[ $current == = ]]; then
                current=
            elif [[ $previous == = ]]; then
                previous=${COMP_WORDS[COMP_CWORD - 2]}
            fi
            # The words so far that are commands, not options or their values.
            for ((index = 1; index < COMP_CWORD; index++)); do
                word=${COMP_WORDS[index]}
                case "$path/$word" in
        \(pathCases())
                esac
            done
            case "$path $previous" in
        \(valueCases())
            esac
            local words=
            case $path in
        \(wordCases())
            esac
            if [[ $current == -* || -n $words && $current != */* ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
            fi
            case $path in
        \(fileCases())
            esac
        }

        complete -F _sinchctl sinchctl

        """
    }

    /// Every command with its path, in the table's order, the program itself first.
    private static var all: [(path: [String], command: Command)] {
        func collect(_ command: Command, _ path: [String]) -> [(path: [String], command: Command)] {
            [(path, command)] + command.subcommands.flatMap { collect($0, path + [$0.name]) }
        }
        return collect(CommandTable.root, [])
    }

    private static func key(_ path: [String]) -> String {
        path.map { "/\($0)" }.joined()
    }

    private static func pathCases() -> String {
        all.dropFirst().map { entry in
            let parent = key(Array(entry.path.dropLast()))
            let names = ([entry.command.name] + entry.command.aliases).map { "\"\(parent)/\($0)\"" }
            return "            \(names.joined(separator: " | "))) path=\(key(entry.path)) ;;"
        }.joined(separator: "\n")
    }

    /// After an option that takes a value only its values are offered.
    private static func valueCases() -> String {
        var lines: [String] = []
        for (path, command) in all {
            for option in command.allOptions where !option.isHidden && option.kind != .flag {
                let names = option.longNames.map { "--\($0)" } + (option.short.map { ["-\($0)"] } ?? [])
                let patterns = names.map { "\"\(key(path)) \($0)\"" }.joined(separator: " | ")
                lines.append("        \(patterns))")
                lines.append("            \(action(for: option.kind))")
                lines.append("            return")
                lines.append("            ;;")
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func action(for kind: ValueKind) -> String {
        if kind == .file {
            return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$current\")"
        }
        let words = kind.words.joined(separator: " ")
        return words.isEmpty ? ":" : "mapfile -t COMPREPLY < <(compgen -W \"\(words)\" -- \"$current\")"
    }

    private static func wordCases() -> String {
        all.map { path, command in
            var words = command.subcommands.flatMap { [$0.name] + $0.aliases }
            words += command.arguments.flatMap(\.kind.words)
            if path == ["help"] { words += CommandTable.root.subcommands.map(\.name) + HelpText.topics }
            words += command.allOptions.filter { !$0.isHidden }.flatMap(\.longNames).map { "--\($0)" }
            let pattern = path.isEmpty ? "\"\"" : key(path)
            return "        \(pattern)) words=\"\(words.joined(separator: " "))\" ;;"
        }.joined(separator: "\n")
    }

    private static func fileCases() -> String {
        let paths = all.filter { $0.command.arguments.contains { $0.kind == .file } }.map { key($0.path) }
        return """
                    \(paths.joined(separator: " | ")))
                        if [[ $current != -* ]]; then
                            compopt -o filenames
                            mapfile -t COMPREPLY < <(compgen -f -- "$current")
                        fi
                        ;;
            """
    }
}
