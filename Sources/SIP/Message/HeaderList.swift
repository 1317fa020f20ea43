/// Comma-separated header values (RFC 3261 section 7.3.1).
enum HeaderList {
    /// The elements of a list, without the blanks around them; empty elements are skipped.
    static func elements(_ value: ByteScanner) -> [Range<Int>] {
        var elements: [Range<Int>] = []
        var scanner = value
        while !scanner.isAtEnd {
            let element = takeElement(&scanner)
            if !element.isEmpty { elements.append(element) }
            _ = scanner.take(UInt8(ascii: ","))
        }
        return elements
    }

    /// Consumes up to the comma that ends the element. What opens and never closes reaches to the end.
    static func takeElement(_ scanner: inout ByteScanner) -> Range<Int> {
        scanner.skipBlanks()
        let start = scanner.position
        var end = start
        var comments = 0
        var isInURI = false
        while let byte = scanner.peek {
            if byte == UInt8(ascii: "\""), !isInURI, comments == 0 {
                if scanner.takeQuotedString() == nil { scanner.skip(scanner.end) }
                end = scanner.position
                continue
            }
            switch byte {
            case UInt8(ascii: "\\") where comments > 0: scanner.skip()
            case UInt8(ascii: "(") where !isInURI: comments += 1
            case UInt8(ascii: ")") where comments > 0: comments -= 1
            case UInt8(ascii: "<") where comments == 0: isInURI = true
            case UInt8(ascii: ">"): isInURI = false
            case UInt8(ascii: ",") where comments == 0 && !isInURI: return start..<end
            default: break
            }
            scanner.skip()
            if !byte.isBlank { end = scanner.position }
        }
        return start..<end
    }
}
