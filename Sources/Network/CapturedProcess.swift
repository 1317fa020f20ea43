import CSys
import Glibc
import Primitives

/// What a program wrote and how it ended.
public struct ProcessOutput: Sendable, Hashable {
    /// How it ended.
    public var status: ExitStatus
    /// Its standard output.
    public var output: [UInt8]
    /// The first 4 KiB of its standard error, for messages.
    public var errorOutput: [UInt8]
}

extension ChildProcess {
    /// Runs a program, waits for its end and returns what it wrote. From any asynchronous code.
    ///
    /// The program runs in a process group of its own with standard input from /dev/null. The whole group is killed when
    /// the time limit runs out or it writes too much. An exit status other than 0 is not an error here.
    ///
    /// Throws `.timedOut`, `.tooLarge`, `.other(ENOENT)` or `.notPermitted` when it cannot be run, `.closed` when the
    /// loop is stopped meanwhile.
    ///
    /// - Parameters:
    ///   - command: the program (found in PATH when it has no slash) and its arguments. No shell is involved.
    ///   - environment: the child's whole environment.
    ///   - outputLimit: the most bytes of standard output.
    public static func run(
        _ command: [String], environment: [String: String], timeout: Duration, outputLimit: Int = 65_536,
        on loop: EventLoop
    ) async throws -> ProcessOutput {
        try await withCheckedThrowingContinuation { continuation in
            loop.execute {
                let run = CapturedProcess(loop: loop, name: command.first ?? "", outputLimit: outputLimit) {
                    continuation.resume(with: $0)
                }
                run.start(command, environment: environment, timeout: timeout)
            }
        }
    }
}

/// One run; its watches keep it alive. On the loop only.
private final class CapturedProcess: @unchecked Sendable {
    private let loop: EventLoop
    private let name: String
    private let outputLimit: Int
    private var completion: (@Sendable (Result<ProcessOutput, NetworkError>) -> Void)?
    private var processID: Int32 = -1
    private var output = Capture()
    private var errorOutput = Capture()
    private var exit: FileDescriptor?
    private var exitWatch: WatchHandle?
    private var timer: TimerHandle?
    private var stopHook: UInt64?
    /// Why it was killed.
    private var failure: NetworkError?

    private struct Capture {
        var descriptor: FileDescriptor?
        var watch: WatchHandle?
        var bytes: [UInt8] = []

        mutating func close() {
            watch?.cancel()
            watch = nil
            descriptor?.close()
        }
    }

    private static let errorOutputLimit = 4_096

    init(
        loop: EventLoop, name: String, outputLimit: Int,
        completion: @escaping @Sendable (Result<ProcessOutput, NetworkError>) -> Void
    ) {
        self.loop = loop
        self.name = name
        self.outputLimit = outputLimit
        self.completion = completion
    }

    func start(_ command: [String], environment: [String: String], timeout: Duration) {
        do throws(NetworkError) {
            guard let program = command.first, !program.isEmpty else {
                throw NetworkError(.invalidAddress, "cannot run an empty command; give a program and its arguments")
            }
            let (readOutput, writeOutput) = try ChildProcess.makePipe()
            let (readError, writeError) = try ChildProcess.makePipe()
            processID = try ChildProcess.spawn(
                program, arguments: Array(command.dropFirst()), environment: environment, input: nil,
                output: writeOutput, error: writeError, inherited: [], workingDirectory: nil, newSession: false)
            writeOutput.close()
            writeError.close()
            output.descriptor = readOutput
            errorOutput.descriptor = readError
            let exit = try FileDescriptor(csys_pidfd_open(processID), "watch the process \(processID)")
            self.exit = exit
            exitWatch = try loop.watch(fd: exit.number, events: .read) { [self] _ in ended() }
            for descriptor in [readOutput, readError] {
                try NetworkError.check(csys_set_nonblocking(descriptor.number, 1), "read from \(program)")
            }
            output.watch = try loop.watch(fd: readOutput.number, events: .read) { [self] _ in readOutputNow() }
            errorOutput.watch = try loop.watch(fd: readError.number, events: .read) { [self] _ in readErrorNow() }
        } catch {
            // A child that cannot be watched must not stay behind.
            if processID > 0 {
                kill(error)
                var (exited, value) = (Int32(0), Int32(0))
                _ = csys_reap_wait(processID, &exited, &value)
            }
            finish(.failure(error))
            return
        }
        timer = loop.schedule(after: timeout) { [self] in
            kill(NetworkError(.timedOut, "\(name) was killed: it did not end in \(timeout)"))
        }
        stopHook = loop.addStopHook { [self] in
            let error = NetworkError(.closed, "the event loop was stopped")
            kill(error)
            var (exited, value) = (Int32(0), Int32(0))
            _ = csys_reap_wait(processID, &exited, &value)
            finish(.failure(error))
        }
    }

    private func readOutputNow() {
        guard read(&output, keep: outputLimit + 1) else { return }
        if output.bytes.count > outputLimit {
            kill(NetworkError(.tooLarge, "\(name) was killed: it wrote more than \(outputLimit) bytes"))
        }
    }

    private func readErrorNow() {
        _ = read(&errorOutput, keep: Self.errorOutputLimit)
    }

    /// Takes what is there, up to a buffer; what is over the limit is read and dropped. False at the end.
    private func read(_ capture: inout Capture, keep limit: Int) -> Bool {
        guard let descriptor = capture.descriptor, descriptor.number >= 0 else { return false }
        let count = Glibc.read(descriptor.number, loop.scratch.baseAddress, loop.scratch.count)
        if count > 0 {
            let room = max(0, limit - capture.bytes.count)
            capture.bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: loop.scratch[..<min(count, room)]))
            return true
        }
        if count < 0, errno == EAGAIN || errno == EINTR { return false }
        capture.close()
        return false
    }

    private func kill(_ error: NetworkError) {
        guard failure == nil else { return }
        failure = error
        _ = Glibc.kill(0 - processID, SIGKILL)
    }

    /// The child is done. A process that it left behind may hold the pipes open, so their end is not waited for.
    private func ended() {
        var rest = 256
        while rest > 0, failure == nil, read(&output, keep: outputLimit + 1) { rest -= 1 }
        readErrorNow()
        let status = ChildProcess.reap(processID)
        if let failure {
            finish(.failure(failure))
        } else if output.bytes.count > outputLimit {
            finish(.failure(NetworkError(.tooLarge, "\(name) wrote more than \(outputLimit) bytes")))
        } else if let status {
            finish(
                .success(ProcessOutput(status: status, output: output.bytes, errorOutput: errorOutput.bytes)))
        } else {
            // Children of a process that ignores SIGCHLD leave no status behind.
            finish(.failure(NetworkError(.other(ECHILD), "cannot tell how \(name) ended; do not ignore SIGCHLD")))
        }
    }

    private func finish(_ result: Result<ProcessOutput, NetworkError>) {
        output.close()
        errorOutput.close()
        exitWatch?.cancel()
        exitWatch = nil
        exit?.close()
        timer?.cancel()
        if let stopHook { loop.removeStopHook(stopHook) }
        stopHook = nil
        let completion = completion
        self.completion = nil
        completion?(result)
    }
}
