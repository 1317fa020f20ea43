import Primitives
import RTP

/// The keys that a peer presses, from its telephone events (RFC 4733): each once, as soon as one packet tells of it.
///
/// What is beyond the pace of a keypad, and beyond a burst that a network may deliver at once, would only keep us busy, and
/// is dropped.
struct KeyReceiver {
    private var events: TelephoneEventReceiver
    private var pace = Pace.keypad

    init(clockRate: Int) {
        events = TelephoneEventReceiver(clockRate: clockRate)
    }

    /// Takes a telephone-event packet. Allocates only when a key goes down or up.
    mutating func receive(_ header: RTPHeader, payload: Span<UInt8>, at now: MonotonicTime) -> Character? {
        for case .began(let event) in events.receive(header, payload: payload, at: now) {
            guard let key = TelephoneEvent.key(for: event), pace.allows(at: now) else { return nil }
            return key
        }
        return nil
    }
}
