import Glibc
import Testing

@testable import CommandLineInterface

/// Files that are made from the command table must be the ones that are committed.
@Suite struct Documents {
    @Test(
        arguments: [
            ("man/sinchctl.1", ManualPage.text), ("docs/exit-codes.md", ExitCodeDocument.text),
            ("completions/sinchctl.bash", BashCompletion.script), ("completions/_sinchctl", ZshCompletion.script),
            ("completions/sinchctl.fish", FishCompletion.script),
        ] as [(String, @Sendable () -> String)])
    func committedFileIsUpToDate(path: String, make: @Sendable () -> String) {
        #expect(contents(of: path) == make(), "run 'make docs' and commit \(path)")
    }

    /// All help texts in one file. `UPDATE_SNAPSHOTS=1 swift test --filter helpTexts` writes it anew.
    @Test func helpTextsAreAsBefore() {
        var text = HelpText.text(for: CommandTable.root, path: [])
        for topic in HelpText.topics { text += "\n=== \(topic)\n\n" + (HelpText.topic(topic) ?? "missing\n") }
        for command in CommandTable.root.subcommands {
            for path in [[command.name]] + command.subcommands.map({ [command.name, $0.name] }) {
                guard let found = CommandTable.command(at: path) else { continue }
                text += "\n=== \(path.joined(separator: " "))\n\n" + HelpText.text(for: found.command, path: path)
            }
        }
        let path = "Tests/CommandLineTests/Snapshots/help.txt"
        if getenv("UPDATE_SNAPSHOTS") != nil, let file = fopen("\(repository)/\(path)", "w") {
            fputs(text, file)
            fclose(file)
        }
        #expect(contents(of: path) == text, "see what changed with UPDATE_SNAPSHOTS=1 and git diff")
    }

    @Test func helpFitsTheWidth() {
        for width in [60, 80] {
            for (path, command) in CommandTable.leaves {
                let lines = HelpText.text(for: command, path: path, width: width).split(separator: "\n")
                // Usage, terms and examples are one line whatever the width.
                let long = lines.filter { $0.count > width && $0.contains("  ") && !$0.contains("sinchctl") }
                #expect(long.allSatisfy { $0.hasPrefix("  ") && !$0.dropFirst(8).contains("   ") }, "\(path) \(long)")
            }
        }
    }

    @Test func manualPageRendersWithoutWarnings() throws {
        try #require(shell("command -v man").status == 0, "man-db is missing: run scripts/setup test")
        let result = shell("LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l man/sinchctl.1 >/dev/null")
        #expect(result == (0, ""))
        let text = shell("LC_ALL=C.UTF-8 MANWIDTH=80 man -l man/sinchctl.1").text
        #expect(text.contains("-u, --user USER"))
        #expect(text.contains("124 (timeout)"))
    }

    @Test(arguments: [
        ("sinchctl j", "jwt"), ("sinchctl jwt ''", "sign inspect verify"),
        ("sinchctl wait --for ''", "registered incoming established ended"),
        ("sinchctl wait --for = r", "registered"), ("sinchctl call bob --re", "--record"),
        ("sinchctl call bob --capture t", "tone:440"), ("sinchctl --json jwt s", "sign"),
        ("sinchctl verify Pack", "Package.swift"), ("sinchctl verify --channel ''", "left right"),
        ("sinchctl --config Makef", "Makefile"), ("sinchctl stop --al", "--all"),
        ("sinchctl help ex", "exit-codes"), ("sinchctl start --display-name ''", ""),
    ])
    func bashCompletes(line: String, expected: String) {
        let result = shell(
            """
            bash -c 'source completions/sinchctl.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sinchctl
            echo "${COMPREPLY[*]}"' - \(line)
            """)
        #expect(result == (0, expected + "\n"))
    }
}
