import CSys
import Glibc
import Primitives
import Synchronization

/// One named thread that waits for sockets, timers and work, and is the executor of the actors built on it.
///
/// An actor runs on the loop by naming it as its executor:
///
///     actor Client {
///         nonisolated let loop: EventLoop
///         nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
///     }
///
/// Handlers of sockets and timers run on the loop's thread, so they may call `client.assumeIsolated { … }`, which costs
/// nothing; a call from any other thread is an `await` and costs a wake-up (some 40 µs).
///
/// What belongs to the loop (timers, watches, sockets) may be touched on its thread only; every such call checks that
/// and traps otherwise. From outside, get there with `execute` or `call`.
///
/// The loop sleeps without a time-out when nothing is due. It keeps itself alive until `stop()`.
public final class EventLoop: SerialExecutor, @unchecked Sendable {
    enum Work {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    /// What other threads share with the loop.
    private struct Shared {
        var queue: [Work] = []
        /// The loop sleeps, or is about to, so work needs a signal. Cleared by the first signal: no storm of wake-ups.
        var isAsleep = false
        var isStopping = false
        /// The thread is gone and its descriptors are closed.
        var hasEnded = false
        /// A helper thread runs work that came after the end.
        var hasLateRunner = false
    }

    /// The loop's name, which is its thread's name.
    public let name: String

    private let shared = Locked(Shared())
    private let end = EndSignal()
    /// pthread_self of the thread that runs the loop, 0 for none.
    private let owner = Atomic<UInt>(0)
    private let epoll: FileDescriptor
    private let wake: FileDescriptor

    // Below: touched by the loop's thread only.
    private var timers = TimerHeap()
    private var nextTimerSequence: UInt64 = 0
    private var watches = WatchTable()
    private var stopHooks: [UInt64: @Sendable () -> Void] = [:]
    private var nextStopHook: UInt64 = 0
    private var batch: [Work] = []
    /// The time that the running timers are due at; nil while none runs.
    private var turnTime: MonotonicTime?
    /// The loop takes no more timers and watches.
    private var isFinished = false
    /// How often the loop woke up, for the tests that nothing wakes it without need.
    private(set) var turns: UInt64 = 0
    /// Where sockets of this loop read to: one buffer for all, as only one handler runs at a time.
    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)

    private static let wakeToken = UInt64.max

    /// Starts the loop's thread.
    ///
    /// Throws when the process has no descriptor or thread left.
    public init(name: String) throws(NetworkError) {
        self.name = name
        epoll = try FileDescriptor(csys_epoll_create(), "create an epoll descriptor")
        wake = try FileDescriptor(csys_eventfd_create(), "create an event descriptor")
        try NetworkError.check(
            csys_epoll_add(epoll.number, wake.number, CSYS_EPOLL_IN, Self.wakeToken), "watch the event descriptor")
        try SystemThread.start(name: name) { [self] in run() }
    }

    deinit {
        scratch.deallocate()
    }

    // MARK: Executor

    /// Runs an actor's job; called by the Swift runtime from any thread.
    public func enqueue(_ job: consuming ExecutorJob) {
        submit(.job(UnownedJob(job)))
    }

    /// Traps when the caller is not on the loop; what `assumeIsolated` relies on.
    public func checkIsolated() {
        precondition(isOnLoop, "not on the thread of the event loop")
    }

    /// Whether the caller is on the loop.
    public func isIsolatingCurrentContext() -> Bool? {
        isOnLoop
    }

    /// Whether the caller is on the loop's thread.
    public var isOnLoop: Bool { owner.load(ordering: .acquiring) == UInt(pthread_self()) }

    // MARK: Work

    /// Runs `work` on the loop, after what was submitted before. From any thread, and never at once: from the loop
    /// itself it runs after the current handler returned.
    ///
    /// Work that comes after `stop()` still runs, serially, on a helper thread: nobody who awaits an actor hangs.
    public func execute(_ work: @escaping @Sendable () -> Void) {
        submit(.closure(work))
    }

