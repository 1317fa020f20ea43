/// The completion script for zsh.
enum ZshCompletion {
    /// The script's text.
    static func script() -> String {
        var text = """
            #compdef sinchctl
            # zsh completion for sinchctl; made by "make docs" from the command table.


            """
        text += function(for: CommandTable.root, path: [])
        text += """
            if [[ $funcstack[1] == _sinchctl ]]; then
                _sinchctl "$@"
            else
                compdef _sinchctl sinchctl
            fi

            """
        return text
    }

    /// One function for each command; those of subcommands are called with their own words.
    private static func function(for command: Command, path: [String]) -> String {
        let name = (["_sinchctl"] + path).joined(separator: "_")
        var lines = ["\(name)() {"]
        var specifications = command.allOptions.filter { !$0.isHidden }.flatMap(specification)
        if command.subcommands.isEmpty {
            for argument in command.arguments { specifications.append(specification(argument, path)) }
            lines.append("    _arguments -s -S \\")
            lines.append(specifications.map { "        \($0)" }.joined(separator: " \\\n"))
            lines += ["}", "", ""]
            return lines.joined(separator: "\n")
        }
        specifications += ["'1: :->command'", "'*:: :->rest'"]
        lines.append("    local state line curcontext=$curcontext")
        lines.append("    _arguments -C -s -S \\")
        lines.append(specifications.map { "        \($0)" }.joined(separator: " \\\n"))
        lines.append("    case $state in")
        lines.append("        command)")
        lines.append("            local -a commands=(")
        for subcommand in command.subcommands {
            for name in [subcommand.name] + subcommand.aliases {
                lines.append("                \(quote("\(name):\(subcommand.summary)"))")
            }
        }
        lines.append("            )")
        lines.append("            _describe command commands")
        lines.append("            ;;")
        lines.append("        rest)")
        lines.append("            case $line[1] in")
        for subcommand in command.subcommands {
            let names = ([subcommand.name] + subcommand.aliases).joined(separator: "|")
            lines.append("                \(names)) \(name)_\(subcommand.name) ;;")
        }
        lines += ["            esac", "            ;;", "    esac", "}", "", ""]
        return lines.joined(separator: "\n")
            + command.subcommands.map { function(for: $0, path: path + [$0.name]) }.joined()
    }

    private static func specification(_ option: CommandOption) -> [String] {
        let names = option.longNames.map { "--\($0)" } + (option.short.map { ["-\($0)"] } ?? [])
        let excluded = names + option.conflicts.map { "--\($0)" }
        let prefix = option.isRepeatable ? "*" : excluded.count > 1 ? "(\(excluded.joined(separator: " ")))" : ""
        return names.map { name in
            guard option.kind != .flag else { return quote("\(prefix)\(name)[\(bracketed(option.summary))]") }
            let attach = name.hasPrefix("--") ? "=" : "+"
            return quote(
                "\(prefix)\(name)\(attach)[\(bracketed(option.summary))]:\(colons(option.kind.valueName ?? "")):"
                    + action(for: option.kind))
        }
    }

    private static func specification(_ argument: CommandArgument, _ path: [String]) -> String {
        let number = argument.isRepeatable ? "*" : ""
        let optional = argument.isOptional && !argument.isRepeatable ? ":" : ""
        let words = CommandTable.root.subcommands.map(\.name) + HelpText.topics
        let action = path == ["help"] ? "(\(words.joined(separator: " ")))" : action(for: argument.kind)
        return quote("\(number):\(optional)\(colons(argument.summary)):\(action)")
    }

    private static func action(for kind: ValueKind) -> String {
        if kind == .file { return "_files" }
        return kind.words.isEmpty ? " " : "(\(kind.words.map(colons).joined(separator: " ")))"
    }

    private static func bracketed(_ text: String) -> String {
        colons(text).replacing("[", with: "\\[").replacing("]", with: "\\]")
    }

    private static func colons(_ text: String) -> String {
        text.replacing(":", with: "\\:")
    }

    private static func quote(_ text: String) -> String {
        "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
