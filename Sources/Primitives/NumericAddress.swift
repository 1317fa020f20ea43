/// IP addresses as they are written, without asking the system: cores have no I/O.
public enum NumericAddress {
    /// Four decimal numbers without leading zeros (some readers take those for octal); nil for anything else.
    public static func ipv4(_ text: some StringProtocol) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for part in parts {
            guard (1...3).contains(part.utf8.count), part.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                part.utf8.count == 1 || part.utf8.first != UInt8(ascii: "0"), let byte = UInt8(part)
            else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    /// The eight groups of an IPv6 address (RFC 4291 section 2.2) without a zone; nil for anything else.
    public static func ipv6(_ text: String) -> [UInt16]? {
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

    /// Eight groups as text, the longest run of zeros shortened (RFC 5952, section 4).
    public static func text(ipv6 groups: [UInt16]) -> String {
        var longest = 0..<0
        var start = 0
        while start < groups.count {
            var end = start
            while end < groups.count, groups[end] == 0 { end += 1 }
            if end - start > max(longest.count, 1) { longest = start..<end }
            start = max(end, start + 1)
        }
        let join = { (part: ArraySlice<UInt16>) in part.map { String($0, radix: 16) }.joined(separator: ":") }
        guard !longest.isEmpty else { return join(groups[...]) }
        return join(groups[..<longest.lowerBound]) + "::" + join(groups[longest.upperBound...])
    }
}
