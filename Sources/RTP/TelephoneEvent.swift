/// The payload of a telephone-event packet, RFC 4733 section 2.3.
public struct TelephoneEvent: Equatable, Sendable {
    /// The payload's length in bytes.
    public static let length = 4

    /// The event's number: 0–9 digits, 10 star, 11 pound, 12–15 A–D, 16 flash.
    public var event: UInt8
    /// Whether the event is over.
    public var isEnd: Bool
    /// The tone's power below 0 dBm0 in dB, 0 to 63.
    public var volume: UInt8
    /// How long the event lasts so far, in timestamp units.
    public var duration: UInt16

    /// Creates a payload.
    public init(event: UInt8, isEnd: Bool = false, volume: UInt8 = 10, duration: UInt16) {
        self.event = event
        self.isEnd = isEnd
        self.volume = min(volume, 63)
        self.duration = duration
    }

    /// Reads a payload; nil when it is too short. Bytes after the fourth are of other blocks and not read.
    public static func parse(_ payload: Span<UInt8>) -> TelephoneEvent? {
        guard payload.count >= length else { return nil }
        return TelephoneEvent(
            event: payload[0], isEnd: payload[1] & 0x80 != 0, volume: payload[1] & 0x3F,
            duration: payload.bigEndian16(at: 2))
    }

    /// Writes the payload.
    ///
    /// - Returns: 4, or 0 when there is no room.
    public func write(into payload: inout MutableSpan<UInt8>) -> Int {
        guard payload.count >= TelephoneEvent.length else { return 0 }
        payload[0] = event
        payload[1] = (isEnd ? 0x80 : 0) | (volume & 0x3F)
        payload.setBigEndian16(duration, at: 2)
        return TelephoneEvent.length
    }

    /// The payload as an array.
    public var encoded: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: TelephoneEvent.length)
        var span = bytes.mutableSpan
        _ = write(into: &span)
        return bytes
    }

    /// The event of a key; nil when there is none. Letters may be of either case.
    public static func event(for key: Character) -> UInt8? {
        guard let position = keys.firstIndex(of: Character(key.uppercased())) else { return nil }
        return UInt8(exactly: position)
    }

    /// The key of an event; nil when it is no key.
    public static func key(for event: UInt8) -> Character? {
        keys.indices.contains(Int(event)) ? keys[Int(event)] : nil
    }

    private static let keys = Array("0123456789*#ABCD")
}
