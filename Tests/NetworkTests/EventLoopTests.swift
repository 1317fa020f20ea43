import CSys
import Glibc
import Primitives
import Testing

@testable import Network

/// An actor whose executor is a loop.
private actor Counter {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private(set) var value = 0

    init(loop: EventLoop) {
        self.loop = loop
    }

    func increment() -> Bool {
        value += 1
        return loop.isOnLoop
    }
}

extension NetworkTests {
    @Suite struct EventLoopTests {
        @Test func timersFireInTheOrderOfTheirDeadlines() async throws {
            try await withLoop { loop in
                let inbox = Inbox<Int>()
                try await loop.call {
                    let start = loop.now
                    // Milliseconds; equal ones keep the order of scheduling.
                    for (index, delay) in [9, 3, 7, 3, 1, 9, 0, 5].enumerated() {
                        loop.schedule(at: start + .milliseconds(delay)) { inbox.put(index) }
                    }
                }
                var order: [Int] = []
                for _ in 0..<8 { order.append(await inbox.next()) }
                #expect(order == [6, 4, 1, 3, 7, 2, 0, 5])
            }
        }

        @Test func noTimerFiresBeforeItsDeadline() async throws {
            try await withLoop { loop in
                let inbox = Inbox<Duration>()
                try await loop.call {
                    for delay in [1, 2, 5, 10] {
                        let deadline = loop.now + .milliseconds(delay)
                        loop.schedule(at: deadline) { inbox.put(loop.now - deadline) }
                    }
                }
                for _ in 0..<4 { #expect(await inbox.next() >= .zero) }
            }
        }

        @Test func cancelledTimersNeitherFireNorStay() async throws {
            try await withLoop { loop in
                let inbox = Inbox<Int>()
                let left = try await loop.call {
                    var random = RandomSource.seeded(1)
                    var timers = (0..<500).map { index in
                        loop.schedule(after: .microseconds(Int.random(in: 1...9_000, using: &random))) {
                            inbox.put(index)
                        }
                    }
                    timers.shuffle(using: &random)
                    for timer in timers.prefix(490) {
                        timer.cancel()
                        timer.cancel()
                    }
                    #expect(timers.prefix(490).allSatisfy { !$0.isPending })
                    #expect(timers.suffix(10).allSatisfy { $0.isPending })
                    return loop.load.timers
                }
                #expect(left == 10)
                for _ in 0..<10 { _ = await inbox.next() }
                #expect(try await loop.call { loop.load.timers } == 0)
                #expect(inbox.rest.isEmpty)
            }
        }

        @Test func aTimerMayCancelAnotherThatIsDue() async throws {
            try await withLoop { loop in
                let inbox = Inbox<String>()
                try await loop.call {
                    let past = loop.now
                    let second = TimerBox()
                    loop.schedule(at: past) {
                        second.timer?.cancel()
                        inbox.put("first")
                    }
                    second.timer = loop.schedule(at: past) { inbox.put("second") }
                    loop.schedule(at: past) { inbox.put("third") }
                }
                #expect(await inbox.next() == "first")
                #expect(await inbox.next() == "third")
            }
        }

        @Test func aTimerThatRenewsItselfStarvesNobody() async throws {
            try await withLoop { loop in
                let inbox = Inbox<Int>()
                try await loop.call {
                    let renewing = Renewing(loop: loop)
                    renewing.fire()
                    // Work comes through although a timer is always due.
                    loop.execute { loop.execute { inbox.put(renewing.count) } }
                }
                #expect(await inbox.next() < 100)
            }
        }

        @Test func workRunsInOrderAndNeverAtOnce() async throws {
            try await withLoop { loop in
                let inbox = Inbox<Int>()
                loop.execute {
                    loop.execute { inbox.put(2) }
                    inbox.put(1)
                }
                #expect(await inbox.next() == 1)
                #expect(await inbox.next() == 2)
            }
        }

        @Test func actorsAreIsolatedOnTheLoop() async throws {
            try await withLoop { loop in
                let counter = Counter(loop: loop)
                #expect(await counter.increment())
                // From plain callbacks of the loop, without a task.
                let inbox = Inbox<Int>()
                loop.execute {
                    counter.assumeIsolated { _ = $0.increment() }
                    loop.schedule(at: .zero) {
                        inbox.put(
                            counter.assumeIsolated {
                                _ = $0.increment()
                                return $0.value
                            })
                    }
                }
                #expect(await inbox.next() == 3)
                #expect(!loop.isOnLoop)
                #expect(loop.isIsolatingCurrentContext() == false)
            }
        }

        @Test func actorsAreSerialUnderCallsFromManyThreads() async throws {
            try await withLoop { loop in
                let counter = Counter(loop: loop)
                await withTaskGroup(of: Bool.self) { group in
                    for _ in 0..<1_000 { group.addTask { await counter.increment() } }
                    for await wasOnLoop in group { #expect(wasOnLoop) }
                }
                #expect(await counter.value == 1_000)
            }
        }

        @Test func aBurstOfWorkWakesTheLoopOnce() async throws {
            try await withLoop { loop in
                let busy = Inbox<Void>()
                let before = Inbox<UInt64>()
                let after = Inbox<UInt64>()
                let gate = Gate()
                loop.execute {
                    before.put(loop.turns)
                    busy.put(())
                    gate.wait()
                }
                await busy.next()
                for _ in 0..<1_000 { loop.execute {} }
                loop.execute { after.put(loop.turns) }
                gate.open()
                let turns = await after.next() - before.next()
                #expect(turns <= 2)
            }
        }

        @Test func aCancelledTimerWakesNobody() async throws {
            try await withLoop { loop in
                let inbox = Inbox<UInt64>()
                try await loop.call {
                    for delay in 1...20 { loop.schedule(after: .milliseconds(delay)) {}.cancel() }
                    // From this turn's number on: one more turn, in which the only timer left fires.
                    let now = loop.turns
                    loop.schedule(after: .milliseconds(30)) { inbox.put(loop.turns - now) }
                }
                // The turn after `call` and the timer's own.
                #expect(await inbox.next() <= 2)
            }
        }

        @Test func stopIsIdempotentAndReleasesEverything() async throws {
            let before = try openDescriptors()
            for _ in 0..<20 {
                let loop = try EventLoop(name: "short")
                loop.execute { loop.schedule(after: .seconds(60)) { _ = loop.now } }
                loop.stop()
                loop.stop()
            }
            #expect(try openDescriptors() == before)
        }

        @Test func stopFromTheLoopItselfEndsIt() async throws {
            let loop = try EventLoop(name: "self")
            loop.execute { loop.stop() }
            loop.stop()
            #expect(!loop.isOnLoop)
        }

        @Test func workQueuedBeforeStopRuns() async throws {
            let loop = try EventLoop(name: "queued")
            let inbox = Inbox<Int>()
            for index in 0..<100 { loop.execute { inbox.put(index) } }
            loop.stop()
            #expect(inbox.rest == Array(0..<100))
        }

        @Test func anActorOfAStoppedLoopStillAnswers() async throws {
            let loop = try EventLoop(name: "late")
            let counter = Counter(loop: loop)
            loop.stop()
            for _ in 0..<100 { #expect(await counter.increment()) }
            #expect(await counter.value == 100)
            await #expect(throws: NetworkError.self) {
                try await loop.call { _ = try loop.watch(fd: 0, events: .read) { _ in } }
            }
        }

        @Test func anEventFetchedForACancelledWatchReachesNobody() async throws {
            try await withLoop { loop in
                let inbox = Inbox<Int>()
                let descriptors = try (0..<2).map { _ in
                    try FileDescriptor(csys_eventfd_create(), "create an event descriptor")
                }
                try await loop.call {
                    // Both become ready in one turn; whoever comes first cancels the other and reuses its slot.
                    let handles = WatchBox()
                    for index in 0..<2 {
                        let handle = try loop.watch(fd: descriptors[index].number, events: .read) { _ in
                            inbox.put(index)
                            for handle in handles.handles { handle.cancel() }
                            handles.handles = []
                            let third = try? loop.watch(fd: descriptors[0].number, events: .write) { _ in }
                            loop.execute {
                                third?.cancel()
                                inbox.put(99)
                            }
                        }
                        handles.handles.append(handle)
                    }
                    for descriptor in descriptors { _ = csys_eventfd_signal(descriptor.number) }
                }
                #expect(await inbox.next() < 2)
                #expect(await inbox.next() == 99)
                #expect(inbox.rest.isEmpty)
                #expect(try await loop.call { loop.load.watches } == 0)
            }
        }
    }
}

/// Touched on the loop only.
private final class TimerBox: @unchecked Sendable {
    var timer: TimerHandle?
}

/// Touched on the loop only.
private final class WatchBox: @unchecked Sendable {
    var handles: [WatchHandle] = []
}

/// Touched on the loop only.
private final class Renewing: @unchecked Sendable {
    private let loop: EventLoop
    private(set) var count = 0

    init(loop: EventLoop) {
        self.loop = loop
    }

    func fire() {
        count += 1
        if count < 1_000 { loop.schedule(at: .zero) { [self] in fire() } }
    }
}

/// Blocks a thread until it is opened.
final class Gate: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() {
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func open() {
        sem_post(semaphore)
    }

    func wait() {
        while sem_wait(semaphore) != 0 {}
    }
}
