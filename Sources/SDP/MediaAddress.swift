import Primitives

/// Judges the addresses that a peer's description names: media go to unicast hosts only.
enum MediaAddress: Equatable {
    /// A host that media can be sent to.
    case unicast
    /// The old way to say "do not send": 0.0.0.0 (RFC 3264 section 8.4), `::`, or a name under `.invalid` (RFC 6157).
    case hold
    /// Anything else: multicast, broadcast, a name, garbage.
    case unusable

    /// Judges connection data.
    static func classify(_ connection: SDPConnection) -> MediaAddress {
        guard connection.networkType.uppercased() == "IN" else { return .unusable }
        let address = connection.address
        if address.lowercased().hasSuffix(".invalid") { return .hold }
        switch connection.addressType.uppercased() {
        case "IP4":
            guard let bytes = NumericAddress.ipv4(address) else { return .unusable }
            if bytes == [0, 0, 0, 0] { return .hold }
            // 0/8 is "this network", 224/4 multicast, 240/4 reserved with the broadcast address at its end.
            return bytes[0] == 0 || bytes[0] >= 224 ? .unusable : .unicast
        case "IP6":
            guard let groups = NumericAddress.ipv6(address) else { return .unusable }
            if groups.allSatisfy({ $0 == 0 }) { return .hold }
            if groups[0] >> 8 == 0xFF { return .unusable }
            // IPv4-mapped addresses would get around the checks above.
            if groups[..<5].allSatisfy({ $0 == 0 }), groups[5] == 0xFFFF { return .unusable }
            return .unicast
        default:
            return .unusable
        }
    }
}
