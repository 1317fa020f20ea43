/// A name and address with header parameters, as in From, To, Contact and Route (RFC 3261 section 20.10).
public struct SIPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The name to show, without quotes and escapes; nil when there is none.
    public var displayName: String?
    /// The URI.
    public var uri: SIPURI
    /// The parameters of the header, after the closing angle bracket.
    public var parameters: SIPParameters

    /// Creates an address.
    public init(uri: SIPURI, displayName: String? = nil, parameters: SIPParameters = .init()) {
        self.uri = uri
        self.displayName = displayName
        self.parameters = parameters
    }

    /// Reads one address.
    /// - Throws: `SIPParseError` with code `headerValue` or `uri`.
    public init(parsing text: String) throws(SIPParseError) {
        var scanner = ByteScanner(text)
        try self.init(&scanner)
        guard scanner.isAtEnd else {
            throw SIPParseError(
                .headerValue, offset: scanner.position,
                reason: "text follows the address; a comma in a name needs quotes (RFC 3261 section 20.10)")
        }
    }

    /// The `tag` parameter.
    public var tag: String? {
        get { parameters["tag"] }
        set { parameters["tag"] = newValue }
    }

    /// The address with the URI in angle brackets and the name in quotes.
    public var description: String {
        var output: [UInt8] = []
        write(into: &output)
        return String(decoding: output, as: UTF8.self)
    }

    func write(into output: inout [UInt8]) {
        if let displayName {
            QuotedString.write(displayName, into: &output)
            output.append(UInt8(ascii: " "))
        }
        output.append(UInt8(ascii: "<"))
        uri.write(into: &output)
        output.append(UInt8(ascii: ">"))
        parameters.write(into: &output)
    }

    /// What would break the message if the address were printed into it, or nil.
    public var printFault: SIPPrintError? {
        if let displayName, displayName.utf8.contains(where: \.endsLine) {
            return SIPPrintError(field: "display name", reason: "holds CR, LF or NUL")
        }
        for entry in parameters.entries {
            if entry.name.isEmpty || !ByteSet.token.containsAll(entry.name) {
                return SIPPrintError(field: "parameter name", reason: "is not a token")
            }
            if let value = entry.value, value.utf8.contains(where: \.endsLine) {
                return SIPPrintError(field: "parameter \(entry.name)", reason: "holds CR, LF or NUL")
            }
        }
        return uri.printFault
    }

    /// Reads an address up to the end or to a comma.
    init(_ scanner: inout ByteScanner) throws(SIPParseError) {
        let syntax = try scanner.read { (cursor, bytes) throws(SIPParseError) in try AddressSyntax(&cursor, bytes) }
        self.init(scanner.bytes, syntax)
    }

    /// Makes the values of an address that was taken apart.
    init(_ bytes: [UInt8], _ syntax: AddressSyntax) {
        displayName =
            syntax.name.map { syntax.isNameQuoted ? Text.unquoted(bytes, $0) : Text.plain(bytes, $0) }
        uri = SIPURI(bytes, syntax.uri)
        parameters = SIPParameters(bytes, wellFormed: syntax.parameters)
    }
}

/// Where the parts of a name and address lie; checked whole.
struct AddressSyntax {
    /// Quotes included.
    var name: Range<Int>?
    var isNameQuoted = false
    var uri: URISyntax
    var parameters: Range<Int>

    /// Consumes an address up to the end or to a comma.
    init(_ cursor: inout ByteCursor, _ bytes: Span<UInt8>) throws(SIPParseError) {
        cursor.skipBlanks(bytes)
        var isBracketed = true
        if cursor.peek(bytes) == UInt8(ascii: "\"") {
            guard let quoted = cursor.takeQuotedString(bytes) else {
                throw Self.fault(cursor, "the quoted name never ends (RFC 3261 section 25.1)")
            }
            name = quoted
            isNameQuoted = true
            cursor.skipBlanks(bytes)
        } else if cursor.peek(bytes) != UInt8(ascii: "<") {
            // Either a name of tokens before `<`, or the URI itself without brackets.
            var ahead = cursor
            let start = ahead.position
            var nameEnd = start
            while let byte = ahead.peek(bytes), ByteSet.token.contains(byte) || byte.isBlank || byte >= 0x80 {
                ahead.skip()
                if !byte.isBlank { nameEnd = ahead.position }
            }
            if ahead.peek(bytes) == UInt8(ascii: "<") {
                name = nameEnd > start ? start..<nameEnd : nil
                cursor = ahead
            } else {
                isBracketed = false
            }
        }
        if isBracketed {
            guard cursor.take(UInt8(ascii: "<"), bytes) else {
                throw Self.fault(cursor, "`<` must follow the name (RFC 3261 section 20.10)")
            }
            let range = cursor.take(until: UInt8(ascii: ">"), bytes)
            guard cursor.take(UInt8(ascii: ">"), bytes) else {
                throw Self.fault(cursor, "`>` must end the URI (RFC 3261 section 20.10)")
            }
            uri = try URISyntax(range, bytes)
        } else {
            // Without brackets, `;` begins the header's parameters, and `,` and `?` are not allowed in the URI.
            let range = cursor.take(Self.bareURI, bytes)
            guard cursor.peek(bytes) != UInt8(ascii: "?") else {
                throw Self.fault(cursor, "a URI with headers needs angle brackets (RFC 3261 section 20.10)")
            }
            uri = try URISyntax(range, bytes)
        }
        guard let parameters = HeaderParameterSyntax.take(&cursor, bytes) else {
            throw Self.fault(cursor, "a parameter is empty or malformed (RFC 3261 section 25.1)")
        }
        self.parameters = parameters
        guard cursor.isAtEnd || cursor.peek(bytes) == UInt8(ascii: ",") else {
            throw Self.fault(cursor, "text follows the address (RFC 3261 section 20.10)")
        }
    }

    private static func fault(_ cursor: ByteCursor, _ reason: String) -> SIPParseError {
        SIPParseError(.headerValue, offset: cursor.position, reason: reason)
    }

    private static let bareURI = ByteSet("-_.!~*'()[]/:&+$%@=#", alphanumeric: true)
}
