import FoundationEssentials
import Synchronization

/// How serious a log message is.
public enum LogSeverity: Int, Sendable {
    /// Details for the library's own developers.
    case trace
    /// What happens in normal operation.
    case info
    /// Something is wrong but goes on.
    case warning
    /// Something failed.
    case critical
}

private let logCallback = Mutex<(@Sendable (LogSeverity, String, String, Date) -> Void)?>(nil)

/// Sets who gets log messages: severity, area, message, time. Called on any thread; the library is silent without it.
public func setLogCallback(_ callback: @escaping @Sendable (LogSeverity, String, String, Date) -> Void) {
    logCallback.withLock { $0 = callback }
}

/// Logs; the message is only built when somebody listens. Never log a token, a key or a password.
func log(_ severity: LogSeverity, _ area: String, _ message: @autoclosure () -> String) {
    guard let callback = logCallback.withLock({ $0 }) else { return }
    callback(severity, area, message(), Date())
}
