import Primitives

extension JitterBuffer {
    /// The buffer's limits.
    public struct Configuration: Sendable, Equatable {
        /// Timestamp units a second: 48000 for Opus, 8000 for G.711.
        public var clockRate: Int
        /// How many timestamp units a packet spans until the stream shows it.
        public var frameSamples: Int
        /// The least playout delay.
        public var floor: Duration
        /// The greatest playout delay; what a stall piles up beyond it is thrown away.
        public var ceiling: Duration
        /// How many packets there is room for; rounded up to a power of two.
        public var capacity: Int
        /// The largest payload that is taken.
        public var maxPayloadBytes: Int

        /// Creates a configuration; `frameSamples` defaults to 20 ms.
        public init(
            clockRate: Int, frameSamples: Int? = nil, floor: Duration = .milliseconds(20),
            ceiling: Duration = .milliseconds(200), capacity: Int = 64, maxPayloadBytes: Int = 1_500
        ) {
            self.clockRate = min(max(1, clockRate), 384_000)
            self.frameSamples = max(1, frameSamples ?? self.clockRate / 50)
            self.floor = floor
            self.ceiling = max(floor, ceiling)
            self.capacity = max(4, capacity)
            self.maxPayloadBytes = max(1, maxPayloadBytes)
        }
    }

    /// What to play next.
    public enum Output: Sendable, Equatable {
        /// A packet: `length` bytes were written. It spans `samples` timestamp units, as far as the stream shows;
        /// the decoder knows exactly.
        case packet(length: Int, header: RTPHeader, samples: Int)
        /// Conceal one frame (`JitterBuffer.frameSamples`). With `fecLength`, that many bytes of the *following* packet
        /// were written: decode its forward error correction; the packet itself comes with the next pull.
        case lost(fecLength: Int?)
        /// Nothing is due: the stream has not begun, pauses, or stopped. Play silence or comfort noise for as long as
        /// is convenient (10 ms, say) and ask again.
        case waiting
    }
}

/// What a jitter buffer did, for reports. Counters only grow.
public struct JitterBufferStatistics: Sendable, Equatable {
    /// The delay aimed at.
    public var targetDelay: Duration = .zero
    /// The delay kept, smoothed; relative to the fastest packets of the last seconds.
    public var currentDelay: Duration = .zero
    /// Packets inserted, whatever became of them.
    public var received: UInt64 = 0
    /// Packets played.
    public var played: UInt64 = 0
    /// Packets that came after their time.
    public var late: UInt64 = 0
    /// Packets that were there before.
    public var duplicated: UInt64 = 0
    /// Packets that were not there at their time, the late ones among them.
    public var lost: UInt64 = 0
    /// Frames concealed: for lost packets, for packets waited for, and to raise the delay.
    public var concealed: UInt64 = 0
    /// Frames concealed to raise the delay before packets come too late; among `concealed`.
    public var expanded: UInt64 = 0
    /// How often the next packet was waited for with nothing else to play.
    public var underruns: UInt64 = 0
    /// Packets thrown away: to lower the delay, beyond the ceiling, too large, or of no stream in play.
    public var discarded: UInt64 = 0
    /// How often the stream began anew: another source, a jump of the timestamps or of the sequence.
    public var resets: UInt64 = 0
    /// The time that played packets spent in the buffer, in nanoseconds, summed; by `played` it is the mean.
    public var totalDelayNanoseconds: UInt64 = 0

    /// Creates zeroes.
    public init() {}
}
