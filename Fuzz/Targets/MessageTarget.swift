import SIP

/// A SIP message is read; what there is to read of it is read; what is valid is printed, and read again it is the same.
@Sendable func fuzzMessage(_ bytes: [UInt8]) throws {
    guard let message = try? SIPMessage.parse(bytes) else { return }
    let fault = message.validate()
    readEverything(message)
    try checkResponse(to: message, fault)
    var changed = message
    changed.topVia?.received = "192.0.2.1"
    changed.from = message.from
    changed.to = message.to
    changed.contacts = message.contacts
    changed.removeTopVia()
    _ = try? changed.encoded()
    guard fault == nil else { return }

    let printed: [UInt8]
    do {
        printed = try message.encoded()
    } catch {
        throw Finding(description: "valid, but not printed: \(error)")
    }
    guard let again = try? SIPMessage.parse(printed, limits: generous) else {
        throw Finding(description: "printed, but not read: \(printed.readable)")
    }
    try expect(again.validate() == nil, "printed, but no longer valid: \(printed.readable)")
    try expect(withoutLength(again) == withoutLength(message), "changed by printing: \(printed.readable)")
    try expect((try? again.encoded()) == printed, "printed differently the second time: \(printed.readable)")
}

/// Bytes that are not UTF-8 become longer as replacement characters, and may then be too long for a line.
private let generous = SIPLimits(maxMessageBytes: 1 << 20, maxHeaderBytes: 1 << 20)

/// A request can be answered whatever is wrong with it.
private func checkResponse(to message: SIPMessage, _ fault: SIPFault?) throws {
    guard message.isRequest, fault?.status != 0 else { return }
    let response = message.response(status: fault?.status ?? 200, reason: fault?.reason, toTag: "ours")
    guard let printed = try? response.encoded() else {
        throw Finding(description: "the response to a request is not printed")
    }
    guard let again = try? SIPMessage.parse(printed, limits: generous) else {
        throw Finding(description: "the response to a request is not read: \(printed.readable)")
    }
    try expect(again.headers.all("Via") == message.headers.all("Via"), "the response has other Vias")
    if fault == nil { try expect(again.validate() == nil, "the response to a valid request is not valid") }
}

private func withoutLength(_ message: SIPMessage) -> SIPMessage {
    var message = message
    message.headers.remove("Content-Length")
    return message
}

func readEverything(_ message: SIPMessage) {
    _ = (message.vias, message.topVia, message.contacts, message.hasStarContact, message.routes, message.recordRoutes)
    _ = (message.from, message.to, message.callID, message.cseq, message.maxForwards)
    _ = (message.expires, message.minExpires, message.retryAfter, message.contentType, message.contentLength)
    for (name, _) in message.headers.all.prefix(24) {
        _ = message.headers.values(name)
        _ = message.headers[name]
    }
    if let uri = message.requestURI, let other = message.to?.uri { _ = uri.isEquivalent(to: other) }
    _ = Challenge.challenges(in: message)
}

/// However a stream is cut, the messages in it are the same.
@Sendable func fuzzStream(_ bytes: [UInt8]) throws {
    guard let seed = bytes.first else { return }
    let stream = [UInt8](bytes.dropFirst())
    let whole = try messages(in: [stream])
    let pieces = try messages(in: stream.cut(by: seed))
    try expect(whole == pieces, "cut differently, the stream has other messages")
}

private struct StreamContent: Equatable {
    var messages: [[UInt8]] = []
    var error: SIPParseError.Code?
}

private func messages(in pieces: [[UInt8]]) throws -> StreamContent {
    var framer = SIPStreamFramer()
    var content = StreamContent()
    for piece in pieces {
        framer.receive(piece)
        do throws(SIPParseError) {
            while let frame = try framer.next() {
                guard case .message(let message) = frame else { continue }
                try expectTyped(!message.isEmpty && message.count <= SIPLimits.default.maxMessageBytes)
                content.messages.append(message)
                _ = try? SIPMessage.parse(message)
            }
        } catch {
            content.error = error.code
        }
        try expect(framer.pendingBytes <= 2 * SIPLimits.default.maxMessageBytes, "the framer holds too much")
    }
    return content
}

private func expectTyped(_ condition: Bool) throws(SIPParseError) {
    if !condition { throw SIPParseError(.limit, offset: 0, reason: "a frame of wrong size") }
}
