/// The completion script for bash (4.2 or newer); it needs nothing but bash itself.
enum BashCompletion {
    /// The script's text.
    static func script() -> String {
        """
        # bash completion for sinchctl; made by "make docs" from the command table.

        # Both use the variable "current" of their caller.
        _sinchctl_words() {
            mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
        }
        _sinchctl_files() {
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        }

        _sinchctl() {
            local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
            local path='' word index
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
            case $previous in
        \(globalValueCases())
            esac
            local words='' options=''
            case $path in
        \(wordCases())
            esac
            if [[ $current == -* ]]; then
                _sinchctl_words "$options \(globalNames())"
            elif [[ -n $words ]]; then
                _sinchctl_words "$words"
            else
                case $path in
        \(fileCases())
                esac
            fi
            return 0
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
        all.flatMap { path, command in command.options.flatMap { valueCase($0, prefix: "\"\(key(path)) ") } }
            .joined(separator: "\n")
    }

    /// The same for the global options, unless the command has one of that name itself.
    private static func globalValueCases() -> String {
        CommandTable.globalOptions.flatMap { valueCase($0, prefix: "\"") }.joined(separator: "\n")
    }

    private static func valueCase(_ option: CommandOption, prefix: String) -> [String] {
        guard !option.isHidden, option.kind != .flag else { return [] }
        let names = option.longNames.map { "--\($0)" } + (option.short.map { ["-\($0)"] } ?? [])
        let patterns = names.map { "\(prefix)\($0)\"" }.joined(separator: " | ")
        return ["        \(patterns)) \(action(for: option.kind)) ;;"]
    }

    private static func action(for kind: ValueKind) -> String {
        if kind == .file { return "_sinchctl_files && return" }
        return "_sinchctl_words \"\(kind.words.joined(separator: " "))\" && return"
    }

    private static func wordCases() -> String {
        all.compactMap { path, command in
            var words = command.subcommands.flatMap { [$0.name] + $0.aliases }
            words += command.arguments.flatMap(\.kind.words)
            if path == ["help"] { words += CommandTable.root.subcommands.map(\.name) + HelpText.topics }
            let options = names(of: command.shownOptions)
            guard !words.isEmpty || !options.isEmpty else { return nil }
            let pattern = path.isEmpty ? "\"\"" : key(path)
            return "        \(pattern)) words=\"\(words.joined(separator: " "))\" options=\"\(options)\" ;;"
        }.joined(separator: "\n")
    }

    private static func globalNames() -> String {
        names(of: CommandTable.globalOptions.filter { !$0.isHidden })
    }

    private static func names(of options: [CommandOption]) -> String {
        options.flatMap(\.longNames).map { "--\($0)" }.joined(separator: " ")
    }

    private static func fileCases() -> String {
        let paths = all.filter { $0.command.arguments.contains { $0.kind == .file } }.map { key($0.path) }
        return "            \(paths.joined(separator: " | "))) _sinchctl_files ;;"
    }
}
