import Primitives
import SIP
import STUN

/// What is sent to keep a flow alive, and to learn whether it still is.
public enum KeepAliveProbe: Hashable, Sendable {
    /// A double CRLF (RFC 5626, section 3.5.1), or a ping on a WebSocket (RFC 7118, section 6).
    case ping
    /// A STUN Binding request over UDP (RFC 5626, section 3.5.2).
    case binding(STUNTransactionID)
}

/// What came back.
public enum KeepAliveAnswer: Hashable, Sendable {
    /// CRLF, or a pong.
    case pong
    /// A STUN Binding response: our address as the server sees it, nil when it refuses to say.
    case binding(STUNTransactionID, STUNAddress?)
}

/// Keeps one flow alive (RFC 5626, section 4.4) and notices when it is dead, or when a NAT gave it another address.
///
/// A value without I/O or clock: whoever drives it sends what `nextAction` says, reports what comes back to `receive`, and
/// calls `timeout` no later than `nextTimeout`. Missing answers count only when the server is known to answer: it takes
/// part in RFC 5626, or has answered before. Many do not, and their flows are kept open all the same.
public struct KeepAlive: Sendable {
    /// How a flow is kept alive.
    public enum Kind: String, Hashable, Sendable {
        /// CRLF.
        case crlf
        /// STUN Binding.
        case stun
        /// WebSocket ping.
        case webSocketPing = "websocket-ping"
    }

    /// What to do.
    public enum Action: Hashable, Sendable {
        /// Send this.
        case send(KeepAliveProbe)
        /// The flow is dead, for this reason. Nothing follows.
        case failed(String)
        /// A NAT has given us another address: the registrar must be told.
        case addressChanged
    }

    /// How long a pong may take (RFC 5626, section 4.4.1).
    public static let pongTimeout: Duration = .seconds(10)
    /// The longest silence on streams and on UDP, when the server does not say (RFC 5626, section 4.4).
    static let defaultInterval = (stream: Duration.seconds(120), datagram: Duration.seconds(29))
    /// What a server may ask for.
    private static let intervals: ClosedRange<Duration> = .seconds(10) ... .seconds(3_600)
    /// STUN requests to a server that never answered, after which it is spared them.
    private static let patience = 3
    /// RFC 8489, section 6.2.1: the first pause, how often a request goes out, and the last pause in first ones.
    private static let retransmission = (first: Duration.milliseconds(500), count: 7, last: 16)

    /// A STUN request that waits for its answer.
    private struct Request {
        var transaction: STUNTransactionID
        var sent: Int
        /// When it is sent again or, when it was sent often enough, when the flow is dead.
        var due: MonotonicTime
        var pause: Duration
    }

    /// How the flow is kept alive.
    public private(set) var kind: Kind
    private let isDatagram: Bool
    private var random: RandomSource
    private var interval: Duration
    private var nextProbe: MonotonicTime?
    private var pongDeadline: MonotonicTime?
    private var request: Request?
    /// The last request to a server that is not known to answer: it gets no second copy.
    private var unanswered: STUNTransactionID?
    private var unansweredCount = 0
    private var isExpectedToAnswer = false
    private var mapped: STUNAddress?
    private var isOver = false
    private var actions: [Action] = []

    /// Creates the keeper of a new flow; it rests until `registered`.
    public init(transport: SIPTransport, random: RandomSource = .system) {
        isDatagram = transport == .udp
        kind = isDatagram ? .stun : transport.isWebSocket ? .webSocketPing : .crlf
        interval = isDatagram ? Self.defaultInterval.datagram : Self.defaultInterval.stream
        self.random = random
    }

    /// When `timeout` is due; nil while there is nothing to wait for.
    public var nextTimeout: MonotonicTime? {
        [nextProbe, pongDeadline, request?.due].compactMap(\.self).min()
    }

    /// The next thing to do; nil when there is nothing. Take all of them after every call.
    public mutating func nextAction() -> Action? {
        actions.isEmpty ? nil : actions.removeFirst()
    }

