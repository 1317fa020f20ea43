/// A place in bytes that are read from left to right, up to an end. It holds no bytes: each step is handed them as a
/// span, so that reading neither counts references nor allocates. Reading past the end gives nil, never a trap.
struct ByteCursor {
    private(set) var position: Int
    let end: Int

    /// A cursor at the begin of a range of the bytes.
    init(_ range: Range<Int>, in bytes: Span<UInt8>) {
        position = Swift.max(0, Swift.min(range.lowerBound, bytes.count))
        end = Swift.max(position, Swift.min(range.upperBound, bytes.count))
    }

    var isAtEnd: Bool { position >= end }

    /// What was not read yet.
    var rest: Range<Int> { position..<end }

    /// The next byte, not consumed.
    @inline(__always)
    func peek(_ bytes: Span<UInt8>) -> UInt8? { position < end ? bytes[position] : nil }

    /// The byte `distance` after the next one.
    @inline(__always)
    func peek(at distance: Int, _ bytes: Span<UInt8>) -> UInt8? {
        let index = position &+ distance
        return index < end && index >= position ? bytes[index] : nil
    }

    @inline(__always)
    mutating func skip(_ count: Int = 1) {
        position = Swift.min(end, position &+ count)
    }

    /// Consumes `byte` if it is next.
    @inline(__always)
    mutating func take(_ byte: UInt8, _ bytes: Span<UInt8>) -> Bool {
        guard position < end, bytes[position] == byte else { return false }
        position &+= 1
        return true
    }

    /// Skips spaces and tabs; folds were turned into spaces before.
    @inline(__always)
    mutating func skipBlanks(_ bytes: Span<UInt8>) {
        while position < end, bytes[position].isBlank { position &+= 1 }
    }

    /// Consumes the longest run of bytes in `set`.
    @inline(__always)
    mutating func take(_ set: ByteSet, _ bytes: Span<UInt8>) -> Range<Int> {
        let start = position
        while position < end, set.contains(bytes[position]) { position &+= 1 }
        return start..<position
    }

    /// Consumes up to, not including, `byte`, or to the end.
    @inline(__always)
    mutating func take(until byte: UInt8, _ bytes: Span<UInt8>) -> Range<Int> {
        let start = position
        while position < end, bytes[position] != byte { position &+= 1 }
        return start..<position
    }

    /// Consumes decimal digits. Nil when there are none or the number is above `maximum`; never overflows.
    mutating func takeNumber(maximum: UInt64, _ bytes: Span<UInt8>) -> UInt64? {
        let start = position
        var value: UInt64 = 0
        var tooLarge = false
        while position < end, bytes[position].isDigit {
            let (scaled, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carried) = scaled.addingReportingOverflow(UInt64(bytes[position] &- 0x30))
            tooLarge = tooLarge || overflow || carried || sum > maximum
            value = tooLarge ? 0 : sum
            position &+= 1
        }
        return position == start || tooLarge ? nil : value
    }

    /// Consumes a quoted string including its quotes (RFC 3261 section 25.1). Nil when it never ends; a last
    /// backslash escapes the closing quote, so `"name\"` does not end either.
    mutating func takeQuotedString(_ bytes: Span<UInt8>) -> Range<Int>? {
        let start = position
        guard take(UInt8(ascii: "\""), bytes) else { return nil }
        while position < end {
            let byte = bytes[position]
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
}

/// Whether a range of bytes is this text, which is in lower case, apart from the case of ASCII letters.
@inline(__always)
func equalIgnoringCase(_ bytes: Span<UInt8>, _ range: Range<Int>, _ text: String) -> Bool {
    guard range.count == text.utf8.count else { return false }
    var index = range.lowerBound
    for letter in text.utf8 {
        guard bytes[index].asciiLowercased == letter else { return false }
        index &+= 1
    }
    return true
}
