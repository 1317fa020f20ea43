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
    _ arguments: String..., environment: [String: String] = [:], handlers: CommandHandlers = .all, json: Bool = false,
    standardInput: Int32 = 0
) async -> RunResult {
    let capture = Capture()
    let output = capture.makeOutput(isJSON: json)
    let code =
        switch Invocation(
            arguments: arguments, environment: environment, handlers: handlers, output: output,
            standardInput: standardInput)
        {
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

/// A directory that is removed with the object, and the environment of a user who lives there.
final class Scratch {
    let path: String

    init() throws {
        var template = Array("/tmp/sinchctl-test-XXXXXX\0".utf8CString)
        guard mkdtemp(&template) != nil else { throw CommandFailure(exit: .cannotCreate, message: "mkdtemp failed") }
        path = String(decoding: template.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        _ = shell("rm -rf '\(path)'")
    }

    var environment: [String: String] {
        ["XDG_CONFIG_HOME": "\(path)/config", "XDG_STATE_HOME": "\(path)/state", "HOME": path]
    }

    /// Writes a file and returns its path.
    func write(_ text: String, to name: String, mode: mode_t = 0o600) -> String {
        let file = "\(path)/\(name)"
        let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC, mode)
        _ = Output.write(text, to: descriptor)
        close(descriptor)
        chmod(file, mode)
        return file
    }
}

/// A pipe that holds a text and ends there.
func pipe(holding text: String) -> Int32 {
    var ends: [Int32] = [-1, -1]
    guard Glibc.pipe(&ends) == 0 else { return -1 }
    _ = Output.write(text, to: ends[1])
    close(ends[1])
    return ends[0]
}
