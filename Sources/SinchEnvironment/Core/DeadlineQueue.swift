import Primitives

/// What is due when: a binary heap of deadlines, each with the key of what it belongs to.
///
/// An entry is a hint, not a promise: its owner may have moved the deadline or be gone. Whoever takes an entry
/// compares it with the owner's own deadline and pushes it again when that is later. So moving a deadline back, which
/// every refresh of a registration does, costs nothing.
struct DeadlineQueue<Key: Sendable>: Sendable {
    private struct Entry: Sendable {
        var time: MonotonicTime
        var key: Key
    }

    private var heap: [Entry] = []

    /// When the first entry is due.
    var next: MonotonicTime? { heap.first?.time }

    /// How many entries are queued, those of vanished owners included.
    var count: Int { heap.count }

    /// Queues `key` for `time`.
    mutating func push(_ key: Key, at time: MonotonicTime) {
        heap.append(Entry(time: time, key: key))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].time < heap[parent].time else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Takes the first entry that is due at `now`.
    mutating func popDue(at now: MonotonicTime) -> Key? {
        guard let first = heap.first, first.time <= now else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink(from: 0)
        }
        return first.key
    }

    /// Forgets the entries of owners that are gone, once they outnumber `live` owners so much that it pays.
    mutating func prune(live: Int, isLive: (Key) -> Bool) {
        guard heap.count > 64 + 4 * live else { return }
        let entries = heap.filter { isLive($0.key) }
        heap = []
        for entry in entries { push(entry.key, at: entry.time) }
    }

    private mutating func sink(from start: Int) {
        var parent = start
        while true {
            let left = 2 * parent + 1
            guard left < heap.count else { return }
            let right = left + 1
            let child = right < heap.count && heap[right].time < heap[left].time ? right : left
            guard heap[child].time < heap[parent].time else { return }
            heap.swapAt(child, parent)
            parent = child
        }
    }
}
