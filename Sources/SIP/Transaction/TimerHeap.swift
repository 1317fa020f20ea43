import Primitives

/// A binary heap of deadlines, earliest first; equal deadlines come out in the order they went in.
///
/// Entries are never removed from the middle: a transaction that ended, or that moved its deadline, leaves its
/// entry behind, and ``TransactionTable`` skips it when it surfaces.
struct TimerHeap: Sendable {
    struct Entry: Sendable {
        var time: MonotonicTime
        var order: UInt64
        /// The slot of the transaction, and the slot's generation when the entry was made.
        var slot: Int
        var generation: UInt32
    }

    private var entries: [Entry] = []
    private var order: UInt64 = 0

    var count: Int { entries.count }
    var first: Entry? { entries.first }

    mutating func push(time: MonotonicTime, slot: Int, generation: UInt32) {
        order &+= 1
        entries.append(Entry(time: time, order: order, slot: slot, generation: generation))
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard precedes(child, parent) else { break }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    mutating func removeFirst() {
        guard let last = entries.popLast(), !entries.isEmpty else { return }
        entries[0] = last
        var parent = 0
        while true {
            let left = 2 * parent + 1
            guard left < entries.count else { break }
            let right = left + 1
            let child = right < entries.count && precedes(right, left) ? right : left
            guard precedes(child, parent) else { break }
            entries.swapAt(child, parent)
            parent = child
        }
    }

    mutating func removeAll() {
        entries.removeAll(keepingCapacity: true)
    }

    private func precedes(_ left: Int, _ right: Int) -> Bool {
        let (a, b) = (entries[left], entries[right])
        return a.time != b.time ? a.time < b.time : a.order < b.order
    }
}
