import Synchronization

/// A bounded queue of samples from one thread to one other, without locks: the media thread must never wait for a
/// disk. A full queue refuses the newest samples.
final class SampleQueue: @unchecked Sendable {
    let capacity: Int
    private let storage: UnsafeMutablePointer<Int16>
    /// Samples ever written, by the producer only.
    private let written = Atomic<Int>(0)
    /// Samples ever read, by the consumer only.
    private let read = Atomic<Int>(0)

    init(capacity: Int) {
        self.capacity = max(1, capacity)
        storage = .allocate(capacity: self.capacity)
        storage.initialize(repeating: 0, count: self.capacity)
    }

    deinit {
        storage.deallocate()
    }

    /// Room for samples. Producer.
    var room: Int {
        capacity - (written.load(ordering: .relaxed) &- read.load(ordering: .acquiring))
    }

    /// Writes `count` samples that `sample(index)` gives; the caller has checked `room`. Producer.
    @inline(__always)
    func write(count: Int, _ sample: (Int) -> Int16) {
        let start = written.load(ordering: .relaxed)
        var slot = start % capacity
        for index in 0..<count {
            storage[slot] = sample(index)
            slot = slot + 1 == capacity ? 0 : slot + 1
        }
        // Releases the samples to the consumer.
        written.store(start &+ count, ordering: .releasing)
    }

    /// The samples that lie together at the front; empty when there are none. Consumer.
    var front: UnsafeBufferPointer<Int16> {
        let start = read.load(ordering: .relaxed)
        let count = written.load(ordering: .acquiring) &- start
        let slot = start % capacity
        return UnsafeBufferPointer(start: storage + slot, count: min(count, capacity - slot))
    }

    /// Frees samples that `front` gave. Consumer.
    func consume(_ count: Int) {
        read.store(read.load(ordering: .relaxed) &+ count, ordering: .releasing)
    }
}
