/// Any JSON value: what is printed, and what a protocol carries where the shape depends on the method.
///
/// Printed keys are sorted, so that two outputs can be compared.
public enum JSONValue: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A whole number.
    case integer(Int64)
    /// A number with a fraction; infinite ones and NaN, which JSON does not have, are printed as null.
    case number(Double)
    /// A text.
    case string(String)
    /// A list.
    case array([JSONValue])
    /// An object.
    case object([String: JSONValue])

    /// Creates the value from a literal.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates the value from a literal.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Creates the value from a literal.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates the value from a literal.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Creates the value from a literal.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }

    /// A text, or null.
    public init(_ text: String?) { self = text.map { .string($0) } ?? .null }

    /// A number, or null.
    public init(_ number: (some BinaryInteger)?) {
        self = number.flatMap { Int64(exactly: $0) }.map { .integer($0) } ?? .null
    }

    /// The document for a failure: `{"error": {"code": …, "exitCode": …, …}}`.
    public init(_ failure: CommandFailure) {
        var error: [String: JSONValue] = [
            "code": .string(failure.exit.name), "exitCode": .integer(Int64(failure.exit.rawValue)),
            "message": .string(failure.message),
        ]
        if let step = failure.step { error["step"] = .string(step) }
        if let status = failure.sipStatus { error["sipStatus"] = .integer(Int64(status)) }
        if let hint = failure.hint { error["hint"] = .string(hint) }
        self = ["error": .object(error)]
    }

    /// The value in one line, or indented by two spaces for people.
    public func text(indented: Bool = false) -> String {
        var text = ""
        write(to: &text, indentation: indented ? "\n" : nil)
        return text
    }

    /// `indentation` is a line break and the spaces of the current level; nil writes one line.
    private func write(to text: inout String, indentation: String?) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        case .number(let value): text += value.isFinite ? "\(value)" : "null"
        case .string(let value): Self.write(value, to: &text)
        case .array(let values):
            Self.write(values, between: ("[", "]"), to: &text, indentation: indentation) { value, text, inner in
                value.write(to: &text, indentation: inner)
            }
        case .object(let members):
            let sorted = members.sorted { $0.key < $1.key }
            Self.write(sorted, between: ("{", "}"), to: &text, indentation: indentation) { member, text, inner in
                Self.write(member.key, to: &text)
                text += inner == nil ? ":" : ": "
                member.value.write(to: &text, indentation: inner)
            }
        }
    }

    private static func write<Element>(
        _ elements: [Element], between brackets: (String, String), to text: inout String, indentation: String?,
        element write: (Element, inout String, String?) -> Void
    ) {
        text += brackets.0
        let inner = indentation.map { $0 + "  " }
        for (index, element) in elements.enumerated() {
            if index > 0 { text += "," }
            text += inner ?? ""
            write(element, &text, inner)
        }
        if !elements.isEmpty { text += indentation ?? "" }
        text += brackets.1
    }

    static func write(_ value: String, to text: inout String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
