import DNS
import Network
import Primitives
import SIP

/// Finds the servers of a domain and opens a flow to one of them: DNS, then connections, then the next server when one
/// fails. Confined to its event loop: every method must be called on it.
public final class FlowConnector: @unchecked Sendable {
    // @unchecked: all state is touched on `loop` only, which each entry point checks.

    /// Why a server that had a flow is not to be used for a while.
    public enum ServerFailure: Hashable, Sendable {
        /// The flow broke, or a request got no answer.
        case transport
        /// The server said so itself: 503, with its Retry-After where there was one.
        case unavailable(retryAfter: Duration?)
    }

    /// How long a server is tried last when nobody says how long.
    public static let avoidance: Duration = .seconds(60)

    /// Opens one flow; gives back what abandons the attempt.
    typealias Opening = (
        FlowTarget, _ timeout: Duration, @escaping @Sendable (Result<RegisteredFlow, NetworkError>) -> Void
    ) -> () -> Void

    let loop: EventLoop
    let dns: DNSClient
    let open: Opening
    /// Closes a flow that came too late.
    let close: (SIPFlow) -> Void
    var history = ServerHistory()
    private var random: RandomSource

    /// Creates a connector; `transports` must be used on the same loop.
    public convenience init(loop: EventLoop, transports: SIPTransportSet, dns: DNSClient) {
        self.init(
            loop: loop, dns: dns, random: .system,
            open: { target, timeout, completion in
                transports.connect(target, timeout: timeout, completion: completion).cancel
            },
            close: { transports.close($0) })
    }

    /// With another way to open flows, for tests.
    init(
        loop: EventLoop, dns: DNSClient, random: RandomSource, open: @escaping Opening,
        close: @escaping (SIPFlow) -> Void
    ) {
        self.loop = loop
        self.dns = dns
        self.random = random
        self.open = open
        self.close = close
    }

    /// Locates the target's servers and opens a flow to the first that can be reached.
    ///
    /// - Parameter completion: called once, on the loop and never from within this call, unless the attempt is cancelled.
    ///   Its error lists what was tried and why it failed.
    /// - Returns: the attempt, which can be cancelled; it goes on when this is not kept.
    @discardableResult
    public func connect(
        to target: ServerTarget, completion: @escaping @Sendable (Result<RegisteredFlow, NetworkError>) -> Void
    ) -> FlowEstablishment {
        loop.checkIsolated()
        // Each attempt draws from a sequence of its own.
        let seed: RandomSource = if case .seeded = random { .seeded(random.next()) } else { .system }
        let attempt = FlowEstablishment(self, target: target, random: seed, completion: completion)
        loop.execute { attempt.start() }
        return attempt
    }

    /// Remembers that the server behind a flow failed, so that the next `connect` tries it last.
    public func reportFailure(_ failure: ServerFailure, of flow: SIPFlow) {
        loop.checkIsolated()
        let duration: Duration
        switch failure {
        case .transport: duration = Self.avoidance
        case .unavailable(let retryAfter): duration = retryAfter ?? Self.avoidance
        }
        history.markFailed(flow.transport, flow.remote, until: loop.now + duration, at: loop.now)
    }
}
