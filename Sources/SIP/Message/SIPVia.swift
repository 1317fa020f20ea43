/// One hop of the path that a request took, where its response goes back (RFC 3261 section 20.42).
public struct SIPVia: Hashable, Sendable, CustomStringConvertible {
    /// The transport in upper case, such as `UDP`.
    public var transport: String {
        didSet { transport = transport.uppercased() }
    }
    /// The host of `sent-by` in lower case, IPv6 with brackets.
    public var host: String
    /// The port of `sent-by`, if it is named.
    public var port: UInt16?
    /// All parameters.
    public var parameters: SIPParameters

    /// Creates a hop. An IPv6 host may come with or without brackets.
    public init(transport: String, host: String, port: UInt16? = nil, branch: String? = nil) {
        self.transport = transport.uppercased()
        self.host = Host.normalized(host)
        self.port = port
        self.parameters = SIPParameters()
        self.parameters["branch"] = branch
    }

    /// Reads one Via value.
    /// - Throws: `SIPParseError` with code `headerValue`.
    public init(parsing text: String) throws(SIPParseError) {
        var scanner = ByteScanner(text)
        try self.init(&scanner)
        guard scanner.isAtEnd else {
            throw SIPParseError(
                .headerValue, offset: scanner.position, reason: "text follows the Via (RFC 3261 section 20.42)")
        }
    }

    /// The transaction's identifier; `z9hG4bK` begins one that is unique (RFC 3261 section 8.1.1.7).
    public var branch: String? {
        get { parameters["branch"] }
        set { parameters["branch"] = newValue }
    }

    /// The address that the request really came from, without brackets.
    public var received: String? {
        get {
            guard let value = parameters["received"] else { return nil }
            return value.hasPrefix("[") && value.hasSuffix("]") ? String(value.dropFirst().dropLast()) : value
        }
        set { parameters["received"] = newValue }
    }

    /// The port that the request really came from (RFC 3581); nil while it is only asked for.
    public var rport: UInt16? { parameters["rport"].flatMap { UInt16($0) } }

    /// Whether the sender asks for the response to come back to the port it sent from (RFC 3581).
    public var hasRport: Bool { parameters.contains("rport") }

    /// The value as it stands in the header.
    public var description: String {
        var output: [UInt8] = []
        write(into: &output)
        return String(decoding: output, as: UTF8.self)
    }

    func write(into output: inout [UInt8]) {
        output.append(contentsOf: "SIP/2.0/".utf8)
        output.append(contentsOf: transport.utf8)
        output.append(UInt8(ascii: " "))
        output.append(contentsOf: host.utf8)
        if let port {
            output.append(UInt8(ascii: ":"))
            output.append(contentsOf: String(port).utf8)
        }
        parameters.write(into: &output)
    }

    /// Reads a value up to the end or to a comma.
    init(_ scanner: inout ByteScanner) throws(SIPParseError) {
        let syntax = try scanner.read { (cursor, bytes) throws(SIPParseError) in try ViaSyntax(&cursor, bytes) }
        self.init(scanner.bytes, syntax)
    }

    /// Makes the values of a Via that was taken apart.
    init(_ bytes: [UInt8], _ syntax: ViaSyntax) {
        transport = Text.plain(bytes, syntax.transport).uppercased()
        host = Host.text(bytes, syntax.host)
        port = syntax.port
        parameters = SIPParameters(bytes, wellFormed: syntax.parameters)
    }
}

/// Where the parts of a Via value lie; checked whole.
struct ViaSyntax {
    var transport: Range<Int>
    var host: Range<Int>
    var port: UInt16?
    var parameters: Range<Int>

    /// Consumes a value up to the end or to a comma.
    init(_ cursor: inout ByteCursor, _ bytes: Span<UInt8>) throws(SIPParseError) {
        cursor.skipBlanks(bytes)
        guard equalIgnoringCase(bytes, cursor.take(.token, bytes), "sip"), Self.takeSlash(&cursor, bytes),
            equalIgnoringCase(bytes, cursor.take(.token, bytes), "2.0"), Self.takeSlash(&cursor, bytes)
        else {
            throw Self.fault(cursor, "the protocol is not SIP/2.0 (RFC 3261 section 20.42)")
        }
        transport = cursor.take(.token, bytes)
        guard !transport.isEmpty, cursor.peek(bytes)?.isBlank == true else {
            throw Self.fault(cursor, "the transport is missing (RFC 3261 section 20.42)")
        }
        cursor.skipBlanks(bytes)
        guard let host = Host.find(&cursor, bytes) else {
            throw Self.fault(cursor, "sent-by is neither a name nor an address (RFC 3261 section 20.42)")
        }
        self.host = host
        var ahead = cursor
        ahead.skipBlanks(bytes)
        if ahead.take(UInt8(ascii: ":"), bytes) {
            ahead.skipBlanks(bytes)
            guard let number = ahead.takeNumber(maximum: 65_535, bytes) else {
                throw Self.fault(ahead, "the port is not a number up to 65535 (RFC 3261 section 25.1)")
            }
            port = UInt16(truncatingIfNeeded: number)
            cursor = ahead
        }
        guard let parameters = HeaderParameterSyntax.take(&cursor, bytes) else {
            throw Self.fault(cursor, "a parameter is empty or malformed (RFC 3261 section 25.1)")
        }
        self.parameters = parameters
        guard cursor.isAtEnd || cursor.peek(bytes) == UInt8(ascii: ",") else {
            throw Self.fault(cursor, "text follows the Via (RFC 3261 section 20.42)")
        }
    }

    /// The value of the first `branch`.
    func branch(_ bytes: Span<UInt8>) -> Range<Int>? {
        var cursor = ByteCursor(parameters, in: bytes)
        while case .parameter(let name, let value) = HeaderParameterSyntax.next(&cursor, bytes) {
            if equalIgnoringCase(bytes, name, "branch") { return value }
        }
        return nil
    }

    /// Consumes `/` with blanks around it.
    private static func takeSlash(_ cursor: inout ByteCursor, _ bytes: Span<UInt8>) -> Bool {
        cursor.skipBlanks(bytes)
        guard cursor.take(UInt8(ascii: "/"), bytes) else { return false }
        cursor.skipBlanks(bytes)
        return true
    }

    private static func fault(_ cursor: ByteCursor, _ reason: String) -> SIPParseError {
        SIPParseError(.headerValue, offset: cursor.position, reason: reason)
    }
}
