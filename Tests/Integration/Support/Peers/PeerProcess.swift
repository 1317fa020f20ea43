import CSys
import Dispatch
import Glibc
import Synchronization

/// A program beside ours, spoken to through its standard input; what it prints arrives line by line.
final class PeerProcess: Sendable {
    let name: String
    let lines = Mailbox<String>()
    private let pid: pid_t
    private let input: Int32
    private let hasEnded = DispatchSemaphore(value: 0)
    private let isStopped = Atomic(false)

    /// Starts a program of a Debian package; a missing one is a failure that says how to get it.
    init(
        _ name: String, _ arguments: [String], environment: [String: String] = [:], directory: String
    ) throws {
        guard let path = Self.find(name) else {
            throw TestFailure("\(name) is not installed; run: scripts/setup test")
        }
        self.name = name
        // A program that ended while it was written to is no reason to end the tests.
        signal(SIGPIPE, SIG_IGN)
        var toProgram: [Int32] = [0, 0]
        var fromProgram: [Int32] = [0, 0]
        guard pipe(&toProgram) == 0, pipe(&fromProgram) == 0 else { throw TestFailure("no pipes for \(name)") }
        for descriptor in toProgram + fromProgram { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, toProgram[0], 0)
        posix_spawn_file_actions_adddup2(&actions, fromProgram[1], 1)
        posix_spawn_file_actions_adddup2(&actions, fromProgram[1], 2)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let variables = ["HOME": directory, "PATH": "/usr/bin:/bin", "LC_ALL": "C"].merging(environment) { $1 }
        var argv = (["/usr/bin/env", "-C", directory, path] + arguments).map { strdup($0) } + [nil]
        var envp = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer {
            for text in argv + envp { free(text) }
            close(toProgram[0])
            close(fromProgram[1])
        }
        var spawned: pid_t = 0
        guard posix_spawn(&spawned, "/usr/bin/env", &actions, &attributes, &argv, &envp) == 0 else {
            close(toProgram[1])
            close(fromProgram[0])
            throw TestFailure("cannot start \(path)")
        }
        let pid = spawned
        self.pid = pid
        input = toProgram[1]
        let output = fromProgram[0]
        let (lines, hasEnded) = (lines, hasEnded)
        DispatchQueue(label: name).async {
            Self.read(output, into: lines)
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            lines.close()
            hasEnded.signal()
        }
    }

    /// Where a program is: on the usual path or among the system's own.
    static func find(_ name: String) -> String? {
        ["/usr/bin/", "/usr/sbin/", "/usr/local/bin/"].map { $0 + name }.first { access($0, X_OK) == 0 }
    }

    /// Writes a line to the program's standard input.
    func send(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = bytes.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
    }

    /// Waits for a line that contains a text; fails with what came instead.
    @discardableResult
    func line(containing text: String, within limit: Duration = .seconds(15)) async throws -> String {
        if let line = await lines.take(within: limit, { $0.contains(text) }) { return line }
        throw TestFailure("\(name) did not say '\(text)' but: \(lines.untaken.suffix(20).joined(separator: " | "))")
    }

    /// Ends the program: politely, and after five seconds for certain. Once is enough, more does no harm.
    func stop() async {
        guard !isStopped.exchange(true, ordering: .relaxed) else { return }
        kill(pid, SIGTERM)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [self] in
                if hasEnded.wait(timeout: .now() + 5) == .timedOut {
                    kill(pid, SIGKILL)
                    hasEnded.wait()
                }
                continuation.resume()
            }
        }
        close(input)
    }

    private static func read(_ output: Int32, into lines: Mailbox<String>) {
        var pending: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = Glibc.read(output, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            pending += chunk[0..<count]
            // A carriage return alone redraws a status line: no more than another line here.
            while let end = pending.firstIndex(where: { $0 == 0x0A || $0 == 0x0D }) {
                if end > 0 { lines.put(String(decoding: pending[..<end], as: UTF8.self)) }
                pending.removeFirst(end + 1)
            }
        }
        close(output)
    }
}
