/// The order in which the addresses of one server are tried.
enum AddressOrder {
    /// The most fitting first (RFC 6724, rule 6), then the families by turns (RFC 8305, section 4), so that a family that
    /// does not work costs one try only. Among equals the name server's order stays.
    ///
    /// Whether this machine can reach a family at all (rule 1) turns out at once when the socket is opened.
    static func sorted(_ addresses: [String]) -> [String] {
        var seen: Set<String> = []
        let unique = addresses.filter { seen.insert($0).inserted }
        let indexed = unique.enumerated().sorted { left, right in
            let (first, second) = (precedence(left.element), precedence(right.element))
            return first != second ? first > second : left.offset < right.offset
        }
        let ordered = indexed.map(\.element)
        guard let first = ordered.first else { return [] }
        var leading = ordered.filter { isIPv6($0) == isIPv6(first) }[...]
        var other = ordered.filter { isIPv6($0) != isIPv6(first) }[...]
        var result: [String] = []
        while let next = leading.popFirst() {
            result.append(next)
            if let next = other.popFirst() { result.append(next) }
        }
        return result + other
    }

    static func isIPv6(_ address: String) -> Bool { address.utf8.contains(UInt8(ascii: ":")) }

    /// The default policy table (RFC 6724, 2.1), with one change: loopback is tried as 127.0.0.1 before ::1, as servers on
    /// this machine rarely listen on both, and UDP does not notice quickly.
    private static func precedence(_ address: String) -> Int {
        let ipv4 = 35
        guard isIPv6(address) else { return ipv4 }
        if address == "::1" { return ipv4 - 1 }
        guard let first = address.split(separator: ":", omittingEmptySubsequences: false).first,
            let group = UInt16(first.isEmpty ? "0" : first, radix: 16)
        else { return 0 }
        switch group {
        case 0x2002: return 30  // 6to4
        case 0x2001 where address.hasPrefix("2001::") || address.hasPrefix("2001:0:"): return 5  // Teredo
        case 0xFC00...0xFDFF: return 3  // unique local
        case 0xFE80...0xFEFF: return 1  // link-local and site-local
        default: return 40
        }
    }
}
