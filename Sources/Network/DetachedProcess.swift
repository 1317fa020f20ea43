import CSys
import Glibc
import Primitives

/// A background process that this one started, until it has said that it is ready.
///
/// Wait once, in one of the three ways. The answer is the line that the child wrote: its meaning is the child's matter,
/// it may well tell a failure. The errors are:
/// - `.exited` or `.signalled` when the child ended without a word,
/// - `.closed` when it closed the pipe without a word and lives on,
/// - `.timedOut` when it said nothing in time; it still runs: `kill` it or leave it,
/// - `.tooLarge` when the line is longer than 64 KiB.
public final class DetachedProcess: @unchecked Sendable {
    /// The child's process id (and session and process group).
    public let processID: Int32

    private let name: String
    private let pipe: FileDescriptor
    private let exit: FileDescriptor
    private var received: [UInt8] = []

    /// The longest line that is taken.
    public static let longestLine = 65_536
    /// How long a closed pipe may wait for the child's end, which follows at once when the end closed the pipe.
    private static let exitGrace = Duration.seconds(1)

    init(processID: Int32, name: String, pipe: FileDescriptor) throws(NetworkError) {
        self.processID = processID
        self.name = name
        self.pipe = pipe
        exit = try FileDescriptor(csys_pidfd_open(processID), "watch the process \(processID)")
        try NetworkError.check(csys_set_nonblocking(pipe.number, 1), "read the readiness pipe")
    }

    /// Sends a signal to the child. Not after its end was seen.
    public func kill(_ signal: Int32 = SIGTERM) {
        _ = Glibc.kill(processID, signal)
    }

    // MARK: Blocking

    /// Waits, blocking the thread: for a command without an event loop. Event-driven, with poll(2).
    public func waitUntilReady(timeout: Duration) throws(NetworkError) -> [UInt8] {
        let deadline = Poll.deadline(after: timeout)
        while true {
            switch readPipe() {
            case .line(let line): return line
            case .failed(let error): throw error
            case .more:
                guard try Poll.wait([(pipe.number, Int16(POLLIN))], until: deadline) != nil else {
                    throw timedOut(timeout)
                }
            case .end:
                pipe.close()
                let grace = min(deadline, Poll.deadline(after: Self.exitGrace))
                let ended = try Poll.wait([(exit.number, Int16(POLLIN))], until: grace) != nil
                throw silentEnd(ended ? ChildProcess.reap(processID) : nil)
            }
        }
    }

    // MARK: On an event loop

    /// Waits on an event loop. From any asynchronous code.
    public func waitUntilReady(on loop: EventLoop, timeout: Duration) async throws -> [UInt8] {
        try await withCheckedThrowingContinuation { continuation in
            loop.execute { [self] in
                waitUntilReady(on: loop, timeout: timeout) { continuation.resume(with: $0) }
            }
        }
    }

    /// Waits on an event loop; `completion` is called there, once. The loop then also collects the child when it ends,
    /// so that a long-lived parent keeps no zombie. On the loop only.
    public func waitUntilReady(
        on loop: EventLoop, timeout: Duration,
        _ completion: @escaping @Sendable (Result<[UInt8], NetworkError>) -> Void
    ) {
        loop.checkIsolated()
        let wait = ReadinessWait(process: self, loop: loop, completion: completion)
        wait.start(timeout: timeout)
    }

    // MARK: Shared

    fileprivate enum Reading {
        case line([UInt8])
        case more
        case end
        case failed(NetworkError)
    }

    fileprivate var pipeNumber: Int32 { pipe.number }
    fileprivate var exitNumber: Int32 { exit.number }
    fileprivate static var grace: Duration { exitGrace }

