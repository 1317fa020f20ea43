import Configuration
import FoundationEssentials
import Glibc
import Synchronization

/// The call log: a line of JSON for each ended call, in the state directory.
public final class AgentLog: Sendable {
    private let path: String?
    private let lock = Mutex(())

    /// Logs to `calls.jsonl` in the directory; nil logs nowhere.
    public init(directory: String?) {
        path = directory.map { $0 + "/calls.jsonl" }
    }

    func append(_ report: CallReport) {
        guard let path else { return }
        lock.withLock { _ in
            let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 else { return }
            // One write for one line: appends of this size are not torn, so several agents may share the file.
            let line = AgentProtocol.encode(report) + [0x0A]
            _ = line.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            close(descriptor)
        }
    }
}

/// This process.
enum ProcessID {
    static var current: Int32 { getpid() }
}
