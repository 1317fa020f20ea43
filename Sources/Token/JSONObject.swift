// A strict reader for the two small JSON objects of a token. FoundationEssentials' decoder is not used: it cannot tell
// that a name occurs twice (RFC 7519, section 4, demands unique claim names, and two readers that pick different ones
// are an attack), it rounds numbers through Double, and the core modules do without Foundation.

/// A JSON value as far as a token needs it.
enum JSONValue: Equatable, Sendable {
    case string(String)
    /// A number written without fraction and exponent that fits 64 bits.
    case integer(Int64)
    /// Any other number, as written: `1.5`, `1e308`, or too many digits.
    case number(String)
    case boolean(Bool)
    case null
    /// An object or array; checked like everything else, its content not kept.
    case composite

    /// What it is, for messages.
    var kind: String {
        switch self {
        case .string: "a string"
        case .integer: "a whole number"
        case .number(let text):
            text.utf8.contains { $0 == UInt8(ascii: ".") || $0 | 0x20 == UInt8(ascii: "e") }
                ? "a number with a fraction or exponent (\(text.prefix(24)))" : "a number too large for 64 bits"
        case .boolean: "a boolean"
        case .null: "null"
        case .composite: "an object or array"
        }
    }
}

/// Why a text is not the JSON that a token may contain.
enum JSONError: Error, Equatable {
    /// Not JSON, at this byte.
    case syntax(String, offset: Int)
    /// A name occurs twice in one object.
    case duplicate(name: String)
    /// Objects and arrays nest deeper than `JSONReader.maxDepth`.
    case depth
    /// Not UTF-8.
    case encoding
}

/// Reads one JSON object from bytes (RFC 8259), with no leniency.
struct JSONReader {
    /// How deep objects and arrays may nest, the outermost counted. Bounds the reader's recursion.
    static let maxDepth = 4

