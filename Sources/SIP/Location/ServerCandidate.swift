import Primitives

/// One place where a server may be, in the order in which to try.
public struct ServerCandidate: Hashable, Sendable, CustomStringConvertible {
    /// The transport to use.
    public var transport: SIPTransport
    /// The numeric address and the port.
    public var address: TransportAddress
    /// The name whose addresses these are: an SRV record's target, or the host itself. Candidates that follow each other
    /// with the same server and transport are ways to one machine, and may be tried side by side.
    public var server: String
    /// The domain whose certificate is expected.
    public var domain: String

    /// Creates a candidate.
    public init(transport: SIPTransport, address: TransportAddress, server: String, domain: String) {
        self.transport = transport
        self.address = address
        self.server = server
        self.domain = domain
    }

    /// Whether both are ways to one machine.
    public func isSameServer(as other: ServerCandidate) -> Bool {
        transport == other.transport && server == other.server && address.port == other.address.port
    }

    /// For logs, such as `TLS 192.0.2.1:5061 (sip1.example.com)`.
    public var description: String {
        let name = server.isEmpty || server == address.host ? "" : " (\(server))"
        return "\(transport.viaName) \(address)\(name)"
    }
}

/// Why no server was found.
public struct ServerLocationFailure: Error, Hashable, Sendable {
    /// The kind of failure.
    public enum Kind: Hashable, Sendable {
        /// The name does not exist, or has no address.
        case nameNotFound
        /// The domain says that it offers no such service.
        case serviceNotOffered
        /// No name server gave an answer.
        case nameServerFailed
        /// What is asked for cannot be: `sips` over UDP, or a host that is no name.
        case invalidTarget
    }

    /// The kind.
    public var kind: Kind
    /// What failed, why and what to do.
    public var message: String

    /// Creates a failure.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
