extension SIPURI {
    /// Reads a URI that stands alone (RFC 3261 section 25.1, `SIP-URI / SIPS-URI / absoluteURI`).
    /// - Throws: `SIPParseError` with code `uri`.
    public init(parsing text: String) throws(SIPParseError) {
        let scanner = ByteScanner(text)
        try self.init(scanner, scanner.position..<scanner.end)
    }

    /// Reads the URI that fills `range`.
    init(_ outer: ByteScanner, _ range: Range<Int>) throws(SIPParseError) {
        var scanner = ByteScanner(outer.bytes, range)
        func fault(_ reason: String) -> SIPParseError {
            SIPParseError(.uri, offset: scanner.position - range.lowerBound, reason: reason)
        }
        guard scanner.peek?.isLetter == true else {
            throw fault("a URI must begin with a scheme (RFC 3261 section 19.1.1)")
        }
        let schemeRange = scanner.take(.scheme)
        guard scanner.take(UInt8(ascii: ":")) else {
            throw fault("a URI needs a scheme followed by a colon (RFC 3261 section 19.1.1)")
        }
        let scheme = scanner.text(schemeRange).asciiLowercased
        guard scheme == "sip" || scheme == "sips" else {
            let rest = scanner.position..<scanner.end
            let isVisible = scanner.bytes[rest].allSatisfy {
                $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: ">")
                    && $0 != UInt8(ascii: "\"")
            }
            guard !rest.isEmpty, isVisible else {
                throw fault("a URI holds visible ASCII only, without quotes or angle brackets (RFC 3986 section 2)")
            }
            self.init(scheme: scheme, opaque: scanner.text(rest))
            return
        }
        var user: String?
        var password: String?
        var port: UInt16?
        var parameters = SIPParameters(context: .uri)
        var headers: [Header] = []

        // An `@` must be escaped everywhere but here, so the first one ends the user part whatever stands before.
        var ahead = scanner
        let userInfo = ahead.take(until: UInt8(ascii: "@"))
        if ahead.take(UInt8(ascii: "@")) {
            var part = ByteScanner(scanner.bytes, userInfo)
            let name = part.take(until: UInt8(ascii: ":"))
            user = Escaping.normalized(scanner, name, allowed: .user)
            guard !name.isEmpty, user != nil else {
                throw fault("the user part is empty or holds a character that must be escaped (RFC 3261 section 25.1)")
            }
            if part.take(UInt8(ascii: ":")) {
                password = Escaping.normalized(scanner, part.position..<part.end, allowed: .password)
                guard password != nil else {
                    throw fault("the password holds a character that must be escaped (RFC 3261 section 25.1)")
                }
            }
            scanner = ahead
        }
        guard let host = Host.take(&scanner) else {
            throw fault("the host is neither a name nor an address (RFC 3261 section 25.1)")
        }
        if scanner.take(UInt8(ascii: ":")) {
            guard let number = scanner.takeNumber(maximum: 65_535) else {
                throw fault("the port is not a number up to 65535 (RFC 3261 section 25.1)")
            }
            port = UInt16(truncatingIfNeeded: number)
        }
        while scanner.take(UInt8(ascii: ";")) {
            let name = scanner.take(Self.parameterOrEscape)
            let hasValue = scanner.take(UInt8(ascii: "="))
            let value = hasValue ? scanner.take(Self.parameterOrEscape) : name
            guard !name.isEmpty, !value.isEmpty,
                let nameText = Escaping.normalized(scanner, name, allowed: .uriParameter),
                let valueText = Escaping.normalized(scanner, value, allowed: .uriParameter)
            else {
                throw fault("a URI parameter is empty or has a broken escape (RFC 3261 section 25.1)")
            }
            parameters.appendParsed(name: nameText, value: hasValue ? valueText : nil)
        }
        if scanner.take(UInt8(ascii: "?")) {
            repeat {
                let name = scanner.take(Self.headerOrEscape)
                guard scanner.take(UInt8(ascii: "=")) else {
                    throw fault("a URI header needs a name and `=` (RFC 3261 section 25.1)")
                }
                let value = scanner.take(Self.headerOrEscape)
                guard !name.isEmpty, let nameText = Escaping.normalized(scanner, name, allowed: .uriHeader),
                    let valueText = Escaping.normalized(scanner, value, allowed: .uriHeader)
                else {
                    throw fault("a URI header has no name or a broken escape (RFC 3261 section 25.1)")
                }
                headers.append(Header(name: nameText, value: valueText))
            } while scanner.take(UInt8(ascii: "&"))
        }
        guard scanner.isAtEnd else {
            throw fault("a character stands in the URI that must be escaped (RFC 3261 section 25.1)")
        }
        self.init(
            isSecure: scheme == "sips", user: user, password: password, parsedHost: host, port: port,
            parameters: parameters, headers: headers)
    }

    private static let parameterOrEscape = ByteSet("-_.!~*'()[]/:&+$%", alphanumeric: true)
    private static let headerOrEscape = ByteSet("-_.!~*'()[]/?:+$%", alphanumeric: true)
}
