import Primitives

/// Servers that failed lately: they are tried last until some time has passed (RFC 3263, 4.3; RFC 3261, 21.5.4).
public struct ServerHistory: Sendable {
    /// A transport at an address, whatever name led there.
    private struct Place: Hashable {
        var transport: SIPTransport
        var address: TransportAddress
    }

    /// How many are remembered; the one that would be forgotten first makes room.
    public static let capacity = 256
    /// The longest time that a server is avoided, whatever it says about itself.
    public static let longestAvoidance: Duration = .seconds(3_600)

    private var avoided: [Place: MonotonicTime] = [:]

    /// Creates an empty history.
    public init() {}

    /// How many servers are remembered.
    public var count: Int { avoided.count }

    /// Remembers that a server failed.
    ///
    /// - Parameters:
    ///   - end: when it counts as usable again.
    ///   - now: the present time.
    public mutating func markFailed(
        _ transport: SIPTransport, _ address: TransportAddress, until end: MonotonicTime, at now: MonotonicTime
    ) {
        avoided = avoided.filter { $0.value > now }
        let end = min(end, now + Self.longestAvoidance)
        guard end > now else { return }
        if avoided.count >= Self.capacity, let first = avoided.min(by: { $0.value < $1.value }) {
            avoided[first.key] = nil
        }
        avoided[Place(transport: transport, address: address)] = end
    }

    /// Forgets a failure: the server was reached.
    public mutating func markReached(_ transport: SIPTransport, _ address: TransportAddress) {
        avoided[Place(transport: transport, address: address)] = nil
    }

    /// Until when a server is avoided; nil when it is not.
    public func avoidedUntil(
        _ transport: SIPTransport, _ address: TransportAddress, at now: MonotonicTime
    ) -> MonotonicTime? {
        avoided[Place(transport: transport, address: address)].flatMap { $0 > now ? $0 : nil }
    }

    /// The candidates with those that failed lately moved to the end, else in the same order.
    func sorted(_ candidates: [ServerCandidate], at now: MonotonicTime) -> [ServerCandidate] {
        let isAvoided = candidates.map { avoidedUntil($0.transport, $0.address, at: now) != nil }
        let pairs = zip(candidates, isAvoided)
        return pairs.filter { !$0.1 }.map(\.0) + pairs.filter(\.1).map(\.0)
    }
}
