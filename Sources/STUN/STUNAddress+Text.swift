extension STUNAddress {
    /// Reads a numeric address as it is written: `192.0.2.1`, `2001:db8::1`. Nil for anything else, names included.
    public init?(host: String, port: UInt16) {
        let bytes = host.utf8.contains(UInt8(ascii: ":")) ? Self.parseIPv6(host) : Self.parseIPv4(host[...])
        guard let bytes else { return nil }
        self.init(bytes: bytes, port: port)
    }

    /// The address as it is written (RFC 5952 for IPv6).
    public var host: String {
        guard bytes.count == 16 else { return bytes.map(String.init).joined(separator: ".") }
        let groups = (0..<8).map { UInt16(bytes[2 * $0]) << 8 | UInt16(bytes[2 * $0 + 1]) }
        // The longest run of two or more zero groups, the first of several, becomes "::".
        var best: Range<Int>?
        var start = 0
        while start < 8 {
            guard groups[start] == 0 else {
                start += 1
                continue
            }
            let end = groups[start...].firstIndex { $0 != 0 } ?? 8
            if end - start >= 2, end - start > best?.count ?? 0 { best = start..<end }
            start = end
        }
        func text(_ range: Range<Int>) -> String {
            groups[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        guard let best else { return text(0..<8) }
        return text(0..<best.lowerBound) + "::" + text(best.upperBound..<8)
    }

    /// Whether it is an IPv6 address.
    public var isIPv6: Bool { bytes.count == 16 }

    private static func parseIPv4(_ text: Substring) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for part in parts {
            // Leading zeros are octal to some readers: refused, so that no two readers differ.
            guard (1...3).contains(part.utf8.count), part.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                part.utf8.count == 1 || part.utf8.first != 0x30, let byte = UInt8(part)
            else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    private static func parseIPv6(_ text: String) -> [UInt8]? {
        var text = text[...]
        var tail: [UInt8] = []
        // An embedded IPv4 address stands for the last two groups.
        if text.utf8.contains(UInt8(ascii: ".")) {
            guard let colon = text.lastIndex(of: ":"), let four = parseIPv4(text[text.index(after: colon)...]) else {
                return nil
            }
            tail = four
            text = text[...colon]
            if text.hasSuffix("::") == false { text = text.dropLast() }
        }
        func groups(_ part: Substring) -> [UInt8]? {
            guard !part.isEmpty else { return [] }
            var bytes: [UInt8] = []
            for group in part.split(separator: ":", omittingEmptySubsequences: false) {
                guard (1...4).contains(group.utf8.count), let value = UInt16(group, radix: 16),
                    group.utf8.first != UInt8(ascii: "+")
                else { return nil }
                bytes += [UInt8(value >> 8), UInt8(value & 0xFF)]
            }
            return bytes
        }
        guard let gap = text.firstRange(ofDoubleColon: ()) else {
            guard let bytes = groups(text), bytes.count + tail.count == 16 else { return nil }
            return bytes + tail
        }
        let rest = text[text.index(gap, offsetBy: 2)...]
        guard let front = groups(text[..<gap]), let back = groups(rest), front.count + back.count + tail.count <= 14
        else { return nil }
        let zeros = 16 - front.count - back.count - tail.count
        return front + [UInt8](repeating: 0, count: zeros) + back + tail
    }
}

extension Substring {
    /// Where "::" begins.
    fileprivate func firstRange(ofDoubleColon: ()) -> Index? {
        var previous: Index?
        for index in indices where self[index] == ":" {
            if let previous, self.index(after: previous) == index { return previous }
            previous = index
        }
        return nil
    }
}
