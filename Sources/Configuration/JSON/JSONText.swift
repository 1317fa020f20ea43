/// A JSON value to be written, members in the order given: for the files and reports of this module, which are small.
enum JSONText: Sendable {
    case string(String)
    case integer(Int64)
    case boolean(Bool)
    case null
    case array([JSONText])
    case object([(name: String, value: JSONText)])

    /// The value as JSON (RFC 8259), indented by two blanks, ASCII control characters escaped. Lists of plain values
    /// stand on one line.
    func text(indent: String = "") -> String {
        let inner = indent + "  "
        switch self {
        case .string(let text): return Self.literal(text)
        case .integer(let number): return String(number)
        case .boolean(let value): return value ? "true" : "false"
        case .null: return "null"
        case .array(let elements):
            if elements.allSatisfy(\.isPlain) {
                return "[" + elements.map { $0.text() }.joined(separator: ", ") + "]"
            }
            return "[\n" + elements.map { inner + $0.text(indent: inner) }.joined(separator: ",\n") + "\n\(indent)]"
        case .object(let members):
            guard !members.isEmpty else { return "{}" }
            let lines = members.map { inner + Self.literal($0.name) + ": " + $0.value.text(indent: inner) }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(indent)}"
        }
    }

    private var isPlain: Bool {
        switch self {
        case .array, .object: false
        default: true
        }
    }

    private static func literal(_ text: String) -> String {
        var literal = ""
        JSONValue.write(text, to: &literal)
        return literal
    }
}
