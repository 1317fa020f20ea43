import Primitives

/// Turns keys into telephone-event packets, RFC 4733 section 2.5.1.
///
/// Call `tick` once each packet time in place of sending audio. While it returns a packet, send that (with
/// `RTPSender.header(payloadType:timestamp:marker:)`) and let the audio's time pass with `RTPSender.skip`; when it
/// returns nil, send audio. All packets of an event carry the timestamp of its start, the first has the marker, and
/// the last goes out three times, one each tick, so that a burst of loss does not take all of them.
public struct TelephoneEventSender: Sendable {
    /// One packet to send.
    public struct Packet: Equatable, Sendable {
        /// The payload.
        public var payload: TelephoneEvent
        /// The header's timestamp.
        public var timestamp: UInt32
        /// The header's marker.
        public var marker: Bool
    }

    /// How many times the end is sent.
    static let endPackets = 3
    /// How many keys may wait.
    static let maximumQueue = 128

    private struct Waiting {
        var event: UInt8
        var duration: UInt32
    }

    private struct Current {
        var event: UInt8
        var timestamp: UInt32
        var length: UInt32
        var endsSent = 0
        var isFirst = true
    }

    private let clockRate: Int
    private let gap: UInt32
    /// What waits is `queue[position...]`: taking from the front moves nothing.
    private var queue: [Waiting] = []
    private var position = 0
    private var current: Current?
    private var pauseUntil: UInt32?

    /// Creates a sender.
    ///
    /// - Parameters:
    ///   - clockRate: Of the telephone-event payload type, which is the audio's.
    ///   - gap: Silence between two keys; receivers need some tens of milliseconds to tell them apart.
    public init(clockRate: Int, gap: Duration = .milliseconds(80)) {
        self.clockRate = max(1, clockRate)
        self.gap = UInt32(clamping: RTPClock.samples(gap.wholeNanoseconds, clockRate: max(1, clockRate)))
    }

    /// Whether a key is being sent or waits.
    public var isActive: Bool { current != nil || position < queue.count }

    /// The keys that wait, without the one that is being sent.
    public var waitingKeys: String {
        String(queue[position...].compactMap { TelephoneEvent.key(for: $0.event) })
    }

    /// Adds keys (`0`–`9`, `*`, `#`, `A`–`D`).
    ///
    /// - Parameter duration: Of each key; held to at least 40 ms and to what the payload's 16 bits express (1.3 s at
    ///   48 kHz).
    /// - Returns: False, with nothing added, when a character is no key or too many wait.
    public mutating func enqueue(_ keys: String, duration: Duration = .milliseconds(160)) -> Bool {
        let samples = RTPClock.samples(duration.wholeNanoseconds, clockRate: clockRate)
        let length = UInt32(clamping: min(max(samples, Int64(clockRate) / 25), 0xFFFF))
        var added: [Waiting] = []
        for key in keys {
            guard let event = TelephoneEvent.event(for: key) else { return false }
            added.append(Waiting(event: event, duration: length))
        }
        guard queue.count - position + added.count <= Self.maximumQueue else { return false }
        queue.removeFirst(position)
        position = 0
        queue += added
        return true
    }

    /// Ends what is being sent at the next tick and forgets what waits.
    public mutating func cancel(timestamp: UInt32) {
        queue.removeAll(keepingCapacity: true)
        position = 0
        guard var active = current, active.endsSent == 0 else { return }
        if active.isFirst {
            current = nil
        } else {
            active.length = min(active.length, max(1, timestamp &- active.timestamp))
            current = active
        }
    }

    /// The packet to send at this packet time; nil when audio is to be sent.
    ///
    /// - Parameters:
    ///   - timestamp: Where the audio stream stands (`RTPSender.nextTimestamp`).
    ///   - samples: The packet time in timestamp units.
    public mutating func tick(timestamp: UInt32, samples: UInt32) -> Packet? {
        if current == nil {
            if let pauseUntil {
                guard Int32(bitPattern: timestamp &- pauseUntil) >= 0 else { return nil }
                self.pauseUntil = nil
            }
            guard position < queue.count else { return nil }
            let next = queue[position]
            position += 1
            current = Current(event: next.event, timestamp: timestamp, length: next.duration)
        }
        guard var active = current else { return nil }
        // What has passed when this packet's time is over.
        let passed = timestamp &- active.timestamp &+ samples
        let isEnd = active.endsSent > 0 || passed >= active.length
        let duration = isEnd ? active.length : passed
        let packet = Packet(
            payload: TelephoneEvent(event: active.event, isEnd: isEnd, duration: UInt16(clamping: duration)),
            timestamp: active.timestamp, marker: active.isFirst)
        active.isFirst = false
        if isEnd { active.endsSent += 1 }
        current = active
        if active.endsSent == Self.endPackets {
            current = nil
            pauseUntil = timestamp &+ samples &+ gap
        }
        return packet
    }
}
