/// The parameters of a URI or of a header value: `name` or `name=value`, in order. Names ignore case.
///
/// Values of a URI are plain text here and escaped when printed. Values of a header are as they stand on the wire,
/// a quoted string with its quotes; a value that needs quotes and has none gets them when printed.
public struct SIPParameters: Hashable, Sendable {
    /// Whose parameters these are, which decides how they are written.
    enum Context: Hashable {
        case header, uri
    }

    struct Entry: Hashable {
        var name: String
        var value: String?
    }

    /// In the URI context both texts are in escaped normal form.
    private(set) var entries: [Entry] = []
    private(set) var context: Context

    /// No parameters.
    public init() {
        context = .header
    }

    init(context: Context) {
        self.context = context
    }

    /// The value of the first parameter of that name: "" when it stands without a value, nil when it is absent.
    /// Setting replaces it in place or appends it; "" sets it without a value, nil removes it.
    public subscript(_ name: String) -> String? {
        get {
            guard let index = index(of: name) else { return nil }
            return plain(entries[index].value ?? "")
        }
        set {
            guard let newValue else { return remove(name) }
            let value = newValue.isEmpty ? nil : escaped(newValue)
            if let index = index(of: name) {
                entries[index].value = value
            } else {
                entries.append(Entry(name: escaped(name), value: value))
            }
        }
    }

    /// Whether a parameter of that name is there, with or without a value.
    public func contains(_ name: String) -> Bool { index(of: name) != nil }

    /// Sets the parameter without a value.
    public mutating func setFlag(_ name: String) { self[name] = "" }

    /// Removes all parameters of that name.
    public mutating func remove(_ name: String) {
        entries = entries.filter { !equalIgnoringCase(plain($0.name), name) }
    }

    /// Whether there are none.
    public var isEmpty: Bool { entries.isEmpty }

    /// All parameters in order; nil is the value of one that stands without.
    public var all: [(name: String, value: String?)] {
        entries.map { (plain($0.name), $0.value.map(plain)) }
    }

    /// The value with quotes and escapes of a quoted string resolved.
    public func unquoted(_ name: String) -> String? {
        guard let value = self[name] else { return nil }
        var scanner = ByteScanner(value)
        guard let range = scanner.takeQuotedString(), scanner.isAtEnd else { return value }
        return scanner.unquoted(range)
    }

    /// Parameters are equal when names (ignoring case), values and order are.
    public static func == (left: SIPParameters, right: SIPParameters) -> Bool {
        guard left.entries.count == right.entries.count else { return false }
        let right = left.context == right.context ? right : right.converted(to: left.context)
        return zip(left.entries, right.entries).allSatisfy {
            $0.value == $1.value && equalIgnoringCase($0.name, $1.name)
        }
    }

    /// Hashes what equality compares.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(entries.count)
        for entry in entries { hasher.combine(plain(entry.name).asciiLowercased) }
    }

    func converted(to context: Context) -> SIPParameters {
        guard context != self.context else { return self }
        var result = SIPParameters(context: context)
        result.entries = all.map {
            Entry(name: result.escaped($0.name), value: $0.value.map { result.escaped($0) })
        }
        return result
    }

    mutating func appendParsed(name: String, value: String?) {
        entries.append(Entry(name: name, value: value))
    }

    private func index(of name: String) -> Int? {
        entries.firstIndex { equalIgnoringCase($0.name, name) }
            ?? (context == .uri ? entries.firstIndex { equalIgnoringCase(plain($0.name), name) } : nil)
    }

    private func plain(_ text: String) -> String {
        context == .uri ? Escaping.unescaped(text) : text
    }

    private func escaped(_ text: String) -> String {
        context == .uri ? Escaping.escaped(text, allowed: .uriParameter) : text
    }
}

// MARK: - Reading and writing

extension SIPParameters {
    /// What a header parameter's value may hold without quotes. Wider than `token`, as peers are: `:` and brackets
    /// for IPv6, `=` and `/` for tags in base64.
    static let bareValue = ByteSet("-.!%*_+`'~:[]=/@$&?#|^(){}", alphanumeric: true)

    /// Makes the values of header parameters that were found well-formed (`HeaderParameterSyntax`).
    init(_ bytes: [UInt8], wellFormed range: Range<Int>) {
        self.init()
        var cursor = ByteCursor(range, in: bytes.span)
        while case .parameter(let name, let value) = HeaderParameterSyntax.next(&cursor, bytes.span) {
            appendParsed(name: Text.plain(bytes, name), value: value.map { Text.plain(bytes, $0) })
        }
    }

    /// Reads `*( SEMI generic-param )` of a header value up to its end or to `,`. False when it breaks the grammar.
    mutating func parseHeaderParameters(_ scanner: inout ByteScanner) -> Bool {
        guard let range = scanner.read(HeaderParameterSyntax.take) else { return false }
        for entry in SIPParameters(scanner.bytes, wellFormed: range).entries {
            appendParsed(name: entry.name, value: entry.value)
        }
        return true
    }

    func write(into output: inout [UInt8]) {
        for entry in entries {
            output.append(UInt8(ascii: ";"))
            output.append(contentsOf: entry.name.utf8)
            guard let value = entry.value else { continue }
            output.append(UInt8(ascii: "="))
            if context == .uri || Self.isWritable(value) {
                output.append(contentsOf: value.utf8)
            } else {
                QuotedString.write(value, into: &output)
            }
        }
    }

    private static func isWritable(_ value: String) -> Bool {
        if bareValue.containsAll(value) { return true }
        var scanner = ByteScanner(value)
        return scanner.takeQuotedString() != nil && scanner.isAtEnd
    }
}

/// The grammar of header parameters, `*( SEMI generic-param )` (RFC 3261 section 25.1).
enum HeaderParameterSyntax {
    enum Step {
        case parameter(name: Range<Int>, value: Range<Int>?)
        /// No parameter is next.
        case end
        case malformed
    }

    /// Consumes one parameter with the blanks and the semicolon before it.
    @inline(__always)
    static func next(_ cursor: inout ByteCursor, _ bytes: Span<UInt8>) -> Step {
        cursor.skipBlanks(bytes)
        guard cursor.take(UInt8(ascii: ";"), bytes) else { return .end }
        cursor.skipBlanks(bytes)
        let name = cursor.take(.token, bytes)
        guard !name.isEmpty else { return .malformed }
        cursor.skipBlanks(bytes)
        guard cursor.take(UInt8(ascii: "="), bytes) else { return .parameter(name: name, value: nil) }
        cursor.skipBlanks(bytes)
        if cursor.peek(bytes) == UInt8(ascii: "\"") {
            guard let quoted = cursor.takeQuotedString(bytes) else { return .malformed }
            return .parameter(name: name, value: quoted)
        }
        let value = cursor.take(SIPParameters.bareValue, bytes)
        return value.isEmpty ? .malformed : .parameter(name: name, value: value)
    }

    /// Consumes all parameters and gives where they lie; nil when one breaks the grammar.
    static func take(_ cursor: inout ByteCursor, _ bytes: Span<UInt8>) -> Range<Int>? {
        let start = cursor.position
        while true {
            switch next(&cursor, bytes) {
            case .parameter: continue
            case .end: return start..<cursor.position
            case .malformed: return nil
            }
        }
    }
}

/// Writing of quoted strings (RFC 3261 section 25.1).
enum QuotedString {
    static func write(_ text: String, into output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { output.append(UInt8(ascii: "\\")) }
            output.append(byte)
        }
        output.append(UInt8(ascii: "\""))
    }
}
