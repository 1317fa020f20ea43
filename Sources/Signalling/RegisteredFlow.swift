import Primitives
import SIP

/// The path to the platform over which a user agent registers and makes its calls.
public struct RegisteredFlow: Sendable, Equatable {
    /// Where messages go.
    public var flow: SIPFlow
    /// The local end, as it stands in Via and Contact.
    public var local: TransportAddress
    /// TLS version and cipher, such as "TLSv1.3 TLS_AES_256_GCM_SHA384"; nil without TLS.
    public var cipher: String?
    /// A name under `.invalid` that stands in Via and Contact instead of `local`: what a WebSocket client writes, which
    /// cannot be connected to anyway (RFC 7118, section 5). Nil for other transports.
    public var anonymousHost: String?

    /// Creates a flow from its two ends.
    public init(flow: SIPFlow, local: TransportAddress, cipher: String? = nil, anonymousHost: String? = nil) {
        self.flow = flow
        self.local = local
        self.cipher = cipher
        self.anonymousHost = anonymousHost
    }

    /// The host as SIP writes it: IPv6 in brackets.
    private var sipHost: String { anonymousHost ?? (local.isIPv6 ? "[\(local.host)]" : local.host) }

    private var sipPort: UInt16? { anonymousHost == nil ? local.port : nil }

    /// The Via that requests over this flow carry; the transaction layer gives it its branch.
    var via: SIPVia {
        var via = SIPVia(transport: flow.transport.viaName, host: sipHost, port: sipPort, branch: "")
        via.parameters.setFlag("rport")
        return via
    }

    /// The contact for `user` behind this flow.
    func contact(user: String) -> SIPAddress {
        var uri = SIPURI(user: user, host: sipHost, port: sipPort)
        switch flow.transport {
        case .udp: break
        case .tcp, .tls: uri.parameters["transport"] = flow.transport.rawValue
        // In URIs there is one name for WebSocket, with and without TLS (RFC 7118, section 5.2).
        case .ws, .wss: uri.parameters["transport"] = SIPTransport.ws.rawValue
        }
        return SIPAddress(uri: uri)
    }
}
