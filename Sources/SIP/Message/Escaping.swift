/// `%` escapes of URIs (RFC 3261 section 19.1.2) in a normal form: characters that mean the same either way stand
/// unescaped, all other escapes keep theirs in upper case. So two texts that the RFC calls equal are equal bytes,
/// and an escape that is not UTF-8 survives.
enum Escaping {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Whether a component as received holds only characters that need no escape, and whole escapes.
    static func isWellFormed(_ range: Range<Int>, allowed: ByteSet, _ bytes: Span<UInt8>) -> Bool {
        var index = range.lowerBound
        while index < range.upperBound {
            if allowed.contains(bytes[index]) {
                index &+= 1
            } else {
                guard bytes[index] == UInt8(ascii: "%"), index &+ 2 < range.upperBound,
                    bytes[index &+ 1].hexadecimalValue != nil, bytes[index &+ 2].hexadecimalValue != nil
                else { return false }
                index &+= 3
            }
        }
        return true
    }

    /// The normal form of a component that is well-formed.
    static func normalized(_ bytes: [UInt8], _ range: Range<Int>) -> String {
        let range = range.clamped(to: 0..<bytes.count)
        guard bytes[range].contains(UInt8(ascii: "%")) else { return Text.plain(bytes, range) }
        var result: [UInt8] = []
        result.reserveCapacity(range.count)
        var reader = ByteScanner(bytes, range)
        while let byte = reader.peek {
            if byte == UInt8(ascii: "%"), let high = reader.peek(at: 1)?.hexadecimalValue,
                let low = reader.peek(at: 2)?.hexadecimalValue
            {
                append(high << 4 | low, allowed: .unreserved, to: &result)
                reader.skip(3)
            } else {
                result.append(byte)
                reader.skip()
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Escapes a component given as plain text. CR, LF and NUL are left alone: nobody means them, so the printer
    /// finds and refuses them.
    static func escaped(_ text: String, allowed: ByteSet) -> String {
        if allowed.containsAll(text) { return text }
        var result: [UInt8] = []
        for byte in text.utf8 {
            if byte.endsLine {
                result.append(byte)
            } else {
                append(byte, allowed: allowed, to: &result)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The plain text of a component in normal form; escapes that are not UTF-8 become U+FFFD.
    static func unescaped(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return text }
        var result: [UInt8] = []
        var reader = ByteScanner(text)
        while let byte = reader.peek {
            if byte == UInt8(ascii: "%"), let high = reader.peek(at: 1)?.hexadecimalValue,
                let low = reader.peek(at: 2)?.hexadecimalValue
            {
                result.append(high << 4 | low)
                reader.skip(3)
            } else {
                result.append(byte)
                reader.skip()
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func append(_ byte: UInt8, allowed: ByteSet, to result: inout [UInt8]) {
        if allowed.contains(byte) {
            result.append(byte)
        } else {
            result.append(UInt8(ascii: "%"))
            result.append(digits[Int(byte >> 4)])
            result.append(digits[Int(byte & 15)])
        }
    }
}
