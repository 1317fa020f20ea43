import CSys
import Glibc

/// Delivers signals as events of the loop, where everything may be done (a classic handler may do next to nothing).
///
/// **The trap.** A signal reaches a signalfd only while *every* thread of the process blocks it; one thread that does not
/// gets the default action, and the process dies. Threads inherit the mask of the thread that creates them. So call
/// `blockAtStart` first thing in `main`, before the first loop, `Task` or library starts a thread. Children of
/// `ChildProcess` start with nothing blocked; what is started by other means inherits the mask.
public final class SignalWatcher: @unchecked Sendable {
    private let loop: EventLoop
    private let descriptor: FileDescriptor
    private let handler: @Sendable (Int32) -> Void
    private var watch: WatchHandle?
    private var stopHook: UInt64?

    /// Blocks the signals in the calling thread and in all that it will create, and makes the process ignore SIGPIPE
    /// (a broken pipe is an error of the write, not a death).
    public static func blockAtStart(_ signals: [Int32]) {
        _ = csys_signals_block(signals, Int32(signals.count))
        _ = csys_signal_ignore(SIGPIPE)
    }

    /// Starts watching. On the loop only. The signals must be blocked in all threads; see `blockAtStart`.
    ///
    /// Several signals of one number that come close together arrive as one.
    public init(
        loop: EventLoop, signals: [Int32], handler: @escaping @Sendable (Int32) -> Void
    ) throws(NetworkError) {
        loop.checkIsolated()
        self.loop = loop
        self.handler = handler
        descriptor = try FileDescriptor(
            csys_signalfd_create(signals, Int32(signals.count)), "watch signals with a signalfd")
        // The loop's own thread may have been created before.
        _ = csys_signals_block(signals, Int32(signals.count))
        watch = try loop.watch(fd: descriptor.number, events: .read) { [self] _ in receive() }
        stopHook = loop.addStopHook { [self] in close() }
    }

    /// Stops watching; the signals stay blocked. On the loop only; a second call does nothing.
    public func close() {
        loop.checkIsolated()
        watch?.cancel()
        watch = nil
        if let stopHook { loop.removeStopHook(stopHook) }
        stopHook = nil
        descriptor.close()
    }

    private func receive() {
        while watch != nil {
            let signal = csys_signalfd_read(descriptor.number, nil)
            guard signal > 0 else { return }
            handler(signal)
        }
    }
}
