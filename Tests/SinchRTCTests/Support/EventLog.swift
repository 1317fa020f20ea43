import Dispatch
import Synchronization
import Testing

/// What happened, in order, and tests that wait for more of it.
final class EventLog<Event: Sendable>: Sendable {
    struct TimedOut: Error, CustomStringConvertible {
        var description: String
    }

    private struct Waiter {
        let id: UInt64
        let check: @Sendable ([Event]) -> Bool
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var events: [Event] = []
        var waiters: [Waiter] = []
        var nextID: UInt64 = 0
    }

    private let state = Mutex(State())

    var events: [Event] { state.withLock { $0.events } }

    func append(_ event: Event) {
        let done = state.withLock { state -> [Waiter] in
            state.events.append(event)
            let events = state.events
            let done = state.waiters.filter { $0.check(events) }
            state.waiters.removeAll { waiter in done.contains { $0.id == waiter.id } }
            return done
        }
        for waiter in done { waiter.continuation.resume(returning: true) }
    }

    /// Returns when the events so far satisfy `check`.
    func wait(
        _ what: String, timeout: Int = 15, until check: @escaping @Sendable ([Event]) -> Bool
    ) async throws {
        let found = await withCheckedContinuation { continuation in
            let id = state.withLock { state -> UInt64? in
                if check(state.events) { return nil }
                state.nextID += 1
                state.waiters.append(Waiter(id: state.nextID, check: check, continuation: continuation))
                return state.nextID
            }
            guard let id else { return continuation.resume(returning: true) }
            DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(timeout)) { [self] in
                let late = state.withLock { state -> Waiter? in
                    guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return nil }
                    return state.waiters.remove(at: index)
                }
                late?.continuation.resume(returning: false)
            }
        }
        guard found else { throw TimedOut(description: "waited \(timeout) s for \(what); so far: \(events)") }
    }
}

/// Returns when everything that is on the main queue now has run: no callback is under way any more.
func drainCallbacks() async {
    await withCheckedContinuation { continuation in
        DispatchQueue.main.async { continuation.resume() }
    }
}

/// Looks every 10 ms whether something that nobody tells of has come true, and gives up after 15 s.
func eventually(_ what: String, timeout: Duration = .seconds(15), _ check: () async -> Bool) async throws {
    let clock = ContinuousClock()
    let deadline = clock.now + timeout
    while !(await check()) {
        guard clock.now < deadline else {
            throw EventLog<Void>.TimedOut(description: "waited \(timeout) for \(what)")
        }
        try await Task.sleep(for: .milliseconds(10))
    }
}
