import Primitives
import SIP

/// Where to open a flow: a numeric address, and the domain that is expected to answer there.
public struct FlowTarget: Hashable, Sendable {
    /// The transport to use.
    public var transport: SIPTransport
    /// The numeric address and the port.
    public var address: TransportAddress
    /// The configured domain: server name, certificate name and WebSocket host.
    public var domain: String
    /// The resource of a WebSocket.
    public var path: String = "/"

    /// Creates a target.
    public init(transport: SIPTransport, address: TransportAddress, domain: String, path: String = "/") {
        self.transport = transport
        self.address = address
        self.domain = domain
        self.path = path
    }
}
