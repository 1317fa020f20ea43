import Primitives

/// Puts the packets of one audio stream in order and plays them after an adaptive delay.
///
/// The owner inserts packets as they arrive and calls `pull` whenever its decoder has nothing more to play. There is no
/// schedule of pulls: a packet is pulled when the one before is played, so 10, 20, 40 or 60 ms packets and a sound card
/// whose clock drifts all work alike. The delay kept is *measured* at each pull, as the time from the media's earliest
/// possible arrival to now, and held between the target and one frame above it:
///
/// - The target is the 99th percentile of the relative delays of the last 6 s, between floor and ceiling.
/// - Below the target, a frame is concealed without using up a packet.
/// - More than a frame above, a packet is thrown away: at once when `isQuiet` says that nobody hears it, otherwise one
///   at a time with a pause between; beyond the ceiling as many as it takes.
/// - With nothing to play, the stream waits, which raises the delay; a stall is heard once and then worked off.
///
/// A value with fixed storage: after `init`, inserting and pulling allocate nothing. Not for sharing between threads;
/// keep the only copy, or copy-on-write makes it allocate.
public struct JitterBuffer: Sendable {
    struct Slot: Sendable {
        var isUsed = false
        /// A packet that takes a place in the sequence but holds no audio, such as a telephone event.
        var isPlaceholder = false
        var marker = false
        var payloadType: UInt8 = 0
        var length = 0
        var sequence: Int64 = 0
        var timestamp: Int64 = 0
        var arrival: Int64 = 0
    }

    /// A packet that does not fit the current stream; a second one that follows it makes a new stream.
    struct Suspect: Sendable {
        var ssrc: UInt32
        var sequenceNumber: UInt16
        var timestamp: UInt32
    }

    /// The limits that the buffer was made with; capacity as rounded.
    public let configuration: Configuration

    /// Whether what was played last is so quiet that leaving out or repeating a frame is not heard. The owner sets it
    /// after each decoded frame; it lets the delay adapt at once.
    public var isQuiet = false

    /// How many timestamp units a packet spans: what two packets in a row showed last.
    public internal(set) var frameSamples: Int64

    let mask: Int64
    let floor: Int64
    let ceiling: Int64
    var slots: [Slot]
    /// The payloads, `maxPayloadBytes` for each slot.
    var storage: [UInt8]
    var counters = JitterBufferStatistics()
    var estimator = DelayEstimator()

    // The stream. Sequence numbers and timestamps are extended to 64 bits.
    var ssrc: UInt32?
    var highestSequence: Int64 = 0
    var referenceSequence: Int64 = 0
    var referenceTimestamp: Int64 = 0
    var referenceArrival: Int64 = 0
    var suspect: Suspect?
    var candidateFrame: Int64 = 0
    var beyondCeiling = 0

    // Playout.
    var isPlaying = false
    var nextSequence: Int64 = 0
    var nextTimestamp: Int64 = 0
    /// Bit n: whether the packet n + 1 places before `nextSequence` was there.
    var history: UInt64 = 0
    /// Pull time less media time, smoothed, in nanoseconds.
    var playoutOffset: Int64 = 0
    var lastAdjustment: Int64?
    /// Pulls in a row that found nothing.
    var emptyPulls = 0
    /// Frames concealed by them: so many of the next packets, should they be lost, need not be concealed again.
    var concealedAhead = 0

    /// Creates an empty buffer.
    public init(configuration: Configuration) {
        var rounded = configuration
        var capacity = 4
        while capacity < min(configuration.capacity, 4_096) { capacity *= 2 }
        rounded.capacity = capacity
        self.configuration = rounded
        mask = Int64(capacity - 1)
        frameSamples = Int64(configuration.frameSamples)
        floor = max(0, configuration.floor.wholeNanoseconds)
        ceiling = max(floor, configuration.ceiling.wholeNanoseconds)
        slots = [Slot](repeating: Slot(), count: capacity)
        storage = [UInt8](repeating: 0, count: capacity * configuration.maxPayloadBytes)
    }

    /// What the buffer did so far, and the delay now.
    public var statistics: JitterBufferStatistics {
        var result = counters
        result.targetDelay = .nanoseconds(target)
        result.currentDelay = .nanoseconds(isPlaying ? playoutOffset &- estimator.base : 0)
        return result
    }

    /// Packets in the buffer now, placeholders included.
    public var count: Int {
        slots.reduce(0) { $0 + ($1.isUsed ? 1 : 0) }
    }

    /// Empties the buffer and forgets the stream; counters and settings stay.
    public mutating func reset() {
        forgetStream()
        ssrc = nil
        suspect = nil
    }

    // MARK: Shared

    /// The playout delay aimed at, in nanoseconds.
    var target: Int64 {
        min(max(estimator.count > 0 ? estimator.percentile : 0, floor), ceiling)
    }

    var frameNanoseconds: Int64 { nanoseconds(frameSamples) }

    func nanoseconds(_ samples: Int64) -> Int64 {
        RTPClock.nanoseconds(samples, clockRate: configuration.clockRate)
    }

    func slotIndex(_ sequence: Int64) -> Int { Int(sequence & mask) }

    /// Whether the packet with this extended sequence number is in the buffer.
    func holds(_ sequence: Int64) -> Bool {
        let slot = slots[slotIndex(sequence)]
        return slot.isUsed && slot.sequence == sequence
    }

    /// Gives up or uses up the next packet in the sequence.
    mutating func advance() {
        let index = slotIndex(nextSequence)
        let wasThere = holds(nextSequence)
        if wasThere {
            if !slots[index].isPlaceholder { nextTimestamp = slots[index].timestamp &+ frameSamples }
            slots[index].isUsed = false
        } else {
            nextTimestamp &+= frameSamples
        }
        history = history << 1 | (wasThere ? 1 : 0)
        nextSequence &+= 1
    }

    mutating func forgetStream() {
        for index in slots.indices { slots[index].isUsed = false }
        estimator.clear()
        isPlaying = false
        history = 0
        lastAdjustment = nil
        emptyPulls = 0
        concealedAhead = 0
        candidateFrame = 0
        beyondCeiling = 0
    }
}
