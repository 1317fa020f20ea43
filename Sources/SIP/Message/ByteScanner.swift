/// Reads a range of bytes from left to right. Every access is checked against the range's end: reading past it
/// gives nil, never a trap.
struct ByteScanner {
    let bytes: [UInt8]
    private(set) var position: Int
    let end: Int

    init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        self.position = Swift.max(0, Swift.min(range.lowerBound, bytes.count))
        self.end = Swift.max(self.position, Swift.min(range.upperBound, bytes.count))
    }

    init(_ text: String) {
        let bytes = Array(text.utf8)
        self.init(bytes, 0..<bytes.count)
    }

    var isAtEnd: Bool { position >= end }

    /// The next byte, not consumed.
    @inline(__always)
    var peek: UInt8? { position < end ? bytes[position] : nil }

    /// The byte `distance` after the next one.
    @inline(__always)
    func peek(at distance: Int) -> UInt8? {
        let index = position &+ distance
        return index < end && index >= position ? bytes[index] : nil
    }

    @inline(__always)
    mutating func skip(_ count: Int = 1) {
        position = Swift.min(end, position &+ count)
    }

    /// Consumes `byte` if it is next.
    @inline(__always)
    mutating func take(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        position &+= 1
        return true
    }

    /// Skips spaces and tabs; folds were turned into spaces before.
    @inline(__always)
    mutating func skipBlanks() {
        while let byte = peek, byte.isBlank { position &+= 1 }
    }

    /// Consumes the longest run of bytes in `set`.
    @inline(__always)
    mutating func take(_ set: ByteSet) -> Range<Int> {
        let start = position
        while position < end, set.contains(bytes[position]) { position &+= 1 }
        return start..<position
    }

    /// Consumes up to, not including, `byte`, or to the end.
    mutating func take(until byte: UInt8) -> Range<Int> {
        let start = position
        while position < end, bytes[position] != byte { position &+= 1 }
        return start..<position
    }

    /// Consumes decimal digits. Nil when there are none or the number is above `maximum`; never overflows.
    mutating func takeNumber(maximum: UInt64) -> UInt64? {
        let start = position
        var value: UInt64 = 0
        var tooLarge = false
        while let byte = peek, byte.isDigit {
            let (scaled, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carried) = scaled.addingReportingOverflow(UInt64(byte &- 0x30))
            tooLarge = tooLarge || overflow || carried || sum > maximum
            value = tooLarge ? 0 : sum
            position &+= 1
        }
        return position == start || tooLarge ? nil : value
    }

    /// Consumes a quoted string including its quotes (RFC 3261 section 25.1). False when it never ends; a last
    /// backslash escapes the closing quote, so `"name\"` does not end either.
    mutating func takeQuotedString() -> Range<Int>? {
        let start = position
        guard take(UInt8(ascii: "\"")) else { return nil }
        while let byte = peek {
            if byte == UInt8(ascii: "\\") {
                guard position &+ 1 < end else { return nil }
                position &+= 2
            } else {
                position &+= 1
                if byte == UInt8(ascii: "\"") { return start..<position }
            }
        }
        return nil
    }

    /// The text of a range; bytes that are not UTF-8 become U+FFFD, the bytes themselves are kept elsewhere.
    func text(_ range: Range<Int>) -> String {
        String(decoding: bytes[range.clamped(to: 0..<bytes.count)], as: UTF8.self)
    }

    /// The text inside a quoted string with its escapes resolved. A NUL, which only an escape can carry, becomes
    /// U+FFFD: it is never meant, and C libraries would end the text there.
    func unquoted(_ range: Range<Int>) -> String {
        let inner = (range.lowerBound &+ 1)..<Swift.max(range.lowerBound &+ 1, range.upperBound &- 1)
        guard bytes[inner].contains(UInt8(ascii: "\\")) else { return text(inner) }
        var plain: [UInt8] = []
        plain.reserveCapacity(inner.count)
        var escaped = false
        for byte in bytes[inner] {
            if byte == UInt8(ascii: "\\"), !escaped {
                escaped = true
            } else {
                if byte == 0 {
                    plain.append(contentsOf: "\u{FFFD}".utf8)
                } else {
                    plain.append(byte)
                }
                escaped = false
            }
        }
        return String(decoding: plain, as: UTF8.self)
    }
}
