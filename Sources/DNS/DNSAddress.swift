import Primitives

/// Addresses of address records in their textual form.
enum DNSAddress {
    /// The text of an address; nil when the length is wrong, and for addresses that are nobody's: unspecified (connecting to
    /// them reaches this machine), multicast and broadcast, and IPv4 in the clothes of IPv6.
    static func text(of bytes: ArraySlice<UInt8>, isIPv6: Bool) -> String? {
        let bytes = Array(bytes)
        guard bytes.count == (isIPv6 ? 16 : 4), let first = bytes.first else { return nil }
        if !isIPv6 {
            guard first != 0, first < 224 else { return nil }
            return bytes.map { String($0) }.joined(separator: ".")
        }
        let isMapped = bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        guard first != 0xFF, !isMapped, bytes.contains(where: { $0 != 0 }) else { return nil }
        return NumericAddress.text(
            ipv6: stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) })
    }
}
