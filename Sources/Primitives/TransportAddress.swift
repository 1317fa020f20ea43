/// A numeric IP address and a port: where a datagram or connection goes to or came from.
public struct TransportAddress: Hashable, Sendable, CustomStringConvertible {
    /// The numeric address, IPv4 dotted or IPv6 without brackets.
    public var host: String
    /// The port; 0 asks the system for a free one when binding.
    public var port: UInt16

    /// Creates an address; `host` is not resolved and must be numeric.
    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Whether the address is IPv6.
    public var isIPv6: Bool { host.utf8.contains(UInt8(ascii: ":")) }

    /// Whether the address belongs to this machine's loopback: 127.0.0.0/8 or ::1.
    public var isLoopback: Bool { host.hasPrefix("127.") || host == "::1" }

    /// `host:port`, IPv6 in brackets.
    public var description: String { isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