    /// Runs `body` on the loop and waits for its result. From any asynchronous code.
    public func call<Result: Sendable>(
        _ body: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            execute { continuation.resume(with: Swift.Result { try body() }) }
        }
    }

    /// CLOCK_MONOTONIC, read at the call. From any thread.
    public var now: MonotonicTime { MonotonicTime(nanoseconds: csys_monotonic_now()) }

    /// Ends the loop. From another thread it returns when the loop's thread has run what was queued and is done with
    /// every descriptor; from the loop itself it returns at once and the loop ends after the current work. Sockets
    /// that are still open are closed and their owners told. A second call does no harm.
    ///
    /// A thread that the loop's work waits for must not call this: both would wait for ever.
    public func stop() {
        shared.withLock { state in
            state.isStopping = true
            signal(&state)
        }
        if !isOnLoop { end.wait() }
    }

    private func submit(_ work: Work) {
        let startLateRunner = shared.withLock { state in
            state.queue.append(work)
            signal(&state)
            guard state.hasEnded, !state.hasLateRunner else { return false }
            state.hasLateRunner = true
            return true
        }
        if startLateRunner { runLate() }
    }

    /// Wakes a sleeping loop. The descriptor is written under the lock, so it cannot have been closed and reused.
    private func signal(_ state: inout Shared) {
        guard state.isAsleep, !state.hasEnded else { return }
        state.isAsleep = false
        _ = csys_eventfd_signal(wake.number)
    }

    // MARK: Timers and watches

    /// Calls `handler` on the loop at `deadline`, or as soon as possible when it has passed; in the order of
    /// deadlines, and of scheduling among equal ones. Timers of a stopped loop never fire. On the loop only.
    @discardableResult
    public func schedule(at deadline: MonotonicTime, _ handler: @escaping @Sendable () -> Void) -> TimerHandle {
        checkIsolated()
        // What a timer's handler sets into the past fires in the next turn, so that it cannot keep this one going.
        let effective = turnTime.map { max(deadline, $0 + .nanoseconds(1)) } ?? deadline
        let timer = TimerHandle(loop: self, deadline: effective, sequence: nextTimerSequence, handler: handler)
        nextTimerSequence &+= 1
        if !isFinished { timers.insert(timer) }
        return timer
    }

    /// Calls `handler` on the loop after `delay`. On the loop only.
    @discardableResult
    public func schedule(after delay: Duration, _ handler: @escaping @Sendable () -> Void) -> TimerHandle {
        schedule(at: now + delay, handler)
    }

    func cancel(_ timer: TimerHandle) {
        checkIsolated()
        timers.remove(timer)
    }

    /// Calls `handler` on the loop while the descriptor is ready (level-triggered). The descriptor stays the caller's:
    /// cancel the watch before closing it. On the loop only.
    public func watch(
        fd: Int32, events: IOEvents, handler: @escaping @Sendable (IOEvents) -> Void
    ) throws(NetworkError) -> WatchHandle {
        checkIsolated()
        guard !isFinished else { throw NetworkError(.closed, "the event loop \"\(name)\" was stopped") }
        let handle = WatchHandle(loop: self, fd: fd, handler: handler)
        handle.token = watches.insert(handle)
        let result = csys_epoll_add(epoll.number, fd, events.rawValue, handle.token)
        if result < 0 {
            watches.remove(handle)
            throw NetworkError(errno: NetworkError.errorNumber(result), "watch descriptor \(fd)")
        }
        return handle
    }

    func update(_ handle: WatchHandle, events: IOEvents) {
        checkIsolated()
        _ = csys_epoll_modify(epoll.number, handle.fd, events.rawValue, handle.token)
    }

    func cancel(_ handle: WatchHandle) {
        checkIsolated()
        watches.remove(handle)
        _ = csys_epoll_remove(epoll.number, handle.fd)
    }

    /// Timers that wait and descriptors that are watched, for tests and status. On the loop only.
    public var load: (timers: Int, watches: Int) {
        checkIsolated()
        return (timers.count, watches.count)
    }

    /// Calls `hook` on the loop when the loop stops, so that sockets can tell their owners. On the loop only.
    func addStopHook(_ hook: @escaping @Sendable () -> Void) -> UInt64 {
        checkIsolated()
        nextStopHook &+= 1
        stopHooks[nextStopHook] = hook
        return nextStopHook
    }

    func removeStopHook(_ identifier: UInt64) {
        checkIsolated()
        stopHooks[identifier] = nil
    }

    // MARK: The thread

    private func run() {
        owner.store(UInt(pthread_self()), ordering: .releasing)
        withUnsafeTemporaryAllocation(of: csys_epoll_event.self, capacity: 128) { events in
            while turn(events) {}
        }
        for (_, hook) in stopHooks.sorted(by: { $0.key < $1.key }) { hook() }
        stopHooks = [:]
        isFinished = true
        // Taken out first: letting go of a handler may run code that comes back here.
        let (oldTimers, oldWatches) = (timers, watches)
        timers = TimerHeap()
        watches = WatchTable()
        oldTimers.drop()
        oldWatches.drop()
        // What the hooks queued, and what that queues: until nothing is left.
        while !finishIfIdle() { runQueued() }
        end.signal()
    }

    /// One turn: wait, then descriptors, timers and work, each at most what was there at the turn's start, so that
    /// none of the three starves the others. False when the loop shall end.
    private func turn(_ events: UnsafeMutableBufferPointer<csys_epoll_event>) -> Bool {
        let nextDeadline = timers.first?.deadline
        let (timeout, isStopping) = shared.withLock { state -> (Int64, Bool) in
            if state.isStopping { return (0, true) }
            guard state.queue.isEmpty else { return (0, false) }
            var timeout: Int64 = -1
            if let nextDeadline {
                timeout = max(0, (nextDeadline - now).wholeNanoseconds)
            }
            state.isAsleep = timeout != 0
            return (timeout, false)
        }
        if isStopping { return false }
        turns &+= 1
        let count = csys_epoll_wait(epoll.number, events.baseAddress, Int32(events.count), timeout)
        if timeout != 0 { shared.withLock { $0.isAsleep = false } }
        // Only a programming error (a closed epoll descriptor) gets here; going on would spin for ever.
        precondition(count >= 0, "epoll_wait failed")
        for event in events.prefix(Int(count)) {
            if event.token == Self.wakeToken {
                _ = csys_eventfd_drain(wake.number)
            } else if let handle = watches.find(event.token) {
                handle.handler?(IOEvents(rawValue: event.events))
            }
        }
        runTimers()
        runQueued()
        return true
    }

    private func runTimers() {
        let time = now
        guard let first = timers.first, first.deadline <= time else { return }
        turnTime = time
        while let timer = timers.first, timer.deadline <= time {
            timers.remove(timer)?()
        }
        turnTime = nil
    }

    private func runQueued() {
        shared.withLock { swap(&$0.queue, &batch) }
        for work in batch { run(work) }
        batch.removeAll(keepingCapacity: batch.capacity <= 4_096)
    }

    private func run(_ work: Work) {
        switch work {
        case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
        case .closure(let closure): closure()
        }
    }

    /// Ends the loop's life when nothing is queued: from here on `submit` starts a late runner.
    private func finishIfIdle() -> Bool {
        shared.withLock { state in
            guard state.queue.isEmpty else { return false }
            epoll.close()
            wake.close()
            state.hasEnded = true
            state.hasLateRunner = false
            owner.store(0, ordering: .releasing)
            return true
        }
    }

    /// Runs work that came after the end, on a thread that stands in for the loop's.
    private func runLate() {
        let started: Void? = try? SystemThread.start(name: name) { [self] in
            owner.store(UInt(pthread_self()), ordering: .releasing)
            repeat { runQueued() } while !finishIfIdle()
        }
        // Out of threads: the work stays queued, and the next one tries again.
        if started == nil { shared.withLock { $0.hasLateRunner = false } }
    }
}

/// Lets threads wait for the loop's end.
private final class EndSignal: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() {
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func signal() {
        sem_post(semaphore)
    }

    /// Waits, and passes the signal on to the next that waits.
    func wait() {
        while sem_wait(semaphore) != 0 {}
        sem_post(semaphore)
    }
}
