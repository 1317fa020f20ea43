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
        func fault(_ scanner: ByteScanner, _ reason: String) -> SIPParseError {
            SIPParseError(.headerValue, offset: scanner.position, reason: reason)
        }
        scanner.skipBlanks()
        let name = scanner.take(.token)
        guard name.count == 3, equalIgnoringCase(scanner.text(name), "SIP"), scanner.takeSlash() else {
            throw fault(scanner, "the protocol is not SIP/2.0 (RFC 3261 section 20.42)")
        }
        let version = scanner.take(.token)
        guard scanner.text(version) == "2.0", scanner.takeSlash() else {
            throw fault(scanner, "the protocol is not SIP/2.0 (RFC 3261 section 20.42)")
        }
        let transport = scanner.take(.token)
        guard !transport.isEmpty, scanner.peek?.isBlank == true else {
            throw fault(scanner, "the transport is missing (RFC 3261 section 20.42)")
        }
        scanner.skipBlanks()
        guard let host = Host.take(&scanner) else {
            throw fault(scanner, "sent-by is neither a name nor an address (RFC 3261 section 20.42)")
        }
        self.init(transport: scanner.text(transport), host: host)
        var ahead = scanner
        ahead.skipBlanks()
        if ahead.take(UInt8(ascii: ":")) {
            ahead.skipBlanks()
            guard let number = ahead.takeNumber(maximum: 65_535) else {
                throw fault(ahead, "the port is not a number up to 65535 (RFC 3261 section 25.1)")
            }
            port = UInt16(truncatingIfNeeded: number)
            scanner = ahead
        }
        guard parameters.parseHeaderParameters(&scanner) else {
            throw fault(scanner, "a parameter is empty or malformed (RFC 3261 section 25.1)")
        }
        guard scanner.isAtEnd || scanner.peek == UInt8(ascii: ",") else {
            throw fault(scanner, "text follows the Via (RFC 3261 section 20.42)")
        }
    }
}

extension ByteScanner {
    /// Consumes `/` with blanks around it.
    fileprivate mutating func takeSlash() -> Bool {
        skipBlanks()
        guard take(UInt8(ascii: "/")) else { return false }
        skipBlanks()
        return true
    }
}
