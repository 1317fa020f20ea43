extension SIPMessage {
    /// The message as it goes on the wire. Content-Length is always written, last, and right.
    /// - Throws: `SIPPrintError` when a field holds something that would become another field: CR, LF or NUL
    ///   anywhere, a space in the method or Request-URI, a header name that is no token.
    public func encoded() throws(SIPPrintError) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(256 + headers.fields.count * 48 + body.count)
        try writeStartLine(into: &output)
        for field in headers.fields where field.kind != .contentLength {
            let name = headers.storage[field.name]
            let value = headers.storage[field.value]
            guard !name.isEmpty, name.allSatisfy({ ByteSet.token.contains($0) }) else {
                throw SIPPrintError(
                    field: "header name", reason: "is not a token (RFC 3261 section 25.1): give a name like Subject")
            }
            guard !value.contains(where: { $0.endsLine && !(field.isReceived && $0 == 0) }) else {
                throw SIPPrintError(
                    field: String(decoding: name, as: UTF8.self),
                    reason: "holds CR, LF or NUL, which would start another header: remove them")
            }
            output.append(contentsOf: name)
            output.append(UInt8(ascii: ":"))
            output.append(0x20)
            output.append(contentsOf: value)
            output.append(0x0D)
            output.append(0x0A)
        }
        output.append(contentsOf: "Content-Length: ".utf8)
        output.append(contentsOf: String(body.count).utf8)
        output.append(contentsOf: "\r\n\r\n".utf8)
        output.append(contentsOf: body)
        return output
    }

    private func writeStartLine(into output: inout [UInt8]) throws(SIPPrintError) {
        switch startLine {
        case .request(let method, let uri):
            guard !method.rawValue.isEmpty, ByteSet.token.containsAll(method.rawValue) else {
                throw SIPPrintError(field: "method", reason: "is not a token (RFC 3261 section 7.1)")
            }
            if let fault = uri.printFault {
                throw SIPPrintError(field: "Request-URI \(fault.field)", reason: fault.reason)
            }
            output.append(contentsOf: method.rawValue.utf8)
            output.append(0x20)
            uri.write(into: &output)
            output.append(contentsOf: " SIP/2.0\r\n".utf8)
        case .response(let status, let reason):
            guard (100...699).contains(status) else {
                throw SIPPrintError(field: "status", reason: "is not 100 to 699 (RFC 3261 section 7.2)")
            }
            guard !reason.utf8.contains(where: \.endsLine) else {
                throw SIPPrintError(field: "reason", reason: "holds CR, LF or NUL, which would start a header")
            }
            output.append(contentsOf: "SIP/2.0 ".utf8)
            output.append(contentsOf: String(status).utf8)
            output.append(0x20)
            output.append(contentsOf: reason.utf8)
            output.append(0x0D)
            output.append(0x0A)
        }
    }
}
