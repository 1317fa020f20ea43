/// A bounded queue of samples inside one thread. A full queue drops the oldest samples: late audio is worth less than
/// fresh audio. Allocates once.
struct SampleRing: ~Copyable {
    let capacity: Int
    private let storage: UnsafeMutablePointer<Int16>
    private var head = 0
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = max(1, capacity)
        storage = .allocate(capacity: self.capacity)
        storage.initialize(repeating: 0, count: self.capacity)
    }

    deinit {
        storage.deallocate()
    }

    /// Appends the samples; returns how many old (or, past the capacity, new) samples were dropped for them.
    mutating func write(_ samples: UnsafeBufferPointer<Int16>) -> Int {
        guard let base = samples.baseAddress, samples.count > 0 else { return 0 }
        let kept = min(samples.count, capacity)
        let dropped = max(0, count + kept - capacity)
        drop(dropped)
        var tail = head + count
        if tail >= capacity { tail -= capacity }
        let first = min(kept, capacity - tail)
        let newest = base + (samples.count - kept)
        (storage + tail).update(from: newest, count: first)
        storage.update(from: newest + first, count: kept - first)
        count += kept
        return dropped + (samples.count - kept)
    }

    /// Takes up to the buffer's length of the oldest samples; returns how many.
    mutating func read(into buffer: UnsafeMutableBufferPointer<Int16>) -> Int {
        guard let base = buffer.baseAddress else { return 0 }
        let taken = min(buffer.count, count)
        let first = min(taken, capacity - head)
        base.update(from: storage + head, count: first)
        (base + first).update(from: storage, count: taken - first)
        drop(taken)
        return taken
    }

    /// Forgets the oldest samples.
    mutating func drop(_ samples: Int) {
        let dropped = min(max(0, samples), count)
        head += dropped
        if head >= capacity { head -= capacity }
        count -= dropped
    }

    /// Forgets everything.
    mutating func removeAll() {
        head = 0
        count = 0
    }
}

extension UnsafeMutableBufferPointer<Int16> {
    /// Writes silence from `start` to the end.
    func silence(from start: Int) {
        guard let baseAddress, start < count else { return }
        (baseAddress + start).update(repeating: 0, count: count - start)
    }
}
