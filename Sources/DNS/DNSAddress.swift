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
        return textIPv6(stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) })
    }

    /// Eight groups, the longest run of zeros shortened (RFC 5952, section 4).
    private static func textIPv6(_ groups: [UInt16]) -> String {
        var longest = 0..<0
        var start = 0
        while start < groups.count {
            var end = start
            while end < groups.count, groups[end] == 0 { end += 1 }
            if end - start > max(longest.count, 1) { longest = start..<end }
            start = max(end, start + 1)
        }
        let text = { (part: ArraySlice<UInt16>) in part.map { String($0, radix: 16) }.joined(separator: ":") }
        guard !longest.isEmpty else { return text(groups[...]) }
        return text(groups[..<longest.lowerBound]) + "::" + text(groups[longest.upperBound...])
    }
}
