/// One scheme with its parameters, out of a challenge or a credentials header.
///
/// Grammar of RFC 7235 section 2.1 as RFC 3261 section 25 has it: `scheme SP param *(COMMA param)`, or one token68
/// (`Bearer` credentials). Several challenges may share a header line, separated by the same commas as parameters.
struct AuthenticationFields: Hashable, Sendable {
    /// As written; schemes compare without case.
    var scheme: String
    /// What follows the scheme when that is one token68 and no parameters.
    var token: String?
    /// Names in lower case, values unquoted; the first of equal names counts.
    var parameters: [(name: String, value: String)] = []

    init(scheme: String, token: String? = nil) {
        self.scheme = scheme
        self.token = token
    }

    subscript(_ name: String) -> String? {
        parameters.first { $0.name == name }?.value
    }

    func isScheme(_ name: String) -> Bool {
        scheme.lowercased() == name
    }

    static func == (left: Self, right: Self) -> Bool {
        left.scheme == right.scheme && left.token == right.token
            && left.parameters.elementsEqual(right.parameters, by: ==)
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(scheme)
        hasher.combine(token)
    }

    /// The parameters of a header line that names no scheme, such as Authentication-Info.
    static func parameters(_ line: String) -> AuthenticationFields {
        parse("- " + line).first ?? AuthenticationFields(scheme: "-")
    }

    /// Everything that one header line holds. What cannot be read is skipped up to the next comma.
    static func parse(_ line: String) -> [AuthenticationFields] {
        var reader = Reader(line)
        var result: [AuthenticationFields] = []
        while reader.skipSeparators() {
            guard let word = reader.word() else {
                reader.skipItem()
                continue
            }
            if reader.skipEquals() {
                // A parameter of the scheme before it; of none, it means nothing.
                let value = reader.value()
                if let value, !result.isEmpty {
                    result[result.count - 1].parameters.append((word.lowercased(), value))
                }
                continue
            }
            var fields = AuthenticationFields(scheme: word)
            fields.token = reader.token68()
            result.append(fields)
        }
        return result
    }
}

extension AuthenticationFields {
    /// Reads words, quoted strings and separators off a header value.
    private struct Reader {
        private let bytes: [UInt8]
        private var position = 0

        init(_ text: String) {
            bytes = Array(text.utf8)
        }

        private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

        private mutating func skipSpace() {
            while let byte = current, byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A { position += 1 }
        }

        /// Moves to the next item; false at the end.
        mutating func skipSeparators() -> Bool {
            while let byte = current, byte == UInt8(ascii: ",") || byte <= 0x20 { position += 1 }
            return current != nil
        }

        /// Leaves an item that cannot be read: up to the next comma outside quotes, at least one byte.
        mutating func skipItem() {
            var isQuoted = false
            while let byte = current {
                position += 1
                if byte == UInt8(ascii: "\\"), isQuoted { position += 1 }
                if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
                if byte == UInt8(ascii: ","), !isQuoted { return }
            }
        }

        mutating func word() -> String? {
            let start = position
            while let byte = current, Self.isTokenByte(byte) { position += 1 }
            return position > start ? String(decoding: bytes[start..<position], as: UTF8.self) : nil
        }

        /// Takes `=` with the space around it.
        mutating func skipEquals() -> Bool {
            let start = position
            skipSpace()
            guard current == UInt8(ascii: "=") else {
                position = start
                return false
            }
            position += 1
            skipSpace()
            return true
        }

        /// The value of a parameter, quoted or not.
        mutating func value() -> String? {
            guard current == UInt8(ascii: "\"") else {
                let start = position
                while let byte = current, byte != UInt8(ascii: ","), byte > 0x20 { position += 1 }
                return String(decoding: bytes[start..<position], as: UTF8.self)
            }
            position += 1
            var text: [UInt8] = []
            while let byte = current {
                position += 1
                if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
                if byte == UInt8(ascii: "\\"), let escaped = current {
                    text.append(escaped)
                    position += 1
                } else {
                    text.append(byte)
                }
            }
            return nil  // the quote never closes
        }

        /// The token68 after a scheme: one word, perhaps padded with `=`, that a comma or the end follows.
        mutating func token68() -> String? {
            let start = position
            skipSpace()
            guard position > start else { return nil }
            let first = position
            while let byte = current, Self.isToken68Byte(byte) { position += 1 }
            let hasWord = position > first
            while current == UInt8(ascii: "=") { position += 1 }
            let end = position
            skipSpace()
            guard hasWord, current == nil || current == UInt8(ascii: ",") else {
                position = start
                return nil
            }
            return String(decoding: bytes[first..<end], as: UTF8.self)
        }

        private static func isTokenByte(_ byte: UInt8) -> Bool {
            isAlphanumeric(byte) || "-.!%*_+`'~#$&^|/".utf8.contains(byte)
        }

        private static func isToken68Byte(_ byte: UInt8) -> Bool {
            isAlphanumeric(byte) || "-._~+/".utf8.contains(byte)
        }

        private static func isAlphanumeric(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: false
            }
        }
    }

    /// A quoted string; backslash and quote are escaped.
    static func quoted(_ text: String) -> String {
        var result = "\""
        for character in text.unicodeScalars {
            if character == "\"" || character == "\\" { result.unicodeScalars.append("\\") }
            result.unicodeScalars.append(character)
        }
        return result + "\""
    }
}
