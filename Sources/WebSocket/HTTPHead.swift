/// The head of an HTTP/1.1 message: its first line and its fields (RFC 9112), as much of HTTP as the opening handshake
/// of WebSocket needs.
struct HTTPHead: Sendable, Equatable {
    struct Field: Sendable, Equatable {
        /// In lower case.
        var name: String
        var value: String
    }

    /// The three parts of the first line; the last may be empty in a response.
    var start: [String]
    var fields: [Field]

    /// The only value of a field; nil when it is missing or there are several.
    func single(_ name: String) -> String? {
        let values = fields.filter { $0.name == name }
        return values.count == 1 ? values.first?.value : nil
    }

    /// The values of a field that is a list, over all its lines.
    func list(_ name: String) -> [String] {
        fields.filter { $0.name == name }.flatMap { field in
            field.value.split(separator: ",").map { trimmed($0) }.filter { !$0.isEmpty }
        }
    }

    /// Whether a list contains a token, in any case of letters.
    func contains(_ token: String, in name: String) -> Bool {
        list(name).contains { $0.lowercased() == token }
    }
}

/// Collects the head of an HTTP message, of limited size, and keeps what follows it.
struct HTTPHeadReader: Sendable {
    private let limit: Int
    /// How the message must begin. What does not is refused at the first byte that differs, and not awaited.
    private let opening: [UInt8]
    private let openingIsWrong: String
    private var bytes: [UInt8] = []
    private var searched = 0

    init(limit: Int, opening: String, openingIsWrong: String) {
        self.limit = limit
        self.opening = Array(opening.utf8)
        self.openingIsWrong = openingIsWrong
    }

    /// Takes what arrived. The head and what came after it, when it is complete. Throws `.handshake`.
    mutating func append(_ more: [UInt8]) throws(WebSocketFailure) -> (head: HTTPHead, rest: [UInt8])? {
        bytes.append(contentsOf: more)
        guard zip(bytes, opening).allSatisfy({ $0 == $1 }) else { throw .handshake(openingIsWrong) }
        let end: [UInt8] = [13, 10, 13, 10]
        var index = max(0, searched - 3)
        while index + 4 <= min(bytes.count, limit) {
            if bytes[index] == 13, bytes[index..<index + 4].elementsEqual(end) {
                return (try Self.parse(bytes[..<index]), Array(bytes[(index + 4)...]))
            }
            index += 1
        }
        searched = bytes.count
        guard bytes.count < limit else { throw .handshake("the HTTP header is longer than \(limit) bytes") }
        return nil
    }

    private static func parse(_ bytes: ArraySlice<UInt8>) throws(WebSocketFailure) -> HTTPHead {
        var lines: [ArraySlice<UInt8>] = []
        var rest = bytes
        while let carriageReturn = rest.firstIndex(of: 13) {
            lines.append(rest[..<carriageReturn])
            rest = rest[(carriageReturn + 1)...]
            guard rest.first == 10 else { throw .handshake("the HTTP header has a line that does not end in CRLF") }
            rest = rest.dropFirst()
        }
        lines.append(rest)
        guard lines.count <= 101 else { throw .handshake("the HTTP header has more than 100 fields") }
        for line in lines {
            guard line.allSatisfy({ $0 == 9 || $0 >= 32 && $0 != 127 }) else {
                throw .handshake("the HTTP header has a control character")
            }
        }
        let start = lines[0].split(separator: 32, maxSplits: 2, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        var fields: [HTTPHead.Field] = []
        fields.reserveCapacity(lines.count)
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                line[..<colon].allSatisfy(isToken)
            else { throw .handshake("the HTTP header has a line that is no field") }
            fields.append(
                HTTPHead.Field(
                    name: String(decoding: line[..<colon], as: UTF8.self).lowercased(),
                    value: trimmed(Substring(decoding: line[(colon + 1)...], as: UTF8.self))))
        }
        return HTTPHead(start: start, fields: fields)
    }

    /// A character of a field's name (RFC 9110, section 5.6.2).
    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

/// Without the spaces and tabs around it.
func trimmed(_ text: Substring) -> String {
    var text = text
    while text.first == " " || text.first == "\t" { text.removeFirst() }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return String(text)
}

/// What a peer wrote, fit for a message: no control characters, and not long.
func printable(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars.prefix(120) {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
            result.unicodeScalars.append("\u{FFFD}")
        default:
            result.unicodeScalars.append(scalar)
        }
    }
    return result
}
