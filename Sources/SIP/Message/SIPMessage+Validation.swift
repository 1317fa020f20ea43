extension SIPMessage {
    /// What makes the message unusable, or nil. For a request the fault says which response to send; a faulty
    /// response is always dropped (status 0), as there is nobody to tell.
    ///
    /// Checked: version, mandatory headers, single headers that appear twice, syntax and ranges of the headers this
    /// library acts on, that the CSeq names the method, Content-Length against the body, and the scheme of the
    /// Request-URI. Left to others: Max-Forwards of zero (the proxy), unknown methods and extensions (the user agent),
    /// dates (nothing depends on them).
    public func validate() -> SIPFault? {
        guard let fault = findFault() else { return nil }
        return isRequest ? fault : SIPFault(status: 0, reason: fault.reason)
    }

    private func findFault() -> SIPFault? {
        if let receivedFault { return receivedFault }
        var seen: UInt128 = 0
        for field in headers.fields {
            let bit = field.kind.bit
            if seen & bit & HeaderName.single != 0 { return bad("two \(field.kind.names.long) headers") }
            seen |= bit
        }
        if seen & HeaderName.mandatory != HeaderName.mandatory { return missingHeader(seen) }
        if let fault = lengthFault() { return fault }
        let bytes = headers.storage.span
        var hasVia = false
        for field in headers.fields {
            if let fault = valueFault(field, isFirstVia: !hasVia, bytes) { return fault }
            if field.kind == .via { hasVia = true }
        }
        if seen & HeaderName.contact.bit != 0, hasStarContact, headers.count(.contact) > 1 {
            return bad("Contact: * beside another")
        }
        guard let uri = requestURI else { return nil }
        if uri.isSIP {
            return uri.escapedHeaders.isEmpty ? nil : bad("headers in the Request-URI")
        }
        return uri.scheme == "tel" ? nil : SIPFault(status: 416, reason: SIPReasonPhrase.standard(for: 416))
    }

    private func missingHeader(_ seen: UInt128) -> SIPFault? {
        [HeaderName.callID, .cseq, .from, .to, .via].first { seen & $0.bit == 0 }.map { bad("no \($0.names.long)") }
    }

    /// What is wrong with one header; the values are only looked at, not made.
    private func valueFault(_ field: SIPHeaders.Field, isFirstVia: Bool, _ bytes: Span<UInt8>) -> SIPFault? {
        var cursor = ByteCursor(field.value, in: bytes)
        switch field.kind {
        case .via: return viaFault(&cursor, isFirst: isFirstVia, bytes)
        case .from, .to:
            let isAddress = (try? AddressSyntax(&cursor, bytes)) != nil && cursor.isAtEnd
            return isAddress ? nil : bad(field.kind.names.long)
        case .contact, .route, .recordRoute:
            return isAddressList(field.kind, &cursor, bytes) ? nil : bad(field.kind.names.long)
        case .callID: return Self.isCallID(field.value, bytes) ? nil : bad("Call-ID")
        case .cseq:
            guard let cseq = CSeqSyntax(&cursor, bytes) else { return bad("CSeq") }
            guard let method, !equal(bytes, cseq.method, method.rawValue) else { return nil }
            return bad("CSeq names another method")
        case .maxForwards: return isNumber(&cursor, maximum: 255, bytes) ? nil : bad("Max-Forwards")
        case .expires, .minExpires:
            return isNumber(&cursor, maximum: Self.maximumSeconds, bytes) ? nil : bad(field.kind.names.long)
        default: return nil
        }
    }

    private func viaFault(_ first: inout ByteCursor, isFirst: Bool, _ bytes: Span<UInt8>) -> SIPFault? {
        var isTop = isFirst
        repeat {
            guard let via = try? ViaSyntax(&first, bytes) else { return bad("Via") }
            if isTop, let branch = via.branch(bytes), equal(bytes, branch, "z9hG4bK") {
                return bad("Via branch without an identifier")
            }
            isTop = false
        } while first.take(UInt8(ascii: ","), bytes)
        return nil
    }

    private func isAddressList(_ kind: HeaderName, _ cursor: inout ByteCursor, _ bytes: Span<UInt8>) -> Bool {
        if kind == .contact, equal(bytes, cursor.rest, "*") { return true }
        // Routes are SIP URIs (section 16.6 step 4), a Contact may be any.
        repeat {
            guard let address = try? AddressSyntax(&cursor, bytes), address.uri.isSIP || kind == .contact else {
                return false
            }
        } while cursor.take(UInt8(ascii: ","), bytes)
        return true
    }

    private func isNumber(_ cursor: inout ByteCursor, maximum: UInt64, _ bytes: Span<UInt8>) -> Bool {
        cursor.takeNumber(maximum: maximum, bytes) != nil && cursor.isAtEnd
    }

    /// Whether a range of bytes is this text.
    private func equal(_ bytes: Span<UInt8>, _ range: Range<Int>, _ text: String) -> Bool {
        guard range.count == text.utf8.count else { return false }
        var index = range.lowerBound
        for byte in text.utf8 {
            guard bytes[index] == byte else { return false }
            index &+= 1
        }
        return true
    }

    private func bad(_ what: String) -> SIPFault {
        SIPFault(status: 400, reason: "Bad Request (\(what))")
    }

    private func lengthFault() -> SIPFault? {
        switch headers.declaredContentLength {
        case .absent: nil
        case .malformed: bad("Content-Length")
        case .length(let length): length > body.count ? bad("the body is shorter than Content-Length says") : nil
        }
    }
}
