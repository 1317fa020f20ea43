/// A value of a JSON5 document, with the place where it begins.
struct JSON5Value: Equatable, Sendable {
    indirect enum Content: Equatable, Sendable {
        case string(String)
        case integer(Int64)
        case number(Double)
        case boolean(Bool)
        case null
        case array([JSON5Value])
        case object([JSON5Member])
    }

    var content: Content
    /// The byte of the document at which the value begins.
    var offset: Int

    /// What it is, for messages.
    var kind: String {
        switch content {
        case .string: "a string"
        case .integer, .number: "a number"
        case .boolean: "true or false"
        case .null: "null"
        case .array: "a list"
        case .object: "an object"
        }
    }

    var string: String? { if case .string(let text) = content { text } else { nil } }
    var integer: Int64? { if case .integer(let number) = content { number } else { nil } }
    var array: [JSON5Value]? { if case .array(let elements) = content { elements } else { nil } }
    var object: [JSON5Member]? { if case .object(let members) = content { members } else { nil } }

    /// The value of an object's member.
    subscript(_ name: String) -> JSON5Value? { object?.first { $0.name == name }?.value }
}

/// A name and its value in an object.
struct JSON5Member: Equatable, Sendable {
    var name: String
    /// The byte of the document at which the name begins.
    var offset: Int
    var value: JSON5Value
}

/// Why a text is not JSON5, and where.
struct JSON5Error: Error, Equatable {
    var reason: String
    var offset: Int
}

/// A place in a text, both counted from 1; columns count characters (Unicode scalars), as editors do.
struct TextPosition: Equatable, Sendable, CustomStringConvertible {
    var line: Int
    var column: Int

    /// The place of a byte of `text`; past the end means the end.
    init(offset: Int, in text: [UInt8]) {
        line = 1
        column = 1
        for byte in text.prefix(max(0, offset)) {
            if byte == UInt8(ascii: "\n") {
                line += 1
                column = 1
            } else if byte & 0xC0 != 0x80 {
                column += 1
            }
        }
    }

    var description: String { "line \(line), column \(column)" }
}
