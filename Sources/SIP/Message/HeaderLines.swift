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
        let count = bytes.count
        let start = position
        var colon = -1
        var isFolded = false
        var index = start
        while index < count {
            let byte = bytes[index]
            if byte > 0x3A || (byte >= 0x20 && byte < 0x3A) {
                index &+= 1
            } else if byte == 0x3A {
                if colon < 0 { colon = index }
                index &+= 1
            } else if byte == 0x0D {
                guard index &+ 1 < count, bytes[index &+ 1] == 0x0A else {
                    throw SIPParseError(
                        .lineEnd, offset: index, reason: "a CR without LF (RFC 3261 section 7.3.1)")
                }
                let isContinued = index &+ 2 < count && bytes[index &+ 2].isBlank && index > start && !isStartLine
                if !isContinued { break }
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
        guard index < count else {
            throw SIPParseError(
                .lineEnd, offset: count, reason: "no empty line ends the headers (RFC 3261 section 7)")
        }
        guard index &- start <= limits.maxHeaderBytes else {
            throw SIPParseError(.limit, offset: start, reason: "a header line is longer than the limit")
        }
        position = index &+ 2
        if index == start { return nil }
        var line = Line()
        line.isFolded = isFolded
        if isStartLine {
            line.value = start..<index
            return line
        }
        guard colon > start else { return line }
        var nameEnd = colon
        while nameEnd > start, bytes[nameEnd &- 1].isBlank { nameEnd &-= 1 }
        for offset in start..<nameEnd where !ByteSet.token.contains(bytes[offset]) { return line }
        var valueStart = colon &+ 1
        var valueEnd = index
        while valueStart < valueEnd, Self.isLinearSpace(bytes[valueStart]) { valueStart &+= 1 }
        while valueEnd > valueStart, Self.isLinearSpace(bytes[valueEnd &- 1]) { valueEnd &-= 1 }
        line.name = start..<nameEnd
        line.value = valueStart..<valueEnd
        line.kind = HeaderName.find(bytes, line.name)
        return line
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
            let next = Self.contentLength(ByteScanner(storage, field.value))
            if result != .absent, result != next { return .malformed }
            result = next
        }
        return result
    }

    /// Reads one value. A number too large for any message counts as the largest there is.
    static func contentLength(_ value: ByteScanner) -> DeclaredContentLength {
        var scanner = value
        let digits = scanner
        if let number = scanner.takeNumber(maximum: UInt64(Int.max)), scanner.isAtEnd {
            return .length(Int(truncatingIfNeeded: number))
        }
        let isNumber = !digits.isAtEnd && digits.bytes[digits.position..<digits.end].allSatisfy(\.isDigit)
        return isNumber ? .length(.max) : .malformed
    }
}
