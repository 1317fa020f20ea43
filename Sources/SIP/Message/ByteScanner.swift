/// Bytes and a place in them: a cursor that holds what it reads. Every access is checked against the range's end: reading
/// past it gives nil, never a trap.
struct ByteScanner {
    let bytes: [UInt8]
    private(set) var cursor: ByteCursor

    init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        cursor = ByteCursor(range, in: bytes.span)
    }

    init(_ text: String) {
        let bytes = Array(text.utf8)
        self.init(bytes, 0..<bytes.count)
    }

    var position: Int { cursor.position }
    var end: Int { cursor.end }
    var isAtEnd: Bool { cursor.isAtEnd }

    /// The next byte, not consumed.
    var peek: UInt8? { cursor.peek(bytes.span) }

    /// The byte `distance` after the next one.
    func peek(at distance: Int) -> UInt8? { cursor.peek(at: distance, bytes.span) }

    mutating func skip(_ count: Int = 1) { cursor.skip(count) }

    /// Consumes `byte` if it is next.
    mutating func take(_ byte: UInt8) -> Bool { read { $0.take(byte, $1) } }

    /// Skips spaces and tabs; folds were turned into spaces before.
    mutating func skipBlanks() { read { $0.skipBlanks($1) } }

    /// Consumes the longest run of bytes in `set`.
    mutating func take(_ set: ByteSet) -> Range<Int> { read { $0.take(set, $1) } }

    /// Consumes up to, not including, `byte`, or to the end.
    mutating func take(until byte: UInt8) -> Range<Int> { read { $0.take(until: byte, $1) } }

    /// Consumes decimal digits. Nil when there are none or the number is above `maximum`; never overflows.
    mutating func takeNumber(maximum: UInt64) -> UInt64? { read { $0.takeNumber(maximum: maximum, $1) } }

    /// Consumes a quoted string including its quotes; nil when it never ends.
    mutating func takeQuotedString() -> Range<Int>? { read { $0.takeQuotedString($1) } }

    /// Consumes what `read` reads.
    @inline(__always)
    mutating func read<Result, Failure: Error>(
        _ read: (inout ByteCursor, Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var moved = cursor
        defer { cursor = moved }
        return try read(&moved, bytes.span)
    }

    /// The text of a range; bytes that are not UTF-8 become U+FFFD, the bytes themselves are kept elsewhere.
    func text(_ range: Range<Int>) -> String { Text.plain(bytes, range) }

    /// The text inside a quoted string with its escapes resolved.
    func unquoted(_ range: Range<Int>) -> String { Text.unquoted(bytes, range) }
}

/// Strings made of ranges of bytes; a range that is not within the bytes is cut.
enum Text {
    /// The text; bytes that are not UTF-8 become U+FFFD.
    static func plain(_ bytes: [UInt8], _ range: Range<Int>) -> String {
        String(decoding: bytes[range.clamped(to: 0..<bytes.count)], as: UTF8.self)
    }

    /// The text with ASCII letters in lower case.
    static func lowercased(_ bytes: [UInt8], _ range: Range<Int>) -> String {
        let part = bytes[range.clamped(to: 0..<bytes.count)]
        for byte in part where byte != byte.asciiLowercased {
            return String(decoding: part.map(\.asciiLowercased), as: UTF8.self)
        }
        return String(decoding: part, as: UTF8.self)
    }

    /// The text inside a quoted string with its escapes resolved. A NUL, which only an escape can carry, becomes
    /// U+FFFD: it is never meant, and C libraries would end the text there.
    static func unquoted(_ bytes: [UInt8], _ range: Range<Int>) -> String {
        let inner = (range.lowerBound &+ 1)..<Swift.max(range.lowerBound &+ 1, range.upperBound &- 1)
        let part = bytes[inner.clamped(to: 0..<bytes.count)]
        guard part.contains(UInt8(ascii: "\\")) else { return String(decoding: part, as: UTF8.self) }
        var plain: [UInt8] = []
        plain.reserveCapacity(part.count)
        var escaped = false
        for byte in part {
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
