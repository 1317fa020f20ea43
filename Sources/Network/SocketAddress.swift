import CSys
import Glibc
import Primitives

/// An IPv4 or IPv6 address and port in the form that the system's calls take. It does not allocate: the media
/// path compares and sends with it; `TransportAddress` is the textual form for everybody else.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address family.
    public enum Family: Sendable, Hashable {
        case ipv4
        case ipv6
    }

    /// The address family.
    public let family: Family
    /// The port in host order.
    public var port: UInt16
    /// The address in host order; IPv4 uses the lowest 32 bits of `low`.
    private let high: UInt64
    private let low: UInt64
    /// The interface of a link-local IPv6 address, 0 for none.
    private let scope: UInt32

    /// Creates an IPv4 address from its four bytes in host order.
    public init(ipv4: UInt32, port: UInt16) {
        family = .ipv4
        high = 0
        low = UInt64(ipv4)
        scope = 0
        self.port = port
    }

    /// Parses a numeric address; an IPv6 address may carry `%interface`.
    ///
    /// Throws `.invalidAddress` when `address.host` is not numeric: names are DNSClient's work.
    public init(_ address: TransportAddress) throws(NetworkError) {
        guard let parsed = SocketAddress(numeric: address.host, port: address.port) else {
            throw NetworkError(
                .invalidAddress, "\"\(address.host)\" is not a numeric IP address; resolve host names first")
        }
        self = parsed
    }

    /// Parses a numeric address; nil when it is none.
    init?(numeric host: String, port: UInt16) {
        // What a C string would cut off, and what no address needs.
        guard !host.utf8.contains(0), host.utf8.count <= 64 else { return nil }
        var ipv4 = in_addr()
        if inet_pton(AF_INET, host, &ipv4) == 1 {
            self.init(ipv4: UInt32(bigEndian: ipv4.s_addr), port: port)
            return
        }
        let parts = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        var ipv6 = in6_addr()
        guard let numeric = parts.first, inet_pton(AF_INET6, String(numeric), &ipv6) == 1 else { return nil }
        var scope: UInt32 = 0
        if parts.count > 1 {
            scope = UInt32(parts[1]) ?? if_nametoindex(String(parts[1]))
            guard scope != 0 else { return nil }
        }
        self.init(ipv6: ipv6, port: port, scope: scope)
    }

    private init(ipv6: in6_addr, port: UInt16, scope: UInt32) {
        (high, low) = withUnsafeBytes(of: ipv6) { bytes in
            (
                UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
        family = .ipv6
        self.port = port
        self.scope = scope
    }

    /// Reads what a system call wrote; nil for other families.
    public init?(_ storage: sockaddr_storage) {
        var copy = storage
        switch Int32(storage.ss_family) {
        case AF_INET:
            let address = withUnsafeBytes(of: &copy) { $0.loadUnaligned(as: sockaddr_in.self) }
            self.init(ipv4: UInt32(bigEndian: address.sin_addr.s_addr), port: UInt16(bigEndian: address.sin_port))
        case AF_INET6:
            let address = withUnsafeBytes(of: &copy) { $0.loadUnaligned(as: sockaddr_in6.self) }
            self.init(
                ipv6: address.sin6_addr, port: UInt16(bigEndian: address.sin6_port), scope: address.sin6_scope_id)
        default:
            return nil
        }
    }

    /// The address in network order: 4 bytes or 16.
    public var bytes: [UInt8] {
        let words = family == .ipv4 ? [] : [high]
        let all = (words + [low]).flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) }
        }
        return family == .ipv4 ? Array(all.suffix(4)) : all
    }

    /// AF_INET or AF_INET6.
    public var systemFamily: Int32 { family == .ipv4 ? AF_INET : AF_INET6 }

    /// Whether the address belongs to this machine's loopback: 127.0.0.0/8 or ::1.
    public var isLoopback: Bool { family == .ipv4 ? low >> 24 == 127 : high == 0 && low == 1 }

    /// Whether the address is the "any" address, 0.0.0.0 or ::.
    public var isUnspecified: Bool { high == 0 && low == 0 }

    /// Hands the address to a system call.
    public func withSystemAddress<Result>(
        _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
    ) rethrows -> Result {
        switch family {
        case .ipv4:
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(truncatingIfNeeded: low).bigEndian
            return try withUnsafePointer(to: &address) { pointer in
                try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                    try body(generic, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        case .ipv6:
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_scope_id = scope
            withUnsafeMutableBytes(of: &address.sin6_addr) { bytes in
                bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
                bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            return try withUnsafePointer(to: &address) { pointer in
                try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                    try body(generic, socklen_t(MemoryLayout<sockaddr_in6>.size))
                }
            }
        }
    }

    /// The textual form.
    public var transportAddress: TransportAddress {
        if family == .ipv4 {
            let bits = UInt32(truncatingIfNeeded: low)
            return TransportAddress(
                host: "\(bits >> 24).\(bits >> 16 & 255).\(bits >> 8 & 255).\(bits & 255)", port: port)
        }
        var address = in6_addr()
        withUnsafeMutableBytes(of: &address) { bytes in
            bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
            bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            guard let start = buffer.baseAddress,
                inet_ntop(AF_INET6, &address, start, socklen_t(buffer.count)) != nil
            else { return "::" }
            return String(cString: start)
        }
        return TransportAddress(host: scope == 0 ? text : "\(text)%\(scope)", port: port)
    }

    /// `host:port`, IPv6 in brackets.
    public var description: String { transportAddress.description }
}

/// Questions about this machine's addresses.
public enum LocalAddresses {
    /// The address from which this machine would send to `remote`, with port 0: what to write into a Contact or SDP.
    ///
    /// A UDP socket is connected, which sends nothing, and its own address read back. Any thread; does not block.
    public static func localAddress(toward remote: TransportAddress) throws(NetworkError) -> TransportAddress {
        var target = try SocketAddress(remote)
        if target.port == 0 { target.port = 9 }  // Connecting to port 0 is an error; which port it is does not matter.
        let descriptor = try FileDescriptor(
            csys_socket(target.systemFamily, Int32(SOCK_DGRAM.rawValue), 0), "open a UDP socket")
        try NetworkError.check(
            target.withSystemAddress { csys_connect(descriptor.number, $0, $1) },
            "find a route to \(remote.host)", hint: "check the network connection")
        return TransportAddress(host: try descriptor.localSocketAddress().transportAddress.host, port: 0)
    }
}
