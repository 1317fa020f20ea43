import Primitives

/// A time in NTP's form: seconds since 1900 and their 2^32nds (RFC 3550 section 4).
public struct NTPTimestamp: Equatable, Hashable, Sendable {
    /// Seconds in the upper, the fraction in the lower half.
    public var rawValue: UInt64

    /// Creates a timestamp from its 64 bits.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Creates a timestamp from nanoseconds since 1970, as `CLOCK_REALTIME` counts.
    ///
    /// One reading of that clock at the start, carried on with the monotonic clock, keeps round-trip times right when
    /// somebody sets the wall clock.
    public init(unixNanoseconds: Int64) {
        var (seconds, rest) = unixNanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        if rest < 0 {
            seconds -= 1
            rest += 1_000_000_000
        }
        let whole = UInt64(bitPattern: seconds &+ 2_208_988_800) & 0xFFFF_FFFF
        rawValue = whole << 32 | (UInt64(rest) << 32) / 1_000_000_000
    }

    /// The middle 32 bits: units of 1/65536 s, wrapping every 18 hours.
    public var middle: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }

    /// A span in units of 1/65536 s, held to what 32 bits express.
    static func shortUnits(_ duration: Duration) -> UInt32 {
        let (seconds, rest) = max(0, duration.wholeNanoseconds).quotientAndRemainder(dividingBy: 1_000_000_000)
        guard seconds < 65_536 else { return .max }
        return UInt32(clamping: seconds << 16 + (rest << 16) / 1_000_000_000)
    }
}
