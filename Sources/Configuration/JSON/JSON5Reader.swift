/// Reads JSON5 (json5.org, version 1.0.0): JSON with comments, trailing commas, unquoted names and more.
///
/// Foundation's decoder reads JSON5, too, but on Linux it reports neither line nor column of a mistake, keeps one of two
/// equal names without a word, and costs a millisecond at start. This reader tells all of them.
///
/// Left out: escapes in unquoted names.
struct JSON5Reader {
    /// How deep objects and lists may nest. Bounds the reader's recursion.
    static let maxDepth = 16

    let bytes: [UInt8]
    var position = 0

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The one value that `bytes` consist of.
    static func parse(_ bytes: [UInt8]) throws(JSON5Error) -> JSON5Value {
        var reader = JSON5Reader(bytes)
        if let offset = firstInvalidByte(bytes) { throw JSON5Error(reason: "not UTF-8", offset: offset) }
        try reader.skipSpace()
        let value = try reader.value(depth: 1)
        try reader.skipSpace()
        guard reader.peek == nil else { throw reader.error("text follows the document's end") }
        return value
    }

    /// The line on which UTF-8 is broken first, as its first byte; the standard library only says whether it is.
    private static func firstInvalidByte(_ bytes: [UInt8]) -> Int? {
        guard String(validating: bytes, as: UTF8.self) == nil else { return nil }
        var offset = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            if String(validating: line, as: UTF8.self) == nil { return offset }
            offset += line.count + 1
        }
        return bytes.count
    }

    var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    func error(_ reason: String) -> JSON5Error {
        JSON5Error(reason: peek == nil ? reason + ", but the text ends" : reason, offset: position)
    }

    mutating func consume(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        position += 1
        return true
    }

    mutating func consume(_ text: String) -> Bool {
        guard bytes[position...].starts(with: text.utf8) else { return false }
        position += text.utf8.count
        return true
    }

    /// White space (JSON5, section 8) and comments.
    private mutating func skipSpace() throws(JSON5Error) {
        while let byte = peek {
            switch byte {
            case 0x09...0x0d, 0x20:
                position += 1
            case UInt8(ascii: "/"):
                try skipComment()
            default:
                // No-break space, byte order mark, line and paragraph separator.
                guard consume("\u{a0}") || consume("\u{feff}") || consume("\u{2028}") || consume("\u{2029}") else {
                    return
                }
            }
        }
    }

    private mutating func skipComment() throws(JSON5Error) {
        let start = position
        if consume("//") {
            while let byte = peek, byte != UInt8(ascii: "\n"), byte != UInt8(ascii: "\r") { position += 1 }
        } else if consume("/*") {
            while !consume("*/") {
                guard peek != nil else { throw JSON5Error(reason: "the comment does not end", offset: start) }
                position += 1
            }
        } else {
            throw error("a stray /")
        }
    }

    private mutating func value(depth: Int) throws(JSON5Error) -> JSON5Value {
        let start = position
        guard depth <= Self.maxDepth else { throw error("nested deeper than \(Self.maxDepth) levels") }
        let content: JSON5Value.Content
        switch peek {
        case UInt8(ascii: "{"): content = .object(try members(depth: depth))
        case UInt8(ascii: "["): content = .array(try elements(depth: depth))
        case UInt8(ascii: "\""), UInt8(ascii: "'"): content = .string(try string())
        case .some(let byte) where isNumberStart(byte): content = try number()
        case .some(let byte) where isNameByte(byte):
            switch name() {
            case "true": content = .boolean(true)
            case "false": content = .boolean(false)
            case "null": content = .null
            case "Infinity": content = .number(.infinity)
            case "NaN": content = .number(.nan)
            default: throw JSON5Error(reason: "a text value must stand in quotes", offset: start)
            }
        default: throw error("a value must stand here")
        }
        return JSON5Value(content: content, offset: start)
    }

    private mutating func members(depth: Int) throws(JSON5Error) -> [JSON5Member] {
        position += 1
        var members: [JSON5Member] = []
        var names: Set<String> = []
        while true {
            try skipSpace()
            if consume(UInt8(ascii: "}")) { return members }
            let start = position
            let name: String
            switch peek {
            case UInt8(ascii: "\""), UInt8(ascii: "'"): name = try string()
            case .some(let byte) where isNameByte(byte) && !isDigit(byte): name = self.name()
            default: throw error("a name or } must stand here")
            }
            guard names.insert(name).inserted else {
                throw JSON5Error(reason: "the name '\(name)' occurs twice", offset: start)
            }
            try skipSpace()
            guard consume(UInt8(ascii: ":")) else { throw error("a colon must follow the name") }
            try skipSpace()
            members.append(JSON5Member(name: name, offset: start, value: try value(depth: depth + 1)))
            try skipSpace()
            guard consume(UInt8(ascii: ",")) || peek == UInt8(ascii: "}") else {
                throw error("a comma or } must stand here")
            }
        }
    }

    private mutating func elements(depth: Int) throws(JSON5Error) -> [JSON5Value] {
        position += 1
        var elements: [JSON5Value] = []
        while true {
            try skipSpace()
            if consume(UInt8(ascii: "]")) { return elements }
            elements.append(try value(depth: depth + 1))
            try skipSpace()
            guard consume(UInt8(ascii: ",")) || peek == UInt8(ascii: "]") else {
                throw error("a comma or ] must stand here")
            }
        }
    }

    private mutating func name() -> String {
        let start = position
        while let byte = peek, isNameByte(byte) { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }
}

func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

private func isNumberStart(_ byte: UInt8) -> Bool {
    isDigit(byte) || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
}

/// ASCII letters, digits, `$`, `_`; of the rest of Unicode everything, which is more than an identifier may have.
private func isNameByte(_ byte: UInt8) -> Bool {
    let lower = byte | 0x20
    return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lower) || isDigit(byte) || byte == UInt8(ascii: "_")
        || byte == UInt8(ascii: "$") || byte >= 0x80
}
