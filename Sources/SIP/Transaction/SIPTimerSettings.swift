import Primitives

/// The base values of the transaction timers (RFC 3261 table 4, RFC 6026); every timer A to M derives from them.
///
/// | timer | what it does | value |
/// |---|---|---|
/// | A | repeats an INVITE, UDP only | `t1`, doubling |
/// | B | gives up an INVITE without any response | 64 · `t1` |
/// | C | cancels an INVITE without a final response | given with ``TransactionLayer/send(_:over:sentBy:timerC:at:)`` |
/// | D | absorbs repeated final responses to an INVITE | `responseWait` on UDP, else 0 |
/// | E | repeats another request, UDP only | `t1`, doubling up to `t2` |
/// | F | gives up another request | 64 · `t1` |
/// | G | repeats a 3xx–6xx to an INVITE, UDP only | `t1`, doubling up to `t2` |
/// | H | gives up waiting for the ACK | 64 · `t1` |
/// | I | absorbs repeated ACKs | `t4` on UDP, else 0 |
/// | J | absorbs repeats of another request | 64 · `t1` on UDP, else 0 |
/// | K | absorbs repeated responses to another request | `t4` on UDP, else 0 |
/// | L | absorbs repeats of an INVITE answered with 2xx | 64 · `t1` |
/// | M | collects further 2xx responses to an INVITE | 64 · `t1` |
public struct SIPTimerSettings: Hashable, Sendable {
    /// The estimated round-trip time, and the first retransmission interval.
    public var t1: Duration
    /// The largest retransmission interval of anything but an INVITE request.
    public var t2: Duration
    /// How long a message may stay in the network.
    public var t4: Duration
    /// Timer D on unreliable transports; at least 32 s (RFC 3261 section 17.1.1.2).
    public var responseWait: Duration
    /// How long the user of an INVITE server transaction may take before the layer sends 100 (section 17.2.1).
    public var tryingDelay: Duration

    /// Creates settings; the defaults are the RFC's.
    public init(
        t1: Duration = .milliseconds(500), t2: Duration = .seconds(4), t4: Duration = .seconds(5),
        responseWait: Duration = .seconds(32), tryingDelay: Duration = .milliseconds(200)
    ) {
        self.t1 = t1
        self.t2 = t2
        self.t4 = t4
        self.responseWait = responseWait
        self.tryingDelay = tryingDelay
    }

    /// 64 · T1: the value of the timers B, F, H, J, L and M.
    public var transactionTimeout: Duration { t1 * 64 }
}

/// How much a transaction layer may hold, and what it does when full.
public struct TransactionLimits: Hashable, Sendable {
    /// Client transactions at one time; a request beyond that fails at once.
    public var clientTransactions: Int
    /// Server transactions at one time; a request beyond that is answered 503 without a transaction.
    public var serverTransactions: Int
    /// Seconds in the Retry-After header of such a 503; each one gets a random value out of the range.
    public var retryAfter: ClosedRange<Int>
    /// Whether a request that arrives a second time over another path is refused with 482 (RFC 3261 section
    /// 8.2.2.2). A user agent does so; a proxy must not, since a request may pass it twice (a spiral).
    public var rejectsMergedRequests: Bool

    /// Creates limits; the defaults suit a user agent.
    public init(
        clientTransactions: Int = 10_000, serverTransactions: Int = 10_000, retryAfter: ClosedRange<Int> = 5...15,
        rejectsMergedRequests: Bool = true
    ) {
        self.clientTransactions = clientTransactions
        self.serverTransactions = serverTransactions
        self.retryAfter = retryAfter
        self.rejectsMergedRequests = rejectsMergedRequests
    }
}
