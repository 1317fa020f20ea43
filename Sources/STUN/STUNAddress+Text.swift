import Primitives

extension STUNAddress {
    /// Reads a numeric address as it is written: `192.0.2.1`, `2001:db8::1`. Nil for anything else, names included.
    public init?(host: String, port: UInt16) {
        if let bytes = NumericAddress.ipv4(host) {
            self.init(bytes: bytes, port: port)
        } else if let groups = NumericAddress.ipv6(host) {
            self.init(
                bytes: groups.flatMap { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)] },
                port: port)
        } else {
            return nil
        }
    }

    /// The address as it is written (RFC 5952 for IPv6).
    public var host: String {
        guard isIPv6 else { return bytes.map { String($0) }.joined(separator: ".") }
        return NumericAddress.text(ipv6: (0..<8).map { bytes.bigEndian16(at: 2 * $0) })
    }

    /// Whether it is an IPv6 address.
    public var isIPv6: Bool { bytes.count == 16 }
}
