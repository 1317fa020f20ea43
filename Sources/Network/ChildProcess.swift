import CSys
import Glibc
import Primitives

/// How a process ended.
public enum ExitStatus: Sendable, Hashable {
    /// It called exit with this status.
    case exited(Int32)
    /// This signal ended it.
    case signalled(Int32)

    /// As a sentence's end: "exited with status 3".
    var text: String {
        switch self {
        case .exited(let status): "exited with status \(status)"
        case .signalled(let signal): "was ended by signal \(signal)"
        }
    }

    var errorCode: NetworkError.Code {
        switch self {
        case .exited(let status): .exited(status)
        case .signalled(let signal): .signalled(signal)
        }
    }
}

/// Starts other programs: the background agent, and commands whose output is wanted.
///
/// A child gets default signal handling, nothing blocked, and no descriptor but those that are meant for it.
public enum ChildProcess {
    /// Starts a program in the background: in a session of its own, away from the terminal, with standard input from
    /// /dev/null, and output to /dev/null or the end of a log file (created with mode 0600). Any thread.
    ///
    /// The child finds the number of the readiness pipe's write end in the environment; it says there when it is ready
    /// (`ReadinessPipe`), and the parent waits for that with `DetachedProcess.waitUntilReady`.
    ///
    /// Throws `.other(ENOENT)` or `.notPermitted` when the program cannot be run.
    ///
    /// - Parameters:
    ///   - executable: an absolute path, or a name to be found in PATH.
    ///   - arguments: without the program's own name.
    ///   - environment: the child's whole environment.
    ///   - readinessVariable: the environment variable that carries the number.
    ///   - workingDirectory: nil keeps the caller's, and so keeps its file system busy.
    public static func spawnDetached(
        executable: String, arguments: [String], environment: [String: String],
        readinessVariable: String = ReadinessPipe.defaultVariable, logFile: String? = nil,
        workingDirectory: String? = "/"
    ) throws(NetworkError) -> DetachedProcess {
        let (readEnd, writeEnd) = try makePipe()
        var log: FileDescriptor?
        if let logFile {
            log = try FileDescriptor(
                csys_open(logFile, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600), "open the log file \(logFile)")
        }
        var variables = environment
        variables[readinessVariable] = "3"
        let processID = try spawn(
            executable, arguments: arguments, environment: variables, input: nil, output: log, error: log,
            inherited: [writeEnd], workingDirectory: workingDirectory, newSession: true)
        writeEnd.close()
        return try DetachedProcess(processID: processID, name: executable, pipe: readEnd)
    }

    /// A close-on-exec pipe.
    static func makePipe() throws(NetworkError) -> (read: FileDescriptor, write: FileDescriptor) {
        var ends: (Int32, Int32) = (-1, -1)
        let result = withUnsafeMutableBytes(of: &ends) { bytes in
            csys_pipe(bytes.baseAddress?.assumingMemoryBound(to: Int32.self))
        }
        try NetworkError.check(result, "create a pipe")
        return (FileDescriptor(owning: ends.0), FileDescriptor(owning: ends.1))
    }

    /// Starts a process; a nil descriptor stands for /dev/null.
    static func spawn(
        _ executable: String, arguments: [String], environment: [String: String], input: FileDescriptor?,
        output: FileDescriptor?, error: FileDescriptor?, inherited: [FileDescriptor], workingDirectory: String?,
        newSession: Bool
    ) throws(NetworkError) -> Int32 {
        let argv = [executable] + arguments
        let variables = environment.map { "\($0.key)=\($0.value)" }
        guard !(argv + variables + [workingDirectory ?? ""]).contains(where: { $0.utf8.contains(0) }) else {
            throw NetworkError(.invalidAddress, "cannot run \(executable): an argument contains a NUL byte")
        }
        let numbers = inherited.map(\.number)
        let result = withCStrings(argv) { argumentPointers in
            withCStrings(variables) { variablePointers in
                withCStrings(workingDirectory.map { [$0] } ?? []) { directory in
                    numbers.withUnsafeBufferPointer { numbers in
                        var request = csys_spawn_request()
                        request.executable = UnsafePointer(argumentPointers[0])
                        request.arguments = UnsafePointer(argumentPointers)
                        request.environment = UnsafePointer(variablePointers)
                        request.standard_input = input?.number ?? -1
                        request.standard_output = output?.number ?? -1
                        request.standard_error = error?.number ?? -1
                        request.inherited = numbers.baseAddress
                        request.inherited_count = Int32(numbers.count)
                        request.working_directory = UnsafePointer(directory[0])
                        request.new_session = newSession ? 1 : 0
                        return csys_spawn(&request)
                    }
                }
            }
        }
        return try NetworkError.check(result, "run \(executable)", hint: "check that the program exists")
    }

    /// A null-terminated array of C strings for the time of the call.
    private static func withCStrings<Result>(
        _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        let pointers = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: strings.count + 1)
        for (index, string) in strings.enumerated() { (pointers + index).initialize(to: strdup(string)) }
        (pointers + strings.count).initialize(to: nil)
        defer {
            for index in strings.indices { free(pointers[index]) }
            pointers.deallocate()
        }
        return body(pointers)
    }

    /// Collects a child that has ended; nil while it runs, or when somebody else collected it.
    static func reap(_ processID: Int32) -> ExitStatus? {
        var (exited, value) = (Int32(0), Int32(0))
        guard csys_reap(processID, &exited, &value) == 1 else { return nil }
        return exited != 0 ? .exited(value) : .signalled(value)
    }
}

/// The child's end of the readiness pipe.
public final class ReadinessPipe: Sendable {
    /// The environment variable that carries the descriptor's number by default.
    public static let defaultVariable = "SINCHCTL_READY_FD"

    private let descriptor: FileDescriptor

    private init(_ descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    /// The pipe that the parent gave us; nil when there is none. Removes the variable, so that our own children do not
    /// take it for theirs: call it early, before other threads read the environment, and once.
    public static func takeFromEnvironment(variable: String = defaultVariable) -> ReadinessPipe? {
        guard let text = getenv(variable).map({ String(cString: $0) }) else { return nil }
        unsetenv(variable)
        var status = stat()
        guard let number = Int32(text), number > 2, fstat(number, &status) == 0,
            UInt32(status.st_mode) & UInt32(S_IFMT) == UInt32(S_IFIFO),
            fcntl(number, F_SETFD, FD_CLOEXEC) == 0
        else { return nil }
        return ReadinessPipe(FileDescriptor(owning: number))
    }

    /// Says one line to the parent (that we are ready, or why we failed) and closes the pipe; later calls do nothing.
    /// The process ignores SIGPIPE from here on: the parent may have gone.
    public func report(_ line: [UInt8]) {
        guard descriptor.number >= 0 else { return }
        _ = csys_signal_ignore(SIGPIPE)
        let bytes = line + [UInt8(ascii: "\n")]
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { all in
                write(descriptor.number, all.baseAddress.map { $0 + written }, all.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            written += count
        }
        descriptor.close()
    }
}
