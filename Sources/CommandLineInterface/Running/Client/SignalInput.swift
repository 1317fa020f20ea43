import CSys
import Glibc

/// Interrupts as input: blocked for the process, read from a descriptor while waiting for something else.
///
/// For commands without an event loop. Made in the process's only thread, before others inherit its mask.
final class SignalInput: Sendable {
    private let descriptor: Int32

    /// What ended a wait.
    enum Outcome {
        /// This descriptor has something.
        case readable(Int32)
        /// A signal came.
        case signal(Int32)
        /// Neither did in time.
        case timedOut
    }

    /// Blocks the signals and opens their descriptor.
    init(_ signals: [Int32]) {
        _ = csys_signals_block(signals, Int32(signals.count))
        descriptor = csys_signalfd_create(signals, Int32(signals.count))
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Waits for one of the descriptors, a signal, or the time-out (nil: for ever).
    func wait(alsoFor others: [Int32], timeout: Duration?) -> Outcome {
        var polled = ([descriptor] + others).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        let milliseconds = timeout.map { duration in
            Int32(clamping: (duration.wholeNanoseconds + 999_999) / 1_000_000)
        }
        let count = poll(&polled, nfds_t(polled.count), milliseconds ?? -1)
        if count == 0 { return .timedOut }
        if let first = polled.first, first.revents != 0 {
            var sender: pid_t = 0
            let number = csys_signalfd_read(descriptor, &sender)
            if number > 0 { return .signal(number) }
        }
        return .readable(polled.dropFirst().first { $0.revents != 0 }?.fd ?? -1)
    }
}
