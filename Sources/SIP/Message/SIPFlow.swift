import Primitives

/// A transport that carries SIP (RFC 3261 section 18, RFC 7118 for WebSocket).
public enum SIPTransport: String, Hashable, Sendable, CaseIterable {
    /// Datagrams.
    case udp
    /// A stream.
    case tcp
    /// A stream under TLS.
    case tls
    /// WebSocket.
    case ws
    /// WebSocket under TLS.
    case wss

    /// Finds the transport by the name that a Via header or a `transport` parameter gives it, in any case.
    public init?(viaName: String) {
        self.init(rawValue: viaName.lowercased())
    }

    /// Whether the transport itself delivers what is sent, so that nothing is sent twice.
    public var isReliable: Bool { self != .udp }

    /// The name in a Via header, such as `UDP`.
    public var viaName: String { rawValue.uppercased() }

    /// Whether the transport runs under TLS.
    public var isSecure: Bool { self == .tls || self == .wss }

    /// Whether the transport is WebSocket (RFC 7118).
    public var isWebSocket: Bool { self == .ws || self == .wss }

    /// The port used when a URI or Via names none.
    public var defaultPort: UInt16 {
        switch self {
        case .udp, .tcp: 5060
        case .tls: 5061
        case .ws: 80
        case .wss: 443
        }
    }
}

/// Where messages go to and come from: a transport, the other side's address and, on streams, which connection.
public struct SIPFlow: Hashable, Sendable, CustomStringConvertible {
    /// The transport.
    public var transport: SIPTransport
    /// The other side.
    public var remote: TransportAddress
    /// 0 for UDP, else the number of one connection, so that a new connection from the same address is a new flow.
    public var connection: UInt64

    /// Creates a flow.
    public init(transport: SIPTransport, remote: TransportAddress, connection: UInt64 = 0) {
        self.transport = transport
        self.remote = remote
        self.connection = connection
    }

    /// For logs, such as `UDP 127.0.0.1:5060`.
    public var description: String {
        connection == 0
            ? "\(transport.viaName) \(remote)" : "\(transport.viaName) \(remote) (connection \(connection))"
    }
}
