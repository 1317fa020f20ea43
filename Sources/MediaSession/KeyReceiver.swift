import Primitives
import RTP

/// The keys that a peer presses, from its telephone events (RFC 4733): each once, as soon as one packet tells of it.
///
/// No keypad is faster than a key each 50 ms. A peer that is would only want to keep us busy, so what is beyond that,
/// and beyond a burst that a network may deliver at once, is dropped.
struct KeyReceiver {
    private static let interval: Duration = .milliseconds(50)
    private static let burst = 16

    private var events: TelephoneEventReceiver
    /// Up to here, keys that came have used the time.
    private var usedUntil = MonotonicTime.zero

    init(clockRate: Int) {
        events = TelephoneEventReceiver(clockRate: clockRate)
    }

    /// Takes a telephone-event packet. Allocates only when a key goes down or up.
    mutating func receive(_ header: RTPHeader, payload: Span<UInt8>, at now: MonotonicTime) -> Character? {
        for case .began(let event) in events.receive(header, payload: payload, at: now) {
            guard let key = TelephoneEvent.key(for: event) else { return nil }
            let next = max(usedUntil, now) + Self.interval
            guard next - now <= Self.interval * Self.burst else { return nil }
            usedUntil = next
            return key
        }
        return nil
    }
}
