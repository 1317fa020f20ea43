import Configuration
import Testing

@testable import CommandLineInterface

/// What must hold for every entry of the command table.
@Suite struct Table {
    private static var everything: [(path: [String], command: Command)] {
        func collect(_ command: Command, _ path: [String]) -> [(path: [String], command: Command)] {
            [(path, command)] + command.subcommands.flatMap { collect($0, path + [$0.name]) }
        }
        return collect(CommandTable.root, [])
    }

    @Test func namesAreUnique() {
        for (path, command) in Self.everything {
            let names = command.subcommands.flatMap { [$0.name] + $0.aliases }
            #expect(Set(names).count == names.count, "\(path)")
            let options = command.allOptions.flatMap(\.longNames)
            #expect(Set(options).count == options.count, "\(path) \(options)")
            let letters = command.allOptions.compactMap(\.short)
            #expect(Set(letters).count == letters.count, "\(path) \(letters)")
        }
    }

    @Test func defaultsAndConflictsAreReal() throws {
        for (path, command) in Self.everything {
            for option in command.allOptions {
                if let text = option.defaultValue { _ = try ValueReader.read(text, as: option.kind) }
                for other in option.conflicts {
                    let exists = command.allOptions.contains { $0.long == other }
                    #expect(exists, "\(path) --\(option.long) excludes --\(other)")
                }
            }
        }
    }

    @Test func textsAreFitToPrint() {
        for (path, command) in Self.everything {
            let texts =
                [command.summary] + command.allOptions.map(\.summary) + command.arguments.map(\.summary)
                + command.examples.map(\.summary)
            for text in texts {
                #expect(!text.isEmpty && !text.hasSuffix(".") && !text.contains("\n"), "\(path) '\(text)'")
            }
            #expect(command.subcommands.isEmpty || command.arguments.isEmpty, "\(path)")
            #expect(path.isEmpty || !command.subcommands.isEmpty || !command.examples.isEmpty, "\(path) has no example")
        }
    }

    /// Examples are typed by hand, so each must be a command line that the parser accepts.
    @Test func examplesParse() throws {
        for (_, command) in Self.everything {
            for example in command.examples {
                let line = example.line.replacing("source <(", with: "").replacing(")", with: "")
                for part in line.split(separator: "&&").flatMap({ $0.split(separator: "|") }) {
                    let words = part.split(separator: ">")[0].split(separator: " ").map(String.init)
                    guard words.first == "sinchctl" else { continue }
                    _ = try CommandParser.parse(Array(words.dropFirst()))
                }
            }
        }
    }

    @Test func everyExitCodeIsExplained() {
        let codes = Set(CommandTable.leaves.flatMap(\.command.exitCodes))
        let always: Set<ExitCode> = [.ok, .usage, .internalError, .ioError, .terminated]
        #expect(codes.union(always) == Set(ExitCode.allCases))
    }
}
