import Primitives
import SIP

/// What the environment tells its log: who came and went, and what became of each call.
///
/// No event carries a token, a body or another secret.
public enum EnvironmentEvent: Sendable, Equatable {
    /// A device registered or, with `isRefresh`, renewed its registration for `expires` seconds.
    case registered(user: String, application: String, contact: String, flow: SIPFlow, expires: Int, isRefresh: Bool)
    /// A device left; `devicesLeft` of the user remain.
    case unregistered(user: String, application: String, contact: String, reason: DepartureReason, devicesLeft: Int)
    /// A registration was refused.
    case registrationRefused(user: String, flow: SIPFlow, status: Int, reason: String)
    /// A call rings at `devices` devices.
    case callStarted(call: String, from: String, to: String, application: String, devices: Int)
    /// A device answered the call `afterRinging` its start.
    case callAnswered(call: String, contact: String, afterRinging: Duration)
    /// The call was not established: the status that its caller got, and why.
    case callFailed(call: String, status: Int, reason: String)
    /// One side hung up an established call.
    case callEnded(call: String, by: String)
    /// A request was refused before it became a call.
    case requestRefused(method: String, from: String, flow: SIPFlow, status: Int, reason: String)
    /// A source sends more than its limits allow; told once every 10 s of a flood.
    case rateLimited(flow: SIPFlow)
    /// A message could not be read.
    case malformed(flow: SIPFlow, reason: String)
    /// So many refusals and unreadable messages were left out of the log, to keep it readable in a flood.
    case suppressed(count: Int)

    /// Why a device left.
    public enum DepartureReason: Sendable, Equatable {
        /// It unregistered.
        case unregistered
        /// Its registration ran out.
        case expired
        /// Its connection closed or its address became unreachable.
        case flowFailed(String)
        /// A new registration took its place: the user has too many devices.
        case displaced
    }
}

extension EnvironmentEvent {
    /// Whether anybody who can send a packet can cause the event, as often as packets arrive.
    var isStrangersNoise: Bool {
        switch self {
        case .registrationRefused, .requestRefused, .malformed: true
        default: false
        }
    }
}

/// Keeps strangers from flooding the log: their events pass at one a second after a first few, the rest are counted.
struct EventThrottle: Sendable {
    static let limit = RateLimit(perSecond: 1, burst: 20)

    private var bucket: TokenBucket?
    private var suppressed = 0

    /// What of an event goes to the log: the event, itself after the number of those left out before it, or nothing.
    mutating func pass(_ event: EnvironmentEvent, at now: MonotonicTime) -> [EnvironmentEvent] {
        if event.isStrangersNoise {
            var bucket = bucket ?? TokenBucket(Self.limit, at: now)
            let isPassed = bucket.take(Self.limit, at: now)
            self.bucket = bucket
            guard isPassed else {
                suppressed &+= 1
                return []
            }
        }
        guard suppressed > 0 else { return [event] }
        defer { suppressed = 0 }
        return [.suppressed(count: suppressed), event]
    }
}

/// What the network sent, fit for a line of a log: no control characters, no longer than a user's name may be.
func loggable(_ text: String?) -> String {
    String(String.UnicodeScalarView((text ?? "").unicodeScalars.prefix(255))).withoutControls
}
