import CSys
import Configuration
import Glibc

extension ProcessIdentity {
    /// Asks the process to end (SIGTERM) and waits for it.
    ///
    /// - Returns: whether it has ended.
    public func terminate(within seconds: Duration) -> Bool {
        guard isRunning else { return true }
        // A descriptor of the process itself: its number cannot pass to another process while we hold it.
        let descriptor = csys_pidfd_open(pid)
        guard descriptor >= 0 else { return !isRunning }
        defer { close(descriptor) }
        guard isRunning, kill(pid, SIGTERM) == 0 else { return !isRunning }
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&polled, 1, Int32(clamping: seconds.components.seconds * 1_000)) > 0
    }
}
