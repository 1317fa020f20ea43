import Primitives
import SIP

/// Keeping the path to the platform alive (RFC 5626, section 4.4).
extension UserAgent {
    /// How the path is kept alive; nil while there is none, or none that is registered.
    public var keepAliveKind: KeepAlive.Kind? { keepAlive?.kind }

    /// A pong or a STUN answer arrived over a flow.
    public mutating func receiveKeepAlive(_ answer: KeepAliveAnswer, from flow: SIPFlow, at now: MonotonicTime) {
        guard let path, flow == path.flow else { return }
        keepAlive?.receive(answer, at: now)
        settleKeepAlive(at: now)
        settle(at: now)
    }

    /// The binding over the path was confirmed.
    mutating func startKeepAlive(at now: MonotonicTime) {
        guard let path, let registration else { return }
        if keepAlive == nil {
            let source: RandomSource = if case .seeded = random { .seeded(random.next()) } else { .system }
            keepAlive = KeepAlive(transport: path.flow.transport, random: source)
        }
        keepAlive?.registered(registration.terms, at: now)
    }

    mutating func keepAliveTimeout(at now: MonotonicTime) {
        guard let due = keepAlive?.nextTimeout, due <= now else { return }
        keepAlive?.timeout(at: now)
        settleKeepAlive(at: now)
    }

    private mutating func settleKeepAlive(at now: MonotonicTime) {
        while let path, let action = keepAlive?.nextAction() {
            switch action {
            case .send(let probe): emit(.keepAlive(probe, path.flow))
            case .failed(let reason):
                emit(.closeFlow(path.flow))
                flowLost(reason: reason, at: now)
            case .addressChanged:
                // The registrar would send calls to where nobody is any more.
                registration?.flowReplaced(at: now)
            }
        }
    }
}
