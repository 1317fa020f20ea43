/// A set of ASCII characters, for the grammar's character classes.
struct ByteSet: Sendable {
    private var low: UInt64 = 0
    private var high: UInt64 = 0

    init(_ characters: String, alphanumeric: Bool = false) {
        for byte in characters.utf8 { insert(byte) }
        if alphanumeric {
            for byte in UInt8(ascii: "a")...UInt8(ascii: "z") { insert(byte) }
            for byte in UInt8(ascii: "A")...UInt8(ascii: "Z") { insert(byte) }
            for byte in UInt8(ascii: "0")...UInt8(ascii: "9") { insert(byte) }
        }
    }

    private mutating func insert(_ byte: UInt8) {
        if byte < 64 {
            low |= 1 << UInt64(byte)
        } else if byte < 128 {
            high |= 1 << UInt64(byte - 64)
        }
    }

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        byte < 64 ? (low &>> UInt64(byte)) & 1 != 0 : byte < 128 && (high &>> UInt64(byte & 63)) & 1 != 0
    }

    func containsAll(_ text: String) -> Bool {
        text.utf8.allSatisfy { contains($0) }
    }

    /// `token` (RFC 3261 section 25.1).
    static let token = ByteSet("-.!%*_+`'~", alphanumeric: true)
    /// `unreserved`: characters that mean the same whether escaped or not.
    static let unreserved = ByteSet("-_.!~*'()", alphanumeric: true)
    /// What stands unescaped in the user part.
    static let user = ByteSet("-_.!~*'()&=+$,;?/", alphanumeric: true)
    /// What stands unescaped in the password.
    static let password = ByteSet("-_.!~*'()&=+$,", alphanumeric: true)
    /// What stands unescaped in a URI parameter.
    static let uriParameter = ByteSet("-_.!~*'()[]/:&+$", alphanumeric: true)
    /// What stands unescaped in a URI header's name or value.
    static let uriHeader = ByteSet("-_.!~*'()[]/?:+$", alphanumeric: true)
    /// A host name or IPv4 address; the underscore is outside RFC 1123 but common in container names.
    static let host = ByteSet("-._", alphanumeric: true)
    /// A scheme's characters after the first letter.
    static let scheme = ByteSet("+-.", alphanumeric: true)
}

extension UInt8 {
    /// The ASCII letter in lower case, anything else unchanged.
    @inline(__always)
    var asciiLowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }

    @inline(__always)
    var isDigit: Bool { self &- 0x30 < 10 }

    @inline(__always)
    var isLetter: Bool { (self | 0x20) &- 0x61 < 26 }

    /// Space or tab.
    @inline(__always)
    var isBlank: Bool { self == 0x20 || self == 0x09 }

    /// The value of a hexadecimal digit.
    var hexadecimalValue: UInt8? {
        if isDigit { return self &- 0x30 }
        let folded = self | 0x20
        return folded &- 0x61 < 6 ? folded &- 0x61 &+ 10 : nil
    }

    /// Whether the byte may never appear in a field that is printed: it would end the line or the string.
    @inline(__always)
    var endsLine: Bool { self == 0x0D || self == 0x0A || self == 0 }
}

/// Whether two names are the same apart from the case of ASCII letters.
func equalIgnoringCase(_ left: String, _ right: String) -> Bool {
    guard left.utf8.count == right.utf8.count else { return false }
    var others = right.utf8.makeIterator()
    for byte in left.utf8 {
        guard let other = others.next(), byte == other || byte.asciiLowercased == other.asciiLowercased else {
            return false
        }
    }
    return true
}

extension String {
    /// ASCII letters in lower case; everything else, also beyond ASCII, unchanged.
    var asciiLowercased: String {
        utf8.contains { $0 &- 0x41 < 26 } ? String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self) : self
    }
}
