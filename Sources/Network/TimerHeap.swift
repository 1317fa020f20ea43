import Primitives

/// One timer of an event loop; `cancel()` removes it.
public final class TimerHandle: @unchecked Sendable {
    /// When the timer fires.
    public let deadline: MonotonicTime
    /// Orders timers of the same time by when they were set.
    let sequence: UInt64
    /// The position in the heap, -1 outside.
    fileprivate(set) var index = -1
    fileprivate(set) var handler: (@Sendable () -> Void)?
    private weak var loop: EventLoop?

    init(loop: EventLoop, deadline: MonotonicTime, sequence: UInt64, handler: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.deadline = deadline
        self.sequence = sequence
        self.handler = handler
    }

    /// Whether the timer waits: neither fired nor cancelled. On the loop only.
    public var isPending: Bool { index >= 0 }

    /// Removes the timer and lets go of its handler; does nothing once it fired. On the loop only.
    public func cancel() {
        guard index >= 0 else { return }
        loop?.cancel(self)
    }

    fileprivate func precedes(_ other: TimerHandle) -> Bool {
        deadline != other.deadline ? deadline < other.deadline : sequence < other.sequence
    }
}

/// A binary heap of timers whose members know their position, so that cancelling really removes: a cancelled timer
/// costs no memory and wakes nobody.
struct TimerHeap {
    private var entries: [TimerHandle] = []

    var count: Int { entries.count }
    var first: TimerHandle? { entries.first }

    mutating func insert(_ timer: TimerHandle) {
        timer.index = entries.count
        entries.append(timer)
        siftUp(from: timer.index)
    }

    /// Takes the timer out and returns its handler.
    @discardableResult
    mutating func remove(_ timer: TimerHandle) -> (@Sendable () -> Void)? {
        let index = timer.index
        guard entries.indices.contains(index), entries[index] === timer else { return nil }
        timer.index = -1
        let last = entries.removeLast()
        if last !== timer {
            entries[index] = last
            last.index = index
            siftUp(from: index)
            siftDown(from: last.index)
        }
        defer { timer.handler = nil }
        return timer.handler
    }

    /// Marks all timers as done and lets go of their handlers.
    func drop() {
        for timer in entries {
            timer.index = -1
            timer.handler = nil
        }
    }

    private mutating func siftUp(from start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].precedes(entries[parent]) else { return }
            swap(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(from start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < entries.count && entries[child].precedes(entries[least]) {
                least = child
            }
            guard least != parent else { return }
            swap(parent, least)
            parent = least
        }
    }

    private mutating func swap(_ left: Int, _ right: Int) {
        entries.swapAt(left, right)
        entries[left].index = left
        entries[right].index = right
    }
}
