extension SIPURI {
    /// Reads a URI that stands alone (RFC 3261 section 25.1, `SIP-URI / SIPS-URI / absoluteURI`).
    /// - Throws: `SIPParseError` with code `uri`.
    public init(parsing text: String) throws(SIPParseError) {
        let bytes = Array(text.utf8)
        try self.init(bytes, 0..<bytes.count)
    }

    /// Reads the URI that fills `range`.
    init(_ bytes: [UInt8], _ range: Range<Int>) throws(SIPParseError) {
        self.init(bytes, try URISyntax(range, bytes.span))
    }

    /// Makes the values of a URI that was taken apart.
    init(_ bytes: [UInt8], _ syntax: URISyntax) {
        guard syntax.isSIP else {
            self.init(scheme: Text.lowercased(bytes, syntax.scheme), opaque: Text.plain(bytes, syntax.opaque))
            return
        }
        var parameters = SIPParameters(context: .uri)
        var cursor = ByteCursor(syntax.parameters, in: bytes.span)
        while let (name, value) = URISyntax.nextParameter(&cursor, bytes.span) {
            parameters.appendParsed(
                name: Escaping.normalized(bytes, name), value: value.map { Escaping.normalized(bytes, $0) })
        }
        var headers: [Header] = []
        cursor = ByteCursor(syntax.headers, in: bytes.span)
        while let (name, value) = URISyntax.nextHeader(&cursor, bytes.span) {
            headers.append(Header(name: Escaping.normalized(bytes, name), value: Escaping.normalized(bytes, value)))
        }
        self.init(
            isSecure: syntax.isSecure, user: syntax.user.map { Escaping.normalized(bytes, $0) },
            password: syntax.password.map { Escaping.normalized(bytes, $0) },
            parsedHost: Host.text(bytes, syntax.host), port: syntax.port, parameters: parameters, headers: headers)
    }
}

/// Where the parts of a URI lie. It is checked whole, so that the values can be made later, or never: to know that a
/// message is valid takes no strings.
struct URISyntax {
    var scheme: Range<Int>
    /// `sip` or `sips`; of any other scheme only `opaque` counts.
    var isSIP = false
    var isSecure = false
    var opaque = 0..<0
    var user: Range<Int>?
    var password: Range<Int>?
    var host = 0..<0
    var port: UInt16?
    /// From the first `;` to the end of the last parameter.
    var parameters = 0..<0
    /// From the `?` to the end; empty when there are none.
    var headers = 0..<0

    /// Takes apart the URI that fills `range`.
    init(_ range: Range<Int>, _ bytes: Span<UInt8>) throws(SIPParseError) {
        var cursor = ByteCursor(range, in: bytes)
        guard cursor.peek(bytes)?.isLetter == true else {
            throw Self.fault(cursor, range, "a URI must begin with a scheme (RFC 3261 section 19.1.1)")
        }
        scheme = cursor.take(.scheme, bytes)
        guard cursor.take(UInt8(ascii: ":"), bytes) else {
            throw Self.fault(
                cursor, range, "a URI needs a scheme followed by a colon (RFC 3261 section 19.1.1)")
        }
        isSecure = equalIgnoringCase(bytes, scheme, "sips")
        isSIP = isSecure || equalIgnoringCase(bytes, scheme, "sip")
        guard isSIP else {
            opaque = cursor.rest
            guard Self.isVisible(opaque, bytes) else {
                throw Self.fault(
                    cursor, range,
                    "a URI holds visible ASCII only, without quotes or angle brackets (RFC 3986 section 2)")
            }
            return
        }
        try takeUserInfo(&cursor, range, bytes)
        guard let host = Host.find(&cursor, bytes) else {
            throw Self.fault(cursor, range, "the host is neither a name nor an address (RFC 3261 section 25.1)")
        }
        self.host = host
        if cursor.take(UInt8(ascii: ":"), bytes) {
            guard let number = cursor.takeNumber(maximum: 65_535, bytes) else {
                throw Self.fault(cursor, range, "the port is not a number up to 65535 (RFC 3261 section 25.1)")
            }
            port = UInt16(truncatingIfNeeded: number)
        }
        try takeParameters(&cursor, range, bytes)
        try takeHeaders(&cursor, range, bytes)
        guard cursor.isAtEnd else {
            throw Self.fault(
                cursor, range, "a character stands in the URI that must be escaped (RFC 3261 section 25.1)")
        }
    }

    private static func fault(_ cursor: ByteCursor, _ range: Range<Int>, _ reason: String) -> SIPParseError {
        SIPParseError(.uri, offset: cursor.position - range.lowerBound, reason: reason)
    }

