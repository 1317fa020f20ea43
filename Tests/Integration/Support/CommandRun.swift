import CSys
import Dispatch
import Glibc

/// What a program did: its exit code (128 + N when signal N ended it, as a shell says) and what it wrote.
struct CommandRun: Sendable {
    let arguments: [String]
    let exit: Int32
    let output: String
    let errors: String
    let duration: Duration
    /// Whether it had to be killed because its time was up.
    let wasKilled: Bool

    /// Lines on standard error that are no warnings.
    var complaints: [Substring] {
        errors.split(separator: "\n").filter { !$0.hasPrefix("sinchctl: warning:") }
    }
}

/// A program that runs, its output in files, so that nothing that it leaves behind can hold a reader up.
final class RunningCommand: Sendable {
    let pid: pid_t
    private let arguments: [String]
    private let files: (output: String, errors: String)
    private let started: ContinuousClock.Instant

    /// Starts a program with the given environment and nothing else.
    init(
        _ executable: String, _ arguments: [String], environment: [String: String], input: String? = nil,
        directory: String, workingDirectory: String? = nil
    ) throws {
        self.arguments = arguments
        let name = directory + "/out." + String(UInt64.random(in: 0 ... .max), radix: 36)
        files = (name, name + ".err")
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var inputPath = "/dev/null"
        if let input {
            inputPath = name + ".in"
            try writeFile(inputPath, Array(input.utf8))
        }
        posix_spawn_file_actions_addopen(&actions, 0, inputPath, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, files.output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, files.errors, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The test runner's signal mask is not the program's.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        // env changes the directory and then becomes the program.
        let prefix = workingDirectory.map { ["/usr/bin/env", "-C", $0] } ?? []
        let command = prefix + [executable] + arguments
        var argv = command.map { strdup($0) } + [nil]
        var envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer {
            for text in argv + envp { free(text) }
        }
        var pid: pid_t = 0
        started = .now
        let result = posix_spawn(&pid, command[0], &actions, &attributes, &argv, &envp)
        guard result == 0 else { throw TestFailure("cannot start \(executable): \(String(cString: strerror(result)))") }
        self.pid = pid
    }

    func signal(_ number: Int32) {
        kill(pid, number)
    }

    /// Whether it has not ended.
    var isRunning: Bool {
        var information = siginfo_t()
        return waitid(P_PID, id_t(pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0
            && information.si_signo != SIGCHLD
    }

    /// What it has written to standard output so far.
    var outputSoFar: String { readFile(files.output) }

    /// What it has written to standard error so far.
    var errorsSoFar: String { readFile(files.errors) }

    /// Waits for the end; kills the program when that does not come in time. Blocks no thread of the tests' pool.
    func end(within limit: Duration = .seconds(30)) async -> CommandRun {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [self] in continuation.resume(returning: waitForEnd(limit)) }
        }
    }

    private func waitForEnd(_ limit: Duration) -> CommandRun {
        let descriptor = csys_pidfd_open(pid)
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        let hasEnded = poll(&polled, 1, Int32(limit.components.seconds) * 1_000) > 0
        if !hasEnded { kill(pid, SIGKILL) }
        close(descriptor)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        return CommandRun(
            arguments: arguments, exit: signal == 0 ? (status >> 8) & 0xFF : 128 + signal,
            output: readFile(files.output), errors: readFile(files.errors), duration: .now - started,
            wasKilled: !hasEnded)
    }
}

/// Why a test cannot go on.
struct TestFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Reads a whole file as text; empty when there is none.
func readFile(_ path: String) -> String {
    String(decoding: readBytes(path), as: UTF8.self)
}

/// Reads a whole file; empty when there is none.
func readBytes(_ path: String) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = read(descriptor, &chunk, chunk.count)
        guard count > 0 else { return bytes }
        bytes += chunk[0..<count]
    }
}

/// Writes a file that only its owner may read, unless the mode says otherwise.
func writeFile(_ path: String, _ bytes: [UInt8], mode: mode_t = 0o600) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw TestFailure("cannot write \(path): \(String(cString: strerror(errno)))") }
    defer { close(descriptor) }
    fchmod(descriptor, mode)
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { throw TestFailure("cannot write \(path)") }
        rest = rest.dropFirst(count)
    }
}
