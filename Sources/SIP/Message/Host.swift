/// Hosts: names, IPv4 and IPv6 addresses (RFC 3261 section 25.1, RFC 5954 for IPv6).
enum Host {
    /// Consumes a host and gives it in lower case, IPv6 with its brackets. Nil when there is none.
    static func take(_ scanner: inout ByteScanner) -> String? {
        if scanner.take(UInt8(ascii: "[")) {
            let address = scanner.take(until: UInt8(ascii: "]"))
            guard scanner.take(UInt8(ascii: "]")), isIPv6(ByteScanner(scanner.bytes, address)) else { return nil }
            return scanner.text((address.lowerBound - 1)..<(address.upperBound + 1)).asciiLowercased
        }
        let range = scanner.take(.host)
        guard isName(scanner.bytes[range]) else { return nil }
        return scanner.text(range).asciiLowercased
    }

    /// A host given by a caller, in lower case, IPv6 with brackets.
    static func normalized(_ host: String) -> String {
        let lower = host.asciiLowercased
        let needsBrackets = lower.utf8.contains(UInt8(ascii: ":")) && lower.utf8.first != UInt8(ascii: "[")
        return needsBrackets ? "[\(lower)]" : lower
    }

    /// A host as sockets and certificates write it: IPv6 without brackets.
    static func withoutBrackets(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    /// Whether a host without brackets is an address; IPv6 may carry the interface of a link-local address after `%`.
    static func isNumeric(_ host: String) -> Bool {
        isIPv4(ByteScanner(host)) || isIPv6(ByteScanner(String(host.prefix { $0 != "%" })))
    }

    static func isValid(_ host: String) -> Bool {
        var scanner = ByteScanner(host)
        return take(&scanner) != nil && scanner.isAtEnd
    }

    /// Labels between dots, none empty; one dot may end a fully qualified name.
    private static func isName(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard bytes.count <= 255 else { return false }
        var previous = UInt8(ascii: ".")
        for byte in bytes {
            if byte == UInt8(ascii: "."), previous == byte { return false }
            previous = byte
        }
        return !bytes.isEmpty && bytes.first != UInt8(ascii: ".")
    }

    /// RFC 4291 section 2.2: eight groups of up to four digits, `::` once for a run of zeros, IPv4 at the end.
    static func isIPv6(_ whole: ByteScanner) -> Bool {
        var scanner = whole
        var groups = 0
        var compressed = false
        if scanner.peek == UInt8(ascii: ":") {
            guard scanner.peek(at: 1) == UInt8(ascii: ":") else { return false }
            scanner.skip(2)
            compressed = true
        }
        while !scanner.isAtEnd {
            let start = scanner
            var digits = 0
            while let byte = scanner.peek, byte.hexadecimalValue != nil {
                digits += 1
                scanner.skip()
            }
            if scanner.peek == UInt8(ascii: ".") {
                return isIPv4(start) && (compressed ? groups <= 5 : groups == 6)
            }
            guard digits >= 1, digits <= 4 else { return false }
            groups += 1
            if scanner.isAtEnd { break }
            guard groups <= 8, scanner.take(UInt8(ascii: ":")) else { return false }
            if scanner.take(UInt8(ascii: ":")) {
                guard !compressed else { return false }
                compressed = true
            } else if scanner.isAtEnd {
                return false
            }
        }
        return compressed ? groups <= 7 : groups == 8
    }

    static func isIPv4(_ whole: ByteScanner) -> Bool {
        var scanner = whole
        for index in 0..<4 {
            if index > 0, !scanner.take(UInt8(ascii: ".")) { return false }
            guard scanner.takeNumber(maximum: 255) != nil else { return false }
        }
        return scanner.isAtEnd
    }
}
