import Primitives
import SIP

/// How long a call lives without a sign of life, and who gives it (RFC 4028).
struct SessionTimer: Sendable {
    /// Seconds; an interval below this is not allowed (section 4), and a peer that names one gets this.
    static let lowestInterval = 90
    /// What the header can say (section 4); no time that is made of it overflows.
    static let highestInterval = Int(UInt32.max)

    /// Seconds.
    let interval: Int
    /// Whether we refresh.
    let isRefresher: Bool
    /// When our next refresh is due.
    var refreshAt: MonotonicTime?
    /// When the call is given up: a third of the interval, 32 s at most, before it runs out (section 10).
    let byeAt: MonotonicTime
    /// Whether a refresh of ours waits to be sent or answered.
    var isRefreshing = false

    init(seconds: Int, isRefresher: Bool, at now: MonotonicTime) {
        interval = min(max(seconds, Self.lowestInterval), Self.highestInterval)
        self.isRefresher = isRefresher
        refreshAt = isRefresher ? now + .seconds(interval) / 2 : nil
        byeAt = now + .seconds(interval) - min(.seconds(32), .seconds(interval) / 3)
    }

    var nextTimeout: MonotonicTime { isRefreshing ? byeAt : min(refreshAt ?? .distantFuture, byeAt) }
}

/// What a callee makes of the session interval that a request asks for (RFC 4028, section 9).
enum SessionTimerAnswer {
    /// No timer.
    case none
    /// 422 with this Min-SE, in seconds.
    case tooSmall(Int)
    /// The value for the 2xx, and whether the peer must understand it.
    case accept(SIPSessionExpires, isRequired: Bool)

    /// - Parameters:
    ///   - wanted: our own wish, in seconds; nil for none.
    ///   - minimum: the smallest interval that we take.
    init(for request: SIPMessage, wanted: Int?, minimum: Int) {
        let isSupported = request.hasOption("timer", in: "Supported") || request.hasOption("timer", in: "Require")
        let lowest = max(minimum, min(request.minSE ?? 0, SessionTimer.highestInterval))
        if let asked = request.sessionExpires {
            // Who does not know the timer cannot repeat its request with another one: a proxy wrote it.
            if isSupported, asked.seconds < minimum {
                self = .tooSmall(minimum)
                return
            }
            let refresher = isSupported ? asked.refresher ?? .uac : .uas
            self = .accept(
                SIPSessionExpires(seconds: max(asked.seconds, lowest), refresher: refresher),
                isRequired: refresher == .uac)
        } else if isSupported, let wanted {
            self = .accept(SIPSessionExpires(seconds: max(wanted, lowest), refresher: .uas), isRequired: false)
        } else {
            self = .none
        }
    }
}