    private static func isVisible(_ range: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
        for index in range {
            let byte = bytes[index]
            guard byte > 0x20, byte < 0x7F, byte != UInt8(ascii: "<"), byte != UInt8(ascii: ">"),
                byte != UInt8(ascii: "\"")
            else { return false }
        }
        return !range.isEmpty
    }

    /// An `@` must be escaped everywhere but here, so the first one ends the user part whatever stands before.
    private mutating func takeUserInfo(
        _ cursor: inout ByteCursor, _ range: Range<Int>, _ bytes: Span<UInt8>
    ) throws(SIPParseError) {
        var ahead = cursor
        let userInfo = ahead.take(until: UInt8(ascii: "@"), bytes)
        guard ahead.take(UInt8(ascii: "@"), bytes) else { return }
        var part = ByteCursor(userInfo, in: bytes)
        let name = part.take(until: UInt8(ascii: ":"), bytes)
        guard !name.isEmpty, Escaping.isWellFormed(name, allowed: .user, bytes) else {
            throw Self.fault(
                cursor, range,
                "the user part is empty or holds a character that must be escaped (RFC 3261 section 25.1)")
        }
        user = name
        if part.take(UInt8(ascii: ":"), bytes) {
            guard Escaping.isWellFormed(part.rest, allowed: .password, bytes) else {
                throw Self.fault(
                    cursor, range, "the password holds a character that must be escaped (RFC 3261 section 25.1)")
            }
            password = part.rest
        }
        cursor = ahead
    }

    private mutating func takeParameters(
        _ cursor: inout ByteCursor, _ range: Range<Int>, _ bytes: Span<UInt8>
    ) throws(SIPParseError) {
        let start = cursor.position
        let allowed = ByteSet.uriParameter
        while cursor.peek(bytes) == UInt8(ascii: ";") {
            guard let (name, value) = Self.nextParameter(&cursor, bytes), !name.isEmpty, value?.isEmpty != true,
                Escaping.isWellFormed(name, allowed: allowed, bytes),
                value.map({ Escaping.isWellFormed($0, allowed: allowed, bytes) }) ?? true
            else {
                throw Self.fault(
                    cursor, range, "a URI parameter is empty or has a broken escape (RFC 3261 section 25.1)")
            }
        }
        parameters = start..<cursor.position
    }

    private mutating func takeHeaders(
        _ cursor: inout ByteCursor, _ range: Range<Int>, _ bytes: Span<UInt8>
    ) throws(SIPParseError) {
        let start = cursor.position
        guard cursor.peek(bytes) == UInt8(ascii: "?") else { return }
        repeat {
            guard let (name, value) = Self.nextHeader(&cursor, bytes) else {
                throw Self.fault(cursor, range, "a URI header needs a name and `=` (RFC 3261 section 25.1)")
            }
            guard !name.isEmpty, Escaping.isWellFormed(name, allowed: .uriHeader, bytes),
                Escaping.isWellFormed(value, allowed: .uriHeader, bytes)
            else {
                throw Self.fault(
                    cursor, range, "a URI header has no name or a broken escape (RFC 3261 section 25.1)")
            }
        } while cursor.peek(bytes) == UInt8(ascii: "&")
        headers = start..<cursor.position
    }

    /// Consumes `;name` or `;name=value`; nil when no `;` is next.
    static func nextParameter(
        _ cursor: inout ByteCursor, _ bytes: Span<UInt8>
    ) -> (name: Range<Int>, value: Range<Int>?)? {
        guard cursor.take(UInt8(ascii: ";"), bytes) else { return nil }
        let name = cursor.take(parameterOrEscape, bytes)
        guard cursor.take(UInt8(ascii: "="), bytes) else { return (name, nil) }
        return (name, cursor.take(parameterOrEscape, bytes))
    }

    /// Consumes `?name=value` or `&name=value`; nil when something else is next.
    static func nextHeader(
        _ cursor: inout ByteCursor, _ bytes: Span<UInt8>
    ) -> (name: Range<Int>, value: Range<Int>)? {
        guard cursor.take(UInt8(ascii: "?"), bytes) || cursor.take(UInt8(ascii: "&"), bytes) else { return nil }
        let name = cursor.take(headerOrEscape, bytes)
        guard cursor.take(UInt8(ascii: "="), bytes) else { return nil }
        return (name, cursor.take(headerOrEscape, bytes))
    }

    private static let parameterOrEscape = ByteSet("-_.!~*'()[]/:&+$%", alphanumeric: true)
    private static let headerOrEscape = ByteSet("-_.!~*'()[]/?:+$%", alphanumeric: true)
}
