/// `%` escapes of URIs (RFC 3261 section 19.1.2) in a normal form: characters that mean the same either way stand
/// unescaped, all other escapes keep theirs in upper case. So two texts that the RFC calls equal are equal bytes,
/// and an escape that is not UTF-8 survives.
enum Escaping {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// The normal form of a component as received, or nil when it holds a character that had to be escaped, or a
    /// broken escape.
    static func normalized(_ scanner: ByteScanner, _ range: Range<Int>, allowed: ByteSet) -> String? {
        var plain = true
        for byte in scanner.bytes[range] where !allowed.contains(byte) {
            guard byte == UInt8(ascii: "%") else { return nil }
            plain = false
        }
        if plain { return scanner.text(range) }
        var result: [UInt8] = []
        result.reserveCapacity(range.count)
        var reader = ByteScanner(scanner.bytes, range)
        while let byte = reader.peek {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                reader.skip()
                continue
            }
            guard let high = reader.peek(at: 1)?.hexadecimalValue, let low = reader.peek(at: 2)?.hexadecimalValue
            else { return nil }
            append(high << 4 | low, allowed: .unreserved, to: &result)
            reader.skip(3)
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