    /// The registrar confirmed the binding over this flow: the flow is to be kept alive from now on, on its terms.
    public mutating func registered(_ terms: RegistrarTerms, at now: MonotonicTime) {
        guard !isOver else { return }
        let standard = isDatagram ? Self.defaultInterval.datagram : Self.defaultInterval.stream
        let wanted = terms.flowTimer.map { min(max($0, Self.intervals.lowerBound), Self.intervals.upperBound) }
        // Over UDP a NAT on the way may be less patient than the server.
        interval = isDatagram ? min(wanted ?? standard, standard) : wanted ?? standard
        if terms.supportsOutbound || terms.flowTimer != nil { isExpectedToAnswer = true }
        let latest = now + interval
        if request == nil, nextProbe == nil || nextProbe ?? latest > latest { plan(at: now) }
    }

    /// Something came back.
    public mutating func receive(_ answer: KeepAliveAnswer, at now: MonotonicTime) {
        guard !isOver else { return }
        switch answer {
        case .pong:
            guard !isDatagram else { return }
            isExpectedToAnswer = true
            pongDeadline = nil
        case .binding(let transaction, let address):
            guard transaction == request?.transaction || transaction == unanswered else { return }
            request = nil
            unanswered = nil
            unansweredCount = 0
            isExpectedToAnswer = true
            if let address {
                let isChanged = mapped != nil && mapped != address
                mapped = address
                if isChanged { actions.append(.addressChanged) }
            }
            if nextProbe == nil { plan(at: now) }
        }
    }

    /// The time has come for whatever `nextTimeout` was about.
    public mutating func timeout(at now: MonotonicTime) {
        guard !isOver else { return }
        if let pongDeadline, pongDeadline <= now {
            let kind = kind == .webSocketPing ? "WebSocket ping" : "CRLF ping"
            return fail("the server no longer answers: no reply to a \(kind) within \(Self.pongTimeout)")
        }
        if let due = request?.due, due <= now { repeatRequest(at: now) }
        if let nextProbe, nextProbe <= now { probe(at: now) }
    }

    private mutating func probe(at now: MonotonicTime) {
        switch kind {
        case .crlf, .webSocketPing:
            actions.append(.send(.ping))
            if isExpectedToAnswer, !isDatagram { pongDeadline = pongDeadline ?? now + Self.pongTimeout }
            plan(at: now)
        case .stun where isExpectedToAnswer:
            let transaction = STUNTransactionID(using: &random)
            let pause = Self.retransmission.first
            request = Request(transaction: transaction, sent: 1, due: now + pause, pause: pause)
            nextProbe = nil
            actions.append(.send(.binding(transaction)))
        case .stun:
            guard unansweredCount < Self.patience else {
                // It does not speak STUN. Blank datagrams keep a NAT open as well, and every server drops them.
                kind = .crlf
                return probe(at: now)
            }
            let transaction = STUNTransactionID(using: &random)
            unanswered = transaction
            unansweredCount += 1
            actions.append(.send(.binding(transaction)))
            plan(at: now)
        }
    }

    private mutating func repeatRequest(at now: MonotonicTime) {
        guard var pending = request else { return }
        guard pending.sent < Self.retransmission.count else {
            return fail("the server no longer answers: no reply to \(pending.sent) STUN requests")
        }
        pending.sent += 1
        pending.pause = pending.pause * 2
        let isLast = pending.sent == Self.retransmission.count
        pending.due = now + (isLast ? Self.retransmission.first * Self.retransmission.last : pending.pause)
        request = pending
        actions.append(.send(.binding(pending.transaction)))
    }

    /// A random point in the last fifth of the interval, so that the flows of many clients are not kept alive in step.
    private mutating func plan(at now: MonotonicTime) {
        nextProbe = now + interval * (0.8 + 0.2 * random.unitInterval())
    }

    private mutating func fail(_ reason: String) {
        isOver = true
        nextProbe = nil
        pongDeadline = nil
        request = nil
        actions.append(.failed(reason))
    }
}
