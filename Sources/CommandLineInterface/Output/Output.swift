import Configuration
import Glibc
import Synchronization

/// Where a command's results, progress and errors go.
///
/// Results go to standard output: with `--json` exactly one JSON document (also for a failure) or JSON Lines, else
/// text for people. Everything else goes to standard error. Safe to use from any thread.
final class Output: Sendable {
    /// A stream that takes text and says whether it was written.
    typealias Sink = @Sendable (String) -> Bool

    /// What is known about standard output.
    let terminal: Terminal
    /// What is known about standard error.
    let errorTerminal: Terminal
    /// Whether results are JSON.
    let isJSON: Bool
    /// Whether progress is left out.
    let isQuiet: Bool
    /// How much to log: 0, 1 (`-v`) or more.
    let verbosity: Int

    private struct State {
        var hasDocument = false
        var isBroken = false
    }

    private let standardOutput: Sink
    private let standardError: Sink
    private let state = Mutex(State())

    /// Creates an output; tests give sinks of their own.
    init(
        terminal: Terminal = .plain, errorTerminal: Terminal = .plain, isJSON: Bool = false, isQuiet: Bool = false,
        verbosity: Int = 0, standardOutput: @escaping Sink = { Output.write($0, to: 1) },
        standardError: @escaping Sink = { Output.write($0, to: 2) }
    ) {
        self.terminal = terminal
        self.errorTerminal = errorTerminal
        self.isJSON = isJSON
        self.isQuiet = isQuiet
        self.verbosity = verbosity
        self.standardOutput = standardOutput
        self.standardError = standardError
    }

    /// Whether something could not be written to standard output: the disk is full, or the reader has gone.
    var isBroken: Bool { state.withLock { $0.isBroken } }

    /// Prints a command's result: the document with `--json`, else the text.
    func result(_ document: @autoclosure () -> JSONValue, text: @autoclosure () -> String) {
        if isJSON { self.document(document().text(indented: terminal.isInteractive)) } else { line(text()) }
    }

    /// Prints a JSON document that exists as text already, once.
    func document(_ json: String) {
        let isFirst = state.withLock { state in
            defer { state.hasDocument = true }
            return !state.hasDocument
        }
        assert(isFirst, "a command prints one document")
        if isFirst { put(json.hasSuffix("\n") ? json : json + "\n") }
    }

    /// Prints an element of a JSON Lines stream at once.
    func element(_ json: String) {
        state.withLock { $0.hasDocument = true }
        put(json + "\n")
    }

    /// Prints text for people to standard output; nothing with `--json`.
    func line(_ text: String) {
        guard !isJSON, !text.isEmpty else { return }
        put(text.hasSuffix("\n") ? text : text + "\n")
    }

    /// Prints progress to standard error; nothing with `--quiet` or `--json`.
    func progress(_ text: String) {
        if !isQuiet, !isJSON { _ = standardError(text + "\n") }
    }

    /// Prints something that the user should know but that does not end the command, to standard error.
    func warning(_ text: String) {
        _ = standardError("sinchctl: \(errorTerminal.styled("warning", .warning)): \(text)\n")
    }

    /// Prints a failure as `sinchctl: what failed: why; what to do`, and with `--json` also as the document, unless one
    /// was printed already.
    func failure(_ failure: CommandFailure) {
        _ = standardError("sinchctl: \(errorTerminal.styled(failure.description, .bad))\n")
        guard isJSON else { return }
        let isFirst = state.withLock { state in
            defer { state.hasDocument = true }
            return !state.hasDocument
        }
        if isFirst { put(JSONValue(failure).text(indented: terminal.isInteractive) + "\n") }
    }

    private func put(_ text: String) {
        if !standardOutput(text) { state.withLock { $0.isBroken = true } }
    }

    /// Writes all of a text to a file descriptor, however often it takes; false when that fails.
    static func write(_ text: String, to descriptor: Int32) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var written = 0
            while written < bytes.count {
                let count = Glibc.write(descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
                if count > 0 {
                    written += count
                } else if count < 0, errno == EAGAIN {
                    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&ready, 1, -1)
                } else if count == 0 || errno != EINTR {
                    return false
                }
            }
            return true
        }
    }
}
