extension SIPMessage {
    /// Reads one message: a datagram, or what the stream framer cut out.
    ///
    /// Line ends before the start line are skipped. Bytes after the length that Content-Length states are dropped
    /// (RFC 3261 section 18.3). A message that cannot be taken apart throws; one that can, but is wrong, is returned
    /// and `validate()` says what to answer.
    /// - Throws: `SIPParseError`.
    public static func parse(_ bytes: [UInt8], limits: SIPLimits = .default) throws(SIPParseError) -> SIPMessage {
        guard bytes.count <= limits.maxMessageBytes else {
            throw SIPParseError(
                .limit, offset: limits.maxMessageBytes, reason: "the message is larger than the limit")
        }
        var lines = HeaderLines(position: 0, limits: limits)
        lines.skipLineEnds(bytes.span)
        guard lines.position < bytes.count else {
            throw SIPParseError(.empty, offset: 0, reason: "there is no message, only line ends")
        }
        guard let first = try lines.next(bytes.span, isStartLine: true) else {
            throw SIPParseError(
                .startLine, offset: lines.position, reason: "the start line is empty (RFC 3261 section 7.1)")
        }
        var (startLine, fault) = try StartLineParser.parse(ByteScanner(bytes, first.value))
        var fields: [SIPHeaders.Field] = []
        fields.reserveCapacity(20)
        var storage = bytes
        var vias = 0
        while let line = try lines.next(bytes.span, isStartLine: false) {
            guard fields.count < limits.maxHeaders else {
                throw SIPParseError(
                    .limit, offset: line.value.lowerBound, reason: "the message has more headers than the limit")
            }
            if line.isFolded { unfold(&storage, line.value) }
            guard !line.name.isEmpty else {
                fault = fault ?? SIPFault(status: 400, reason: "Bad Request (a header line without a name and colon)")
                continue
            }
            if line.kind == .via {
                vias += 1
                if bytes[line.value].contains(UInt8(ascii: ",")) {
                    vias += HeaderList.elements(ByteScanner(storage, line.value)).count - 1
                }
                guard vias <= limits.maxVias else {
                    throw SIPParseError(
                        .limit, offset: line.value.lowerBound, reason: "the message has more Vias than the limit")
                }
            }
            fields.append(SIPHeaders.Field(kind: line.kind, name: line.name, value: line.value, isReceived: true))
        }
        let headers = SIPHeaders(storage: storage, fields: fields)
        let bodyStart = lines.position
        var bodyEnd = bytes.count
        if case .length(let length) = headers.declaredContentLength, length < bodyEnd - bodyStart {
            bodyEnd = bodyStart + length
        }
        guard bodyEnd - bodyStart <= limits.maxBodyBytes else {
            throw SIPParseError(.limit, offset: bodyStart, reason: "the body is larger than the limit")
        }
        return SIPMessage(
            startLine: startLine, headers: headers,
            body: bodyStart < bodyEnd ? Array(bytes[bodyStart..<bodyEnd]) : [], receivedFault: fault)
    }

    /// Turns line ends within a folded value into spaces, which mean the same (RFC 3261 section 7.3.1): so no
    /// stored value holds a CR or LF, and no length changes.
    private static func unfold(_ storage: inout [UInt8], _ range: Range<Int>) {
        for index in range where storage[index] == 0x0D || storage[index] == 0x0A {
            storage[index] = 0x20
        }
    }
}

/// Reads the first line (RFC 3261 sections 7.1 and 7.2).
enum StartLineParser {
    static func parse(_ line: ByteScanner) throws(SIPParseError) -> (SIPMessage.StartLine, SIPFault?) {
        var scanner = line
        let first = scanner.take(.token)
        if scanner.peek == UInt8(ascii: "/") {
            return (try parseStatusLine(line), nil)
        }
        guard !first.isEmpty, scanner.peek == 0x20 else {
            throw SIPParseError(
                .startLine, offset: scanner.position,
                reason: "the message begins with neither a method nor a version (RFC 3261 section 7)")
        }
        let method = SIPMethod(rawValue: scanner.text(first))
        scanner.skip()

        // One space separates the parts. What has more can be understood and answered, but not trusted.
        var fault: SIPFault?
        var start = scanner.position
        var end = scanner.end
        while start < end, line.bytes[start].isBlank { start += 1 }
        while end > start, line.bytes[end - 1].isBlank { end -= 1 }
        if start != scanner.position || end != scanner.end { fault = spaces }
        guard let space = line.bytes[start..<end].lastIndex(where: \.isBlank) else {
            throw SIPParseError(
                .startLine, offset: start, reason: "the request line has no version (RFC 3261 section 7.1)")
        }
        let version = ByteScanner(line.bytes, (space + 1)..<end)
        guard isVersion(version) else {
            throw SIPParseError(
                .startLine, offset: space + 1, reason: "the request line has no SIP version (RFC 3261 section 7.1)")
        }
        var uriEnd = space
        while uriEnd > start, line.bytes[uriEnd - 1].isBlank { uriEnd -= 1 }
        if uriEnd != space || line.bytes[space] != 0x20 { fault = spaces }
        if !version.text(version.position..<version.end).hasSuffix("/2.0") {
            fault = SIPFault(status: 505, reason: SIPReasonPhrase.standard(for: 505))
        }
        let uri: SIPURI
        do throws(SIPParseError) {
            uri = try SIPURI(line.bytes, start..<uriEnd)
        } catch {
            fault = fault ?? SIPFault(status: 400, reason: "Bad Request-URI (\(error.reason))")
            uri = SIPURI(scheme: "", opaque: line.text(start..<uriEnd))
        }
        return (.request(method: method, uri: uri), fault)
    }

    private static let spaces = SIPFault(status: 400, reason: "Bad Request (spaces in the request line)")

    /// `SIP/` and a number with a dot.
    private static func isVersion(_ text: ByteScanner) -> Bool {
        var scanner = text
        let protocolName = scanner.take(.token)
        guard equalIgnoringCase(scanner.bytes.span, protocolName, "sip"), scanner.take(UInt8(ascii: "/")),
            scanner.takeNumber(maximum: .max) != nil, scanner.take(UInt8(ascii: ".")),
            scanner.takeNumber(maximum: .max) != nil
        else { return false }
        return scanner.isAtEnd
    }

    private static func parseStatusLine(_ line: ByteScanner) throws(SIPParseError) -> SIPMessage.StartLine {
        var scanner = line
        let version = scanner.take(until: 0x20)
        guard equalIgnoringCase(scanner.bytes.span, version, "sip/2.0"), scanner.take(0x20) else {
            throw SIPParseError(
                .startLine, offset: version.lowerBound, reason: "the response is not SIP/2.0 (RFC 3261 section 7.2)")
        }
        let digits = scanner.position
        guard let status = scanner.takeNumber(maximum: 699), status >= 100, scanner.position == digits + 3 else {
            throw SIPParseError(
                .startLine, offset: digits, reason: "the status is not 100 to 699 (RFC 3261 section 7.2)")
        }
        // The space after the status is required even before an empty reason; leaving it out harms nobody.
        guard scanner.isAtEnd || scanner.take(0x20) else {
            throw SIPParseError(
                .startLine, offset: scanner.position, reason: "no space follows the status (RFC 3261 section 7.2)")
        }
        return .response(
            status: Int(truncatingIfNeeded: status), reason: scanner.text(scanner.position..<scanner.end))
    }
}
