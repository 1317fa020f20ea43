import WebSocket

/// However the bytes are cut, the events are the same; the handshakes bear everything, too. The first byte says on which
/// side we are and how the bytes are cut.
@Sendable func fuzzWebSocket(_ bytes: [UInt8]) throws {
    guard let seed = bytes.first else { return }
    let stream = [UInt8](bytes.dropFirst())
    let role: WebSocketRole = seed & 1 == 0 ? .client : .server
    let whole = events(in: [stream], role)
    try expect(whole == events(in: stream.cut(by: seed), role), "cut differently, the stream has other events")

    for pieces in [[stream], stream.cut(by: seed)] {
        var server = WebSocketServerHandshake(path: "/", subprotocol: "sip")
        for piece in pieces where server.receive(piece) != nil { break }
        let nonce = [UInt8](repeating: 7, count: 16)
        guard var client = try? WebSocketClientHandshake(host: "h", path: "/", subprotocol: "sip", nonce: nonce) else {
            throw Finding(description: "no client handshake")
        }
        do {
            for piece in pieces where try client.receive(piece) != nil { break }
        } catch {}
    }
}

private func events(in pieces: [[UInt8]], _ role: WebSocketRole) -> [String] {
    var receiver = WebSocketReceiver(role: role)
    var result: [String] = []
    for piece in pieces {
        receiver.append(piece)
        do {
            while let event = try receiver.next() { result.append("\(event)") }
        } catch {
            result.append("\(error)")
            break
        }
    }
    return result
}
