/// What is to be reached: a SIP domain or host, and what the user or a URI already settled about the way there (RFC 3263).
public struct ServerTarget: Hashable, Sendable {
    /// Name or numeric address to look up; IPv6 with or without brackets.
    public var host: String
    /// The port, when it is settled; then neither NAPTR nor SRV is asked for.
    public var port: UInt16?
    /// The transport, when it is settled.
    public var transport: SIPTransport?
    /// Only transports with TLS will do: a `sips` URI, or a secret that must not be readable on the way.
    public var isSecure: Bool
    /// What may be used when `transport` does not say, most wanted first. The first one is used when DNS does not say
    /// either.
    public var transports: [SIPTransport]
    /// The domain as configured: whose certificate is expected (RFC 5922), whatever name DNS leads to
    /// (docs/decisions/012).
    public var domain: String
    /// The resource of a WebSocket.
    public var path: String

    /// TLS wherever DNS does not say otherwise; what runs without it only where DNS offers nothing better.
    public static let defaultTransports: [SIPTransport] = [.tls, .tcp, .udp]

    /// Creates a target.
    ///
    /// - Parameter domain: nil stands for `host`.
    public init(
        host: String, port: UInt16? = nil, transport: SIPTransport? = nil, isSecure: Bool = false,
        transports: [SIPTransport] = ServerTarget.defaultTransports,
        domain: String? = nil, path: String = "/"
    ) {
        self.host = host
        self.port = port
        self.transport = transport
        self.isSecure = isSecure
        self.transports = transports
        self.domain = domain ?? host
        self.path = path
    }

    /// The transports that may be used, most wanted first. Empty when what is asked for contradicts itself, such as `sips`
    /// over UDP.
    ///
    /// With `isSecure`, TCP means TLS over TCP (RFC 3261, 26.2.2) and WebSocket means secure WebSocket (RFC 7118).
    var usableTransports: [SIPTransport] {
        let wanted = transport.map { [$0] } ?? transports
        var usable: [SIPTransport] = []
        for transport in wanted {
            guard let transport = isSecure ? transport.secured : transport, !usable.contains(transport) else {
                continue
            }
            usable.append(transport)
        }
        return usable
    }
}

extension SIPTransport {
    /// The same with TLS; nil for UDP, which has no such thing here.
    var secured: SIPTransport? {
        switch self {
        case .udp: nil
        case .tcp, .tls: .tls
        case .ws, .wss: .wss
        }
    }

    /// What stands before the domain in the name of the SRV record (RFC 3263, 4.1; for WebSocket by the same pattern).
    var servicePrefix: String {
        switch self {
        case .udp: "_sip._udp."
        case .tcp: "_sip._tcp."
        case .tls: "_sips._tcp."
        case .ws: "_sip._ws."
        case .wss: "_sips._ws."
        }
    }

    /// The transport that a NAPTR record's service field names (RFC 3263, 4.1; RFC 7118, 10.4), nil for other services.
    init?(naptrService: String) {
        switch naptrService {
        case "sip+d2u": self = .udp
        case "sip+d2t": self = .tcp
        case "sips+d2t": self = .tls
        case "sip+d2w": self = .ws
        case "sips+d2w": self = .wss
        default: return nil
        }
    }
}
