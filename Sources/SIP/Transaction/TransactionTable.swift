import Primitives

/// What a table of transactions must know about each of them.
protocol TimedTransaction: Sendable {
    var id: TransactionID { get }
    /// When the transaction wants to be called next.
    var nextDeadline: MonotonicTime? { get }
    /// Whether it has ended and may be forgotten.
    var isTerminated: Bool { get }
}

/// Transactions by identity, and their deadlines in order.
///
/// Transactions live in slots, so that a change is made in place and a timer entry is three numbers; insertion,
/// look-up and the next deadline take constant or logarithmic time.
struct TransactionTable<Element: TimedTransaction>: Sendable {
    private struct Slot: Sendable {
        var element: Element?
        var generation: UInt32 = 0
        /// The time of the heap entry that will bring this transaction up.
        var scheduled: MonotonicTime?
    }

    private var slots: [Slot] = []
    private var free: [Int] = []
    private var index: [TransactionID: Int] = [:]
    private var heap = TimerHeap()

    var count: Int { index.count }
    /// Entries that the timer heap holds, live and stale: for tests of its bound.
    var timerEntries: Int { heap.count }
    var nextDeadline: MonotonicTime? { heap.first?.time }
    var ids: [TransactionID] { Array(index.keys) }

    func contains(_ id: TransactionID) -> Bool {
        index[id] != nil
    }

    subscript(_ id: TransactionID) -> Element? {
        index[id].flatMap { slots[$0].element }
    }

    mutating func insert(_ element: Element) {
        let slot: Int
        if let known = index[element.id] {
            slot = known
        } else if let reused = free.popLast() {
            slot = reused
        } else {
            slot = slots.count
            slots.append(Slot())
        }
        index[element.id] = slot
        slots[slot].element = element
        slots[slot].generation &+= 1
        slots[slot].scheduled = nil
        schedule(slot)
        settle()
    }

    /// Changes a transaction in place, then reschedules it, or forgets it when it has ended.
    ///
    /// `actions` is passed through to the change, since the two belong to one layer that is being changed.
    @discardableResult
    mutating func update<Result>(
        _ id: TransactionID, _ actions: inout FIFO<TransactionLayer.Action>,
        _ change: (inout Element, inout FIFO<TransactionLayer.Action>) -> Result
    ) -> Result? {
        guard let slot = index[id], var element = slots[slot].element else { return nil }
        // Taken out for the change: a second reference would make every change copy the stored messages.
        slots[slot].element = nil
        let result = change(&element, &actions)
        if element.isTerminated {
            index[id] = nil
            slots[slot].generation &+= 1
            slots[slot].scheduled = nil
            free.append(slot)
        } else {
            slots[slot].element = element
            schedule(slot)
        }
        settle()
        return result
    }

    /// The transaction whose deadline has come, earliest first.
    func due(at now: MonotonicTime) -> TransactionID? {
        guard let first = heap.first, first.time <= now else { return nil }
        return slots[first.slot].element?.id
    }

    private mutating func schedule(_ slot: Int) {
        guard let deadline = slots[slot].element?.nextDeadline else { return }
        if let scheduled = slots[slot].scheduled, scheduled <= deadline { return }
        slots[slot].scheduled = deadline
        heap.push(time: deadline, slot: slot, generation: slots[slot].generation)
    }

    /// Brings a live entry to the top, so that `nextDeadline` never wakes anybody for nothing.
    private mutating func settle() {
        if heap.count > 64 + 4 * index.count {
            heap.removeAll()
            for slot in index.values.sorted() {
                slots[slot].scheduled = nil
                schedule(slot)
            }
        }
        while let first = heap.first {
            let slot = slots[first.slot]
            let isCurrent = slot.generation == first.generation && slot.scheduled == first.time
            if isCurrent, slot.element?.nextDeadline == first.time { return }
            heap.removeFirst()
            if isCurrent {
                slots[first.slot].scheduled = nil
                schedule(first.slot)
            }
        }
    }
}
