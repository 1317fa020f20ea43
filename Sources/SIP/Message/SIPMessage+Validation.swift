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
        var seen: UInt64 = 0
        for field in headers.fields {
            let bit = field.kind.bit
            if seen & bit & HeaderName.single != 0 {
                return bad("two \(field.kind.names.long) headers")
            }
            seen |= bit
        }
        if let missing = [HeaderName.callID, .cseq, .from, .to, .via].first(where: { headers.first($0) == nil }) {
            return bad("no \(missing.names.long)")
        }
        if let fault = lengthFault() ?? identityFault() ?? routingFault() ?? scalarFault() { return fault }
        guard let uri = requestURI else { return nil }
        if uri.isSIP {
            return uri.escapedHeaders.isEmpty ? nil : bad("headers in the Request-URI")
        }
        return uri.scheme == "tel" ? nil : SIPFault(status: 416, reason: SIPReasonPhrase.standard(for: 416))
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

    private func identityFault() -> SIPFault? {
        guard var scanner = headers.scanner(.via), let via = try? SIPVia(&scanner) else { return bad("Via") }
        if !scanner.isAtEnd || headers.count(.via) > 1, vias.isEmpty { return bad("Via") }
        if via.branch == "z9hG4bK" { return bad("Via branch without an identifier") }
        if from == nil { return bad("From") }
        if to == nil { return bad("To") }
        if callID == nil { return bad("Call-ID") }
        guard let cseq else { return bad("CSeq") }
        if let method, cseq.method != method { return bad("CSeq names another method") }
        return nil
    }

    private func routingFault() -> SIPFault? {
        if headers.first(.contact) != nil {
            if hasStarContact {
                if headers.count(.contact) > 1 { return bad("Contact: * beside another") }
            } else if addresses(.contact) == nil {
                return bad("Contact")
            }
        }
        if headers.first(.route) != nil, addresses(.route) == nil { return bad("Route") }
        if headers.first(.recordRoute) != nil, addresses(.recordRoute) == nil { return bad("Record-Route") }
        return nil
    }

    private func scalarFault() -> SIPFault? {
        if headers.first(.maxForwards) != nil, maxForwards == nil { return bad("Max-Forwards") }
        if headers.first(.expires) != nil, expires == nil { return bad("Expires") }
        if headers.first(.minExpires) != nil, minExpires == nil { return bad("Min-Expires") }
        return nil
    }
}
