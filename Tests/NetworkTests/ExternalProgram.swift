import CSys
import Glibc
import Testing

@testable import Network

/// A program that a test talks to: it runs until the test lets go of it, and tells the test its output line by line.
final class ExternalProgram: @unchecked Sendable {
    let processID: Int32
    /// Lines of its standard output and standard error.
    let lines = Inbox<String>()

    private let input: FileDescriptor
    private let output: FileDescriptor

    /// Starts it. `command` begins with the program's name or path.
    init(_ command: [String], environment: [String: String] = [:], loop: EventLoop) throws {
        let (inputEnd, input) = try ChildProcess.makePipe()
        let (output, outputEnd) = try ChildProcess.makePipe()
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        processID = try ChildProcess.spawn(
            try #require(command.first), arguments: Array(command.dropFirst()),
            environment: ["PATH": path].merging(environment) { $1 }, input: inputEnd, output: outputEnd,
            error: outputEnd, inherited: [], workingDirectory: nil, newSession: false)
        inputEnd.close()
        outputEnd.close()
        self.input = input
        self.output = output
        // A thread of its own: the end of the program ends it.
        let lines = self.lines
        try SystemThread.start(name: "program") {
            var rest: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = read(output.number, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                rest += buffer.prefix(count)
                while let end = rest.firstIndex(of: 10) {
                    lines.put(String(decoding: rest[..<end], as: UTF8.self))
                    rest.removeFirst(end + 1)
                }
            }
            lines.put("(end)")
        }
    }

    /// The first line from here on that contains a text. The program's end without it fails the test.
    func line(containing text: String) async throws -> String {
        var seen: [String] = []
        while true {
            let line = await lines.next()
            if line.contains(text) { return line }
            seen.append(line)
            if line == "(end)" {
                Issue.record("the program said no \"\(text)\" but: \(seen.suffix(20).joined(separator: "\n"))")
                throw NetworkError(.closed, "the program ended")
            }
        }
    }

    /// Writes to its standard input.
    func write(_ text: String) {
        let bytes = Array(text.utf8)
        _ = Glibc.write(input.number, bytes, bytes.count)
    }

    /// Ends its standard input.
    func endInput() {
        input.close()
    }

    /// Sends it a signal.
    func signal(_ number: Int32) {
        kill(processID, number)
    }

    deinit {
        kill(processID, SIGKILL)
        var (exited, value) = (Int32(0), Int32(0))
        _ = csys_reap_wait(processID, &exited, &value)
    }
}
