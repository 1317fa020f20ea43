import Dispatch
import Synchronization

/// What another program said, in order, until a test takes it: events awaited instead of slept for.
final class Mailbox<Element: Sendable>: Sendable {
    private struct Waiter: Sendable {
        let number: UInt64
        let matches: @Sendable (Element) -> Bool
        let continuation: CheckedContinuation<Element?, Never>
    }

    private struct State: Sendable {
        var elements: [Element] = []
        var waiters: [Waiter] = []
        var next: UInt64 = 0
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Puts an element where the first waiter for it, or a later one, finds it.
    func put(_ element: Element) {
        let waiter = state.withLock { state -> Waiter? in
            guard let index = state.waiters.firstIndex(where: { $0.matches(element) }) else {
                state.elements.append(element)
                return nil
            }
            return state.waiters.remove(at: index)
        }
        waiter?.continuation.resume(returning: element)
    }

    /// Nothing follows: whoever waits gets nothing.
    func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [] }
            return state.waiters
        }
        waiters.forEach { $0.continuation.resume(returning: nil) }
    }

    /// What is there and was not taken, for messages of failures.
    var untaken: [Element] { state.withLock { $0.elements } }

    /// Takes the first element that matches, now or when it comes; nil when it does not come in time.
    func take(within limit: Duration, _ matches: @escaping @Sendable (Element) -> Bool) async -> Element? {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        return await withCheckedContinuation { continuation in
            let waiter = Waiter(number: number, matches: matches, continuation: continuation)
            let (isDone, element) = state.withLock { state -> (Bool, Element?) in
                if let index = state.elements.firstIndex(where: matches) {
                    return (true, state.elements.remove(at: index))
                }
                if state.isClosed { return (true, nil) }
                state.waiters.append(waiter)
                return (false, nil)
            }
            if isDone {
                continuation.resume(returning: element)
                return
            }
            let milliseconds = Int(
                limit.components.seconds * 1_000 + limit.components.attoseconds / 1_000_000_000_000_000)
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [self] in
                let late = state.withLock { state -> Waiter? in
                    guard let index = state.waiters.firstIndex(where: { $0.number == number }) else { return nil }
                    return state.waiters.remove(at: index)
                }
                late?.continuation.resume(returning: nil)
            }
        }
    }
}