    /// Reads what is there. Text without a line end before the end of the pipe counts as a line.
    fileprivate func readPipe() -> Reading {
        while true {
            var isEnd = false
            let result = withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 16) { chunk in
                let count = read(pipe.number, chunk.baseAddress, chunk.count)
                if count < 0 { return errno }
                isEnd = count == 0
                received.append(contentsOf: UnsafeRawBufferPointer(rebasing: chunk[..<count]))
                return Int32(0)
            }
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) { return .line(Array(received[..<end])) }
            if isEnd { return received.isEmpty ? .end : .line(received) }
            if received.count > Self.longestLine {
                return .failed(
                    NetworkError(.tooLarge, "\(name) reported more than \(Self.longestLine) bytes when it started"))
            }
            switch result {
            case 0, EINTR: continue
            case EAGAIN: return .more
            default: return .failed(NetworkError(errno: result, "read the readiness pipe of \(name)"))
            }
        }
    }

    fileprivate func timedOut(_ timeout: Duration) -> NetworkError {
        NetworkError(.timedOut, "\(name) (process \(processID)) was not ready in \(timeout); look at its log")
    }

    fileprivate func silentEnd(_ status: ExitStatus?) -> NetworkError {
        guard let status else {
            return NetworkError(.closed, "\(name) (process \(processID)) did not say whether it is ready")
        }
        return NetworkError(
            status.errorCode, "\(name) \(status.text) before it was ready; run it in the foreground to see why")
    }

    fileprivate func closePipe() {
        pipe.close()
    }

    fileprivate func closeExit() {
        exit.close()
    }
}

/// One wait on an event loop. Its watches keep it alive.
private final class ReadinessWait: @unchecked Sendable {
    private let process: DetachedProcess
    private let loop: EventLoop
    private var completion: (@Sendable (Result<[UInt8], NetworkError>) -> Void)?
    private var pipeWatch: WatchHandle?
    private var exitWatch: WatchHandle?
    private var timer: TimerHandle?
    private var stopHook: UInt64?

    init(
        process: DetachedProcess, loop: EventLoop,
        completion: @escaping @Sendable (Result<[UInt8], NetworkError>) -> Void
    ) {
        self.process = process
        self.loop = loop
        self.completion = completion
    }

    func start(timeout: Duration) {
        do {
            pipeWatch = try loop.watch(fd: process.pipeNumber, events: .read) { [self] _ in pipeIsReady() }
            exitWatch = try loop.watch(fd: process.exitNumber, events: .read) { [self] _ in childEnded() }
        } catch {
            finish(.failure(error))
            return
        }
        timer = loop.schedule(after: timeout) { [self] in finish(.failure(process.timedOut(timeout))) }
        stopHook = loop.addStopHook { [self] in
            finish(.failure(NetworkError(.closed, "the event loop was stopped")))
            stopCollecting()
        }
    }

    private func pipeIsReady() {
        switch process.readPipe() {
        case .more: return
        case .line(let line): finish(.success(line))
        case .failed(let error): finish(.failure(error))
        case .end:
            closePipe()
            timer?.cancel()
            timer = loop.schedule(after: DetachedProcess.grace) { [self] in
                finish(.failure(process.silentEnd(nil)))
            }
        }
    }

    private func childEnded() {
        let status = ChildProcess.reap(process.processID)
        stopCollecting()
        guard completion != nil else { return }
        // Its last word may still be in the pipe.
        if pipeWatch != nil, case .line(let line) = process.readPipe() {
            finish(.success(line))
        } else {
            finish(.failure(process.silentEnd(status)))
        }
    }

    private func closePipe() {
        pipeWatch?.cancel()
        pipeWatch = nil
        process.closePipe()
    }

    private func stopCollecting() {
        exitWatch?.cancel()
        exitWatch = nil
        process.closeExit()
        if let stopHook { loop.removeStopHook(stopHook) }
        stopHook = nil
    }

    private func finish(_ result: Result<[UInt8], NetworkError>) {
        closePipe()
        timer?.cancel()
        timer = nil
        let completion = completion
        self.completion = nil
        completion?(result)
    }
}
