/// Cuts the header section into lines in one pass. Lines end with CRLF only; a CR or LF alone is refused,
/// because two elements that split lines differently can be played against each other; so is a NUL, except after a
/// backslash, where RFC 3261 section 25.1 (quoted-pair) allows it.
struct HeaderLines {
    /// One line, taken apart. For the start line `value` is the whole line.
    struct Line {
        var kind = HeaderName.other
        /// Without the blanks that may stand before the colon (RFC 3261 section 25.1, HCOLON); empty when the line
        /// has no name or no colon.
        var name = 0..<0
        /// Without the blanks around it; holds line ends when `isFolded`.
        var value = 0..<0
        var isFolded = false
    }

    private(set) var position: Int
    let limits: SIPLimits

    /// Skips line ends, which may precede a message (RFC 3261 section 7.5).
    mutating func skipLineEnds(_ bytes: Span<UInt8>) {
        while position < bytes.count, bytes[position] == 0x0D || bytes[position] == 0x0A { position &+= 1 }
    }

    /// The next line; nil once the empty line is consumed.
    mutating func next(_ bytes: Span<UInt8>, isStartLine: Bool) throws(SIPParseError) -> Line? {
        let start = position
        let token = ByteSet.token
        var index = start
        var name = start..<start
        if !isStartLine {
            // The name, blanks, and the colon; a line without them is told by an empty name.
            while index < bytes.count, token.contains(bytes[index]) { index &+= 1 }
            let nameEnd = index
            while index < bytes.count, bytes[index].isBlank { index &+= 1 }
            if nameEnd > start, index < bytes.count, bytes[index] == UInt8(ascii: ":") {
                name = start..<nameEnd
                index &+= 1
            } else {
                index = start
            }
        }
        let valueStart = index
        let isFolded = try skipValue(&index, from: start, isStartLine, bytes)
        guard index &- start <= limits.maxHeaderBytes else {
            throw SIPParseError(.limit, offset: start, reason: "a header line is longer than the limit")
        }
        position = index &+ 2
        if index == start { return nil }
        var line = Line()
        line.isFolded = isFolded
        line.value = valueStart..<index
        guard !isStartLine, !name.isEmpty else { return line }
        line.name = name
        line.kind = HeaderName.find(bytes, name)
        line.value = trimmed(line.value, bytes)
        return line
    }

    /// Moves to the CRLF that ends the line, over those that fold it.
    /// - Returns: whether it is folded.
    private func skipValue(
        _ index: inout Int, from start: Int, _ isStartLine: Bool, _ bytes: Span<UInt8>
    ) throws(SIPParseError) -> Bool {
        let count = bytes.count
        var isFolded = false
        while index < count {
            let byte = bytes[index]
            if byte >= 0x20 {
                index &+= 1
            } else if byte == 0x0D {
                guard index &+ 1 < count, bytes[index &+ 1] == 0x0A else {
                    throw SIPParseError(.lineEnd, offset: index, reason: "a CR without LF (RFC 3261 section 7.3.1)")
                }
                let isContinued = index &+ 2 < count && bytes[index &+ 2].isBlank && index > start && !isStartLine
                if !isContinued { return isFolded }
                isFolded = true
                index &+= 2
            } else if byte == 0x0A {
                throw SIPParseError(.lineEnd, offset: index, reason: "an LF without CR (RFC 3261 section 7.3.1)")
            } else if byte == 0, index == start || bytes[index &- 1] != UInt8(ascii: "\\") {
                throw SIPParseError(.controlCharacter, offset: index, reason: "a NUL (RFC 3261 section 25.1)")
            } else {
                index &+= 1
            }
        }
        throw SIPParseError(.lineEnd, offset: count, reason: "no empty line ends the headers (RFC 3261 section 7)")
    }

    private func trimmed(_ range: Range<Int>, _ bytes: Span<UInt8>) -> Range<Int> {
        var start = range.lowerBound
        var end = range.upperBound
        while start < end, Self.isLinearSpace(bytes[start]) { start &+= 1 }
        while end > start, Self.isLinearSpace(bytes[end &- 1]) { end &-= 1 }
        return start..<end
    }

    private static func isLinearSpace(_ byte: UInt8) -> Bool {
        byte.isBlank || byte == 0x0D || byte == 0x0A
    }
}

extension SIPHeaders {
    /// What the Content-Length headers say together.
    enum DeclaredContentLength: Equatable {
        case absent
        case length(Int)
        /// Not a number, negative, or several that differ.
        case malformed
    }

    var declaredContentLength: DeclaredContentLength {
        var result = DeclaredContentLength.absent
        for field in fields where field.kind == .contentLength {
            let next = Self.contentLength(field.value, storage.span)
            if result != .absent, result != next { return .malformed }
            result = next
        }
        return result
    }

    /// Reads one value. A number too large for any message counts as the largest there is.
    static func contentLength(_ value: Range<Int>, _ bytes: Span<UInt8>) -> DeclaredContentLength {
        var cursor = ByteCursor(value, in: bytes)
        let number = cursor.takeNumber(maximum: UInt64(Int.max), bytes)
        guard cursor.isAtEnd, !value.isEmpty else { return .malformed }
        return .length(number.map { Int(truncatingIfNeeded: $0) } ?? .max)
    }
}