    private let bytes: [UInt8]
    private var position = 0

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The members of the object that `bytes` consist of.
    static func object(_ bytes: [UInt8]) throws(JSONError) -> [String: JSONValue] {
        guard String(validating: bytes, as: UTF8.self) != nil else { throw .encoding }
        var reader = JSONReader(bytes)
        reader.skipSpace()
        guard reader.peek == UInt8(ascii: "{") else { throw reader.syntax("an object must begin here") }
        let members = try reader.members(depth: 1)
        reader.skipSpace()
        guard reader.peek == nil else { throw reader.syntax("text follows the object") }
        return members
    }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private func syntax(_ reason: String) -> JSONError { .syntax(reason, offset: position) }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d {
            position += 1
        }
    }

    private mutating func consume(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        position += 1
        return true
    }

    /// An object's members; the position is at its `{`.
    private mutating func members(depth: Int) throws(JSONError) -> [String: JSONValue] {
        guard depth <= Self.maxDepth else { throw .depth }
        position += 1
        var members: [String: JSONValue] = [:]
        skipSpace()
        if consume(UInt8(ascii: "}")) { return members }
        while true {
            skipSpace()
            guard peek == UInt8(ascii: "\"") else { throw syntax("a name in double quotes must stand here") }
            let name = try string()
            // Compared as strings, so escapes do not hide a second one, nor do canonically equivalent spellings.
            guard members[name] == nil else { throw .duplicate(name: name) }
            skipSpace()
            guard consume(UInt8(ascii: ":")) else { throw syntax("a colon must stand here") }
            members[name] = try value(depth: depth)
            skipSpace()
            if consume(UInt8(ascii: "}")) { return members }
            guard consume(UInt8(ascii: ",")) else { throw syntax("a comma or } must stand here") }
        }
    }

    private mutating func elements(depth: Int) throws(JSONError) {
        guard depth <= Self.maxDepth else { throw .depth }
        position += 1
        skipSpace()
        if consume(UInt8(ascii: "]")) { return }
        while true {
            _ = try value(depth: depth)
            skipSpace()
            if consume(UInt8(ascii: "]")) { return }
            guard consume(UInt8(ascii: ",")) else { throw syntax("a comma or ] must stand here") }
        }
    }

    private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
        skipSpace()
        switch peek {
        case UInt8(ascii: "\""):
            return .string(try string())
        case UInt8(ascii: "{"):
            _ = try members(depth: depth + 1)
            return .composite
        case UInt8(ascii: "["):
            try elements(depth: depth + 1)
            return .composite
        case UInt8(ascii: "t"):
            try word("true")
            return .boolean(true)
        case UInt8(ascii: "f"):
            try word("false")
            return .boolean(false)
        case UInt8(ascii: "n"):
            try word("null")
            return .null
        case .some(let byte) where byte == UInt8(ascii: "-") || isDigit(byte):
            return try number()
        default:
            throw syntax("a value must stand here")
        }
    }

    private mutating func word(_ word: String) throws(JSONError) {
        for byte in word.utf8 {
            guard consume(byte) else { throw syntax("true, false or null must stand here") }
        }
    }

    private mutating func digits() -> Int {
        let start = position
        while let byte = peek, isDigit(byte) {
            position += 1
        }
        return position - start
    }

    private mutating func number() throws(JSONError) -> JSONValue {
        let start = position
        _ = consume(UInt8(ascii: "-"))
        let leadingZero = peek == UInt8(ascii: "0")
        let count = digits()
        guard count > 0 else { throw syntax("a digit must stand here") }
        guard !leadingZero || count == 1 else { throw .syntax("a number begins with 0", offset: start) }
        var isWhole = true
        if consume(UInt8(ascii: ".")) {
            isWhole = false
            guard digits() > 0 else { throw syntax("a digit must follow the decimal point") }
        }
        if consume(UInt8(ascii: "e")) || consume(UInt8(ascii: "E")) {
            isWhole = false
            if !consume(UInt8(ascii: "+")) { _ = consume(UInt8(ascii: "-")) }
            guard digits() > 0 else { throw syntax("a digit must stand in the exponent") }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isWhole, let integer = Int64(text) { return .integer(integer) }
        return .number(text)
    }

    /// A string; the position is at its opening quote.
    private mutating func string() throws(JSONError) -> String {
        position += 1
        var content: [UInt8] = []
        while let byte = peek {
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                position += 1
                content.append(contentsOf: try escape().utf8)
            case 0..<0x20:
                throw syntax("a control character must be escaped")
            default:
                content.append(byte)
                position += 1
            }
        }
        throw syntax("the string does not end")
    }

    /// What follows a backslash.
    private mutating func escape() throws(JSONError) -> String {
        guard let byte = peek else { throw syntax("the string does not end") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return String(try escapedScalar())
        default: throw .syntax("no such escape", offset: position - 1)
        }
    }

    /// The character of `\uXXXX`, or of the two that write one above U+FFFF (RFC 8259, section 7).
    private mutating func escapedScalar() throws(JSONError) -> Character {
        let first = try hexadecimalDigits()
        var value = UInt32(first)
        if (0xD800..<0xDC00).contains(value) {
            guard consume(UInt8(ascii: "\\")), consume(UInt8(ascii: "u")) else {
                throw syntax("half of a surrogate pair")
            }
            let second = UInt32(try hexadecimalDigits())
            guard (0xDC00..<0xE000).contains(second) else { throw syntax("half of a surrogate pair") }
            value = 0x10000 + ((value - 0xD800) << 10) + (second - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(value) else { throw syntax("half of a surrogate pair") }
        return Character(scalar)
    }

    private mutating func hexadecimalDigits() throws(JSONError) -> UInt16 {
        var value: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = peek, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw syntax("four hexadecimal digits must stand here")
            }
            value = value << 4 | UInt16(digit)
            position += 1
        }
        return value
    }
}

private func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
}

/// A JSON string literal. Slashes are not escaped, as the vendor's tokens do not.
func jsonLiteral(_ text: String) -> String {
    var literal = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": literal += "\\\""
        case "\\": literal += "\\\\"
        case "\u{0}"..<" ":
            let digits = String(scalar.value, radix: 16)
            literal += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
        default: literal.unicodeScalars.append(scalar)
        }
    }
    return literal + "\""
}
