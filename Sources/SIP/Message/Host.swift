/// Hosts: names, IPv4 and IPv6 addresses (RFC 3261 section 25.1, RFC 5954 for IPv6).
enum Host {
    /// Consumes a host and gives it in lower case, IPv6 with its brackets. Nil when there is none.
    static func take(_ scanner: inout ByteScanner) -> String? {
        scanner.read(find).map { text(scanner.bytes, $0) }
    }

    /// Consumes a host, IPv6 with its brackets. Nil when there is none.
    static func find(_ cursor: inout ByteCursor, _ bytes: Span<UInt8>) -> Range<Int>? {
        let start = cursor.position
        if cursor.take(UInt8(ascii: "["), bytes) {
            let address = cursor.take(until: UInt8(ascii: "]"), bytes)
            guard cursor.take(UInt8(ascii: "]"), bytes) else { return nil }
            return isIPv6(address, bytes) || thirdColon(address, bytes) != nil ? start..<cursor.position : nil
        }
        let range = cursor.take(.host, bytes)
        return isName(range, bytes) ? range : nil
    }

    /// The text of a host that was found: in lower case, and right where a third colon was forgiven.
    static func text(_ bytes: [UInt8], _ range: Range<Int>) -> String {
        let text = Text.lowercased(bytes, range)
        guard text.utf8.first == UInt8(ascii: "["), text.utf8.count > 2,
            let colon = thirdColon((range.lowerBound + 1)..<(range.upperBound - 1), bytes.span)
        else { return text }
        var right = Array(text.utf8)
        right.remove(at: colon - range.lowerBound)
        return String(decoding: right, as: UTF8.self)
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
        return scanner.read(find) != nil && scanner.isAtEnd
    }

    static func isIPv6(_ whole: ByteScanner) -> Bool { isIPv6(whole.cursor.rest, whole.bytes.span) }

    static func isIPv4(_ whole: ByteScanner) -> Bool { isIPv4(whole.cursor.rest, whole.bytes.span) }

    /// Labels between dots, none empty; one dot may end a fully qualified name.
    private static func isName(_ range: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
        guard !range.isEmpty, range.count <= 255 else { return false }
        var previous = UInt8(ascii: ".")
        for index in range {
            if bytes[index] == UInt8(ascii: "."), previous == UInt8(ascii: ".") { return false }
            previous = bytes[index]
        }
        return true
    }

    /// RFC 4291 section 2.2: eight groups of up to four digits, `::` once for a run of zeros, IPv4 at the end.
    /// - Parameter skipped: a colon to be left out.
    private static func isIPv6(_ whole: Range<Int>, _ bytes: Span<UInt8>, skipped: Int? = nil) -> Bool {
        var cursor = ByteCursor(whole, in: bytes)
        let colon = UInt8(ascii: ":")
        var groups = 0
        var compressed = false
        if cursor.peek(bytes) == colon {
            guard cursor.peek(at: 1, bytes) == colon else { return false }
            cursor.skip(2)
            compressed = true
        }
        if cursor.position == skipped { cursor.skip() }
        while !cursor.isAtEnd {
            let start = cursor.position
            while let byte = cursor.peek(bytes), byte.hexadecimalValue != nil { cursor.skip() }
            if cursor.peek(bytes) == UInt8(ascii: ".") {
                return isIPv4(start..<whole.upperBound, bytes) && (compressed ? groups <= 5 : groups == 6)
            }
            let digits = cursor.position - start
            guard digits >= 1, digits <= 4 else { return false }
            groups += 1
            if cursor.isAtEnd { break }
            guard groups <= 8, cursor.take(colon, bytes) else { return false }
            if cursor.take(colon, bytes) {
                guard !compressed else { return false }
                compressed = true
                if cursor.position == skipped { cursor.skip() }
            } else if cursor.isAtEnd {
                return false
            }
        }
        return compressed ? groups <= 7 : groups == 8
    }

    /// The grammar of RFC 3261 makes `2001:db8:::192.0.2.1` of an address that ends in IPv4 digits. Elements must accept it
    /// (RFC 5118 section 4.10); what is passed on is right. Gives the colon too many, nil when that is not what is wrong.
    private static func thirdColon(_ whole: Range<Int>, _ bytes: Span<UInt8>) -> Int? {
        var colons = 0
        for index in whole {
            colons = bytes[index] == UInt8(ascii: ":") ? colons + 1 : 0
            guard colons == 3 else { continue }
            let rest = (index + 1)..<whole.upperBound
            return isIPv4(rest, bytes) && isIPv6(whole, bytes, skipped: index) ? index : nil
        }
        return nil
    }

    private static func isIPv4(_ whole: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
        var cursor = ByteCursor(whole, in: bytes)
        for index in 0..<4 {
            if index > 0, !cursor.take(UInt8(ascii: "."), bytes) { return false }
            guard cursor.takeNumber(maximum: 255, bytes) != nil else { return false }
        }
        return cursor.isAtEnd
    }
}
