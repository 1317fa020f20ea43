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
            guard let bytes = ipv4(address) else { return .unusable }
            if bytes == [0, 0, 0, 0] { return .hold }
            // 0/8 is "this network", 224/4 multicast, 240/4 reserved with the broadcast address at its end.
            return bytes[0] == 0 || bytes[0] >= 224 ? .unusable : .unicast
        case "IP6":
            guard let groups = ipv6(address) else { return .unusable }
            if groups.allSatisfy({ $0 == 0 }) { return .hold }
            if groups[0] >> 8 == 0xFF { return .unusable }
            // IPv4-mapped addresses would get around the checks above.
            if groups[..<5].allSatisfy({ $0 == 0 }), groups[5] == 0xFFFF { return .unusable }
            return .unicast
        default:
            return .unusable
        }
    }

    /// Four decimal numbers without leading zeros (some resolvers read those as octal).
    static func ipv4(_ text: some StringProtocol) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for part in parts {
            guard part.utf8.count <= 3, let value = SDPNumber.saturating(part), let byte = UInt8(exactly: value),
                part.utf8.count == 1 || part.utf8.first != UInt8(ascii: "0")
            else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    /// The eight groups of an IPv6 address, RFC 4291 section 2.2, without a zone.
    static func ipv6(_ text: String) -> [UInt16]? {
        guard text.utf8.count <= 45 else { return nil }
        var head: [UInt16] = []
        var tail: [UInt16] = []
        var hasGap = false
        var parts = text.split(separator: ":", omittingEmptySubsequences: false)[...]
        // A colon at either end is allowed only as part of "::".
        if parts.first?.isEmpty == true {
            guard parts.count >= 3, parts[1].isEmpty else { return nil }
            parts = parts.dropFirst()
        }
        if parts.last?.isEmpty == true {
            guard parts.count >= 2, parts[parts.endIndex - 2].isEmpty || parts.count == 2 else { return nil }
            parts = parts.dropLast()
        }
        for (position, part) in zip(parts.indices, parts) {
            if part.isEmpty {
                guard !hasGap else { return nil }
                hasGap = true
                continue
            }
            var groups: [UInt16] = []
            if part.utf8.contains(UInt8(ascii: ".")) {
                guard position == parts.endIndex - 1, let bytes = ipv4(part) else { return nil }
                groups = [
                    UInt16(bytes[0]) << 8 | UInt16(bytes[1]), UInt16(bytes[2]) << 8 | UInt16(bytes[3]),
                ]
            } else {
                // The digits are checked first: UInt16's initializer also takes a sign.
                guard part.utf8.count <= 4, part.allSatisfy({ $0.isASCII && $0.isHexDigit }),
                    let group = UInt16(part, radix: 16)
                else { return nil }
                groups = [group]
            }
            if hasGap { tail += groups } else { head += groups }
        }
        let count = head.count + tail.count
        if hasGap {
            guard count < 8 else { return nil }
        } else {
            guard count == 8 else { return nil }
        }
        return head + [UInt16](repeating: 0, count: 8 - count) + tail
    }
}
