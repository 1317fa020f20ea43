import SIP

/// A URI is read and printed; read again it is the same, and equivalent to itself.
@Sendable func fuzzURI(_ bytes: [UInt8]) throws {
    let pieces = bytes.pieces(separatedBy: [0x0A])
    let uris = pieces.prefix(4).compactMap { try? SIPURI(parsing: String(decoding: $0, as: UTF8.self)) }
    for uri in uris {
        try expect(uri.printFault == nil, "read, but not to be printed: \(uri)")
        guard let again = try? SIPURI(parsing: uri.description) else {
            throw Finding(description: "printed, but not read: \(uri)")
        }
        try expect(again == uri, "changed by printing: \(uri)")
        try expect(again.hashValue == uri.hashValue, "equal, but with another hash: \(uri)")
        try expect(uri.isEquivalent(to: again), "not equivalent to itself: \(uri)")
        // Taking it apart and putting it together changes nothing.
        var copy = uri
        copy.user = uri.user
        copy.password = uri.password
        copy.host = uri.host
        copy.parameters = uri.parameters
        copy.headers = uri.headers
        _ = copy.description
        for other in uris {
            try expect(uri.isEquivalent(to: other) == other.isEquivalent(to: uri), "\(uri), \(other): one way only")
        }
    }
}

/// The text as the value of every header that is read into something.
@Sendable func fuzzHeaderValues(_ bytes: [UInt8]) throws {
    let text = String(decoding: bytes, as: UTF8.self)
    if let address = try? SIPAddress(parsing: text) {
        // Text of our own may hold line ends, which the printer refuses; what comes from the wire does not.
        let isOneLine = !bytes.contains { $0 == 0x0D || $0 == 0x0A || $0 == 0 }
        try expect(address.printFault == nil || !isOneLine, "read, but not to be printed: \(address)")
        try expect((try? SIPAddress(parsing: address.description)) == address, "changed by printing: \(address)")
    }
    if let via = try? SIPVia(parsing: text) {
        try expect((try? SIPVia(parsing: via.description)) == via, "changed by printing: \(via)")
        _ = (via.received, via.rport, via.hasRport, via.branch)
    }
    let names = [
        "Via", "From", "To", "Call-ID", "CSeq", "Max-Forwards", "Contact", "Route", "Record-Route", "Expires",
        "Min-Expires", "Retry-After", "Content-Type", "Content-Length", "WWW-Authenticate", "Proxy-Authenticate",
    ]
    let head = Array("OPTIONS sip:a@example.com SIP/2.0\r\n".utf8)
    for name in names {
        var message = SIPMessage(request: .options, uri: SIPURI(user: "a", host: "example.com"))
        message.headers[name] = text
        readEverything(message)
        _ = message.validate()
        // The same from the wire.
        guard let received = try? SIPMessage.parse(head + Array("\(name): ".utf8) + bytes + Array("\r\n\r\n".utf8))
        else {
            continue
        }
        readEverything(received)
        let values = received.headers.values(name)
        try expect(values.allSatisfy { !$0.isEmpty }, "an empty element of \(name)")
        if name == "Contact", !received.hasStarContact, !received.contacts.isEmpty {
            try expect(received.contacts.count == values.count, "a list is read in two ways: \(text.debugDescription)")
        }
    }
}
