import Primitives

/// How late packets arrive, relative to the fastest of the last seconds.
///
/// Holds the last 6 s of relative delays. Their least one is what the network takes at best; the 99th percentile
/// above it is the playout delay with which one packet in a hundred comes too late. A percentile of a sliding window
/// rises as soon as a few packets are late, and forgets them all at once when the window has passed: no decay can
/// keep the delay up after a disturbance. The values are few, so they are looked at anew for each packet, which also
/// makes the estimate independent of clock drift.
struct DelayEstimator: Sendable {
    static let window: Int64 = 6_000_000_000
    /// 6 s of the shortest packets (10 ms), rounded up to a power of two for cheap indexing.
    static let capacity = 1_024

    /// The least relative delay of the window, in nanoseconds; an arbitrary origin makes it comparable only.
    private(set) var base: Int64 = 0
    /// The 99th percentile of the window above `base`, in nanoseconds.
    private(set) var percentile: Int64 = 0

    private var delays = [Int64](repeating: 0, count: DelayEstimator.capacity)
    private var arrivals = [Int64](repeating: 0, count: DelayEstimator.capacity)
    /// The largest delays, largest first; as many as a hundredth of the capacity.
    private var largest = [Int64](repeating: 0, count: DelayEstimator.capacity / 100 + 1)
    private var first = 0
    private(set) var count = 0

    /// Forgets everything.
    mutating func clear() {
        first = 0
        count = 0
    }

    /// Forgets all but the latest values: the network changed for good.
    mutating func keepLatest(_ number: Int) {
        let surplus = max(0, count - number)
        first = (first + surplus) & (Self.capacity - 1)
        count -= surplus
        update()
    }

    /// Adds the relative delay (arrival less media time) of a packet.
    mutating func add(_ delay: Int64, arrival: Int64) {
        while count > 0, count == Self.capacity || arrival &- arrivals[first] > Self.window {
            first = (first + 1) & (Self.capacity - 1)
            count -= 1
        }
        let index = (first + count) & (Self.capacity - 1)
        delays[index] = delay
        arrivals[index] = arrival
        count += 1
        update()
    }

    /// One pass: the minimum, and the k largest in a small sorted list, where k is a hundredth of the count.
    private mutating func update() {
        guard count > 0 else { return }
        let wanted = min(largest.count, max(1, (count + 50) / 100))
        var held = 0
        var least = Int64.max
        for position in 0..<count {
            let delay = delays[(first + position) & (Self.capacity - 1)]
            least = min(least, delay)
            if held == wanted {
                guard delay > largest[held - 1] else { continue }
            } else {
                held += 1
            }
            var slot = held - 1
            while slot > 0, largest[slot - 1] < delay {
                largest[slot] = largest[slot - 1]
                slot -= 1
            }
            largest[slot] = delay
        }
        base = least
        percentile = largest[held - 1] &- least
    }
}
