import Configuration
import Glibc
import Synchronization

@testable import CommandLineInterface

/// Takes what a command prints.
final class Capture: Sendable {
    private let texts = Mutex((output: "", error: ""))
    private let isFull: Bool

    /// `isFull` makes every write to standard output fail.
    init(isFull: Bool = false) {
        self.isFull = isFull
    }

    var output: String { texts.withLock { $0.output } }
    var error: String { texts.withLock { $0.error } }

    func makeOutput(terminal: Terminal = .plain, isJSON: Bool = false, isQuiet: Bool = false) -> Output {
        Output(
            terminal: terminal, errorTerminal: terminal, isJSON: isJSON, isQuiet: isQuiet,
            standardOutput: { text in
                self.texts.withLock { $0.output += self.isFull ? "" : text }
                return !self.isFull
            },
            standardError: { text in
                self.texts.withLock { $0.error += text }
                return true
            })
    }
}

/// What a command line did.
struct RunResult: Equatable {
    var code: ExitCode
    var output: String
    var error: String
}

/// Runs a command line in this process.
func run(
    _ arguments: String..., environment: [String: String] = [:], handlers: CommandHandlers = .all, json: Bool = false
) async -> RunResult {
    let capture = Capture()
    let output = capture.makeOutput(isJSON: json)
    let code =
        switch Invocation(arguments: arguments, environment: environment, handlers: handlers, output: output) {
        case .finished(let code): code
        case .waiting(let run): await run()
        }
    return RunResult(code: code, output: capture.output, error: capture.error)
}

/// The repository's root, found from this file's place.
let repository = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()

/// A file of the repository; nil when it cannot be read.
func contents(of path: String) -> String? {
    guard let file = fopen("\(repository)/\(path)", "r") else { return nil }
    defer { fclose(file) }
    return readAll(file)
}

/// What a shell command prints, errors included, and its exit status.
func shell(_ command: String) -> (status: Int32, text: String) {
    guard let stream = popen("cd '\(repository)' && { \(command); } 2>&1", "r") else { return (-1, "popen failed") }
    let text = readAll(stream)
    let status = pclose(stream)
    return (status & 0x7F == 0 ? (status >> 8) & 0xFF : -1, text)
}

private func readAll(_ file: UnsafeMutablePointer<FILE>) -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = fread(&buffer, 1, buffer.count, file)
        if count == 0 { return String(decoding: bytes, as: UTF8.self) }
        bytes += buffer[..<count]
    }
}
