import CSys
import Glibc
import Synchronization

/// How other threads reach the media thread: closures in a queue, and an eventfd that wakes it.
final class CommandQueue: Sendable {
    typealias Command = @Sendable (MediaThread) -> Void

    private struct State {
        var pending: [Command] = []
        var isStopped = false
    }

    private let state = Mutex(State())
    /// Readable when there is something to take.
    let descriptor: Int32

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        Glibc.close(descriptor)
    }

    /// Queues a command; false when the thread has ended and nothing will run it.
    func append(_ command: @escaping Command) -> Bool {
        state.withLock { state in
            guard !state.isStopped else { return false }
            state.pending.append(command)
            _ = csys_eventfd_signal(descriptor)
            return true
        }
    }

    /// Everything that is queued, nil when the thread is to end. What was queued before the stop still runs.
    func take() -> (commands: [Command], isLast: Bool) {
        _ = csys_eventfd_drain(descriptor)
        return state.withLock { state in
            defer { state.pending = [] }
            return (state.pending, state.isStopped)
        }
    }

    /// Asks the thread to end after what is queued.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            _ = csys_eventfd_signal(descriptor)
        }
    }
}
