/// Why a text is not base64.
public enum Base64Error: Error, Equatable, Sendable, CustomStringConvertible {
    /// A character outside the alphabet, at this byte of the text. Line breaks and spaces are outside, too.
    case character(offset: Int)
    /// The number of characters is one that no byte string encodes to.
    case length
    /// Padding where none may be, or too much or too little of it.
    case padding
    /// The last character carries bits that belong to no byte and are not zero (RFC 4648, section 3.5): a second
    /// spelling of the same bytes.
    case trailingBits

    /// The reason in a few words.
    public var description: String {
        switch self {
        case .character(let offset): "character \(offset + 1) is not in the alphabet"
        case .length: "no byte string encodes to this many characters"
        case .padding: "the padding is wrong"
        case .trailingBits: "the last character has stray bits"
        }
    }
}

/// Base64 with padding (RFC 4648, section 4).
public func base64Encode(_ bytes: [UInt8]) -> String {
    encode(bytes, alphabet: .standard, padded: true)
}

/// Reads base64 strictly: the standard alphabet, padded to a multiple of four, no white space, zero trailing bits.
public func base64Decode(_ text: String) throws(Base64Error) -> [UInt8] {
    let characters = Array(text.utf8)
    let padding = characters.reversed().prefix { $0 == UInt8(ascii: "=") }.count
    guard padding <= 2, characters.count % 4 == 0, padding == 0 || padding < characters.count else {
        // A foreign character is the likelier mistake; name it first.
        let body = characters.dropLast(padding)
        if let offset = body.firstIndex(where: { Alphabet.standard.value($0) == nil }) {
            throw .character(offset: offset)
        }
        throw .padding
    }
    return try decode(Array(characters.dropLast(padding)), alphabet: .standard)
}

/// Base64url without padding (RFC 4648, section 5; RFC 7515, section 2).
public func base64URLEncode(_ bytes: [UInt8]) -> String {
    encode(bytes, alphabet: .url, padded: false)
}

/// Reads base64url strictly: the URL alphabet, no padding, no white space, zero trailing bits. So every byte string has
/// one spelling only.
public func base64URLDecode(_ text: String) throws(Base64Error) -> [UInt8] {
    let characters = Array(text.utf8)
    guard characters.last != UInt8(ascii: "=") else { throw .padding }
    return try decode(characters, alphabet: .url)
}

private enum Alphabet {
    case standard, url

    func character(_ value: UInt8) -> UInt8 {
        switch value {
        case 0..<26: UInt8(ascii: "A") + value
        case 26..<52: UInt8(ascii: "a") + (value - 26)
        case 52..<62: UInt8(ascii: "0") + (value - 52)
        case 62: UInt8(ascii: self == .standard ? "+" : "-")
        default: UInt8(ascii: self == .standard ? "/" : "_")
        }
    }

    func value(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: self == .standard ? "+" : "-"): 62
        case UInt8(ascii: self == .standard ? "/" : "_"): 63
        default: nil
        }
    }
}

private func encode(_ bytes: [UInt8], alphabet: Alphabet, padded: Bool) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var bits: UInt32 = 0
    var count = 0
    for byte in bytes {
        bits = bits << 8 | UInt32(byte)
        count += 8
        while count >= 6 {
            count -= 6
            text.append(alphabet.character(UInt8(truncatingIfNeeded: bits >> count) & 0x3F))
        }
    }
    if count > 0 {
        text.append(alphabet.character(UInt8(truncatingIfNeeded: bits << (6 - count)) & 0x3F))
    }
    while padded, text.count % 4 != 0 {
        text.append(UInt8(ascii: "="))
    }
    return String(decoding: text, as: UTF8.self)
}

private func decode(_ characters: [UInt8], alphabet: Alphabet) throws(Base64Error) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(characters.count / 4 * 3 + 2)
    var bits: UInt32 = 0
    var count = 0
    for (offset, character) in characters.enumerated() {
        guard let value = alphabet.value(character) else { throw .character(offset: offset) }
        bits = bits << 6 | UInt32(value)
        count += 6
        if count >= 8 {
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> count))
        }
    }
    guard count < 6 else { throw .length }
    guard bits & ((1 << count) - 1) == 0 else { throw .trailingBits }
    return bytes
}
