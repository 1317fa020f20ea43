import Crypto

/// The value that proves a server read the client's key (RFC 6455, section 4.2.2).
func webSocketAccept(_ key: String) -> String {
    base64Encode(sha1(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
}

/// A client's opening handshake (RFC 6455, section 4.1), with a subprotocol that the server must accept (RFC 7118).
public struct WebSocketClientHandshake: Sendable {
    /// What to send first.
    public let request: [UInt8]

    private let accept: String
    private let subprotocol: String
    private var reader: HTTPHeadReader

    /// Makes the request. Throws `.handshake` when host, path or subprotocol have characters that cannot be there.
    ///
    /// - Parameters:
    ///   - host: the domain, with `:port` when it is not the scheme's own.
    ///   - path: the resource, from its slash, with the query.
    ///   - nonce: 16 bytes, random.
    public init(
        host: String, path: String, subprotocol: String, nonce: [UInt8], limits: WebSocketLimits = WebSocketLimits()
    ) throws(WebSocketFailure) {
        func isPlain(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) } }
        guard path.hasPrefix("/"), isPlain(path), !path.contains("#") else {
            throw .handshake("\"\(printable(path))\" is no path; it begins with / and has ASCII without spaces")
        }
        guard isPlain(host), !host.contains("/") else {
            throw .handshake("\"\(printable(host))\" is no host name")
        }
        guard isPlain(subprotocol) else {
            throw .handshake("\"\(printable(subprotocol))\" is no subprotocol")
        }
        let key = base64Encode(nonce)
        accept = webSocketAccept(key)
        self.subprotocol = subprotocol
        request = Array(
            """
            GET \(path) HTTP/1.1\r
            Host: \(host)\r
            Upgrade: websocket\r
            Connection: Upgrade\r
            Sec-WebSocket-Key: \(key)\r
            Sec-WebSocket-Version: 13\r
            Sec-WebSocket-Protocol: \(subprotocol)\r
            \r

            """.utf8)
        reader = HTTPHeadReader(
            limit: limits.maximumHandshake, opening: "HTTP/1.",
            openingIsWrong: "what answers does not speak HTTP; check port and transport")
    }

    /// Takes what the server sent. Nil while its answer is not complete, then what followed it: the first bytes of
    /// frames. Throws `.refused` or `.handshake`.
    public mutating func receive(_ bytes: [UInt8]) throws(WebSocketFailure) -> [UInt8]? {
        guard let (head, rest) = try reader.append(bytes) else { return nil }
        guard head.start.count >= 2, head.start[1].utf8.count == 3, let status = Int(head.start[1]), status >= 100
        else {
            throw .handshake("the server's first line is no HTTP status line")
        }
        guard status == 101 else { throw .refused(status: status) }
        guard head.start[0] == "HTTP/1.1" else { throw .handshake("the server speaks \(printable(head.start[0]))") }
        guard head.single("upgrade")?.lowercased() == "websocket" else {
            throw .handshake("the server did not switch to WebSocket (Upgrade)")
        }
        guard head.contains("upgrade", in: "connection") else {
            throw .handshake("the server did not switch to WebSocket (Connection)")
        }
        guard head.single("sec-websocket-accept") == accept else {
            throw .handshake("the server's Sec-WebSocket-Accept does not belong to our key; a cache may be in between")
        }
        guard head.list("sec-websocket-extensions").isEmpty else {
            throw .handshake("the server uses an extension that was not asked for")
        }
        guard head.list("sec-websocket-protocol") == [subprotocol] else {
            throw .handshake(
                "the server does not speak the subprotocol \"\(subprotocol)\" at this path; check path and port")
        }
        return rest
    }
}

/// A server's opening handshake (RFC 6455, section 4.2).
public struct WebSocketServerHandshake: Sendable {
    /// What to do with the client.
    public enum Outcome: Sendable, Equatable {
        /// Send this; then frames flow, of which `rest` are the first bytes.
        case accepted(response: [UInt8], rest: [UInt8])
        /// Send this and end the connection.
        case refused(response: [UInt8], WebSocketFailure)
    }

    private let path: String?
    private let subprotocol: String
    private var reader: HTTPHeadReader

    /// - Parameters:
    ///   - path: the only resource that is served, without a query; nil: every one.
    ///   - subprotocol: what clients must offer.
    public init(path: String?, subprotocol: String, limits: WebSocketLimits = WebSocketLimits()) {
        self.path = path
        self.subprotocol = subprotocol
        reader = HTTPHeadReader(
            limit: limits.maximumHandshake, opening: "GET ",
            openingIsWrong: "what the client sent is no WebSocket handshake")
    }

    /// Takes what the client sent. Nil while its request is not complete.
    public mutating func receive(_ bytes: [UInt8]) -> Outcome? {
        do throws(WebSocketFailure) {
            guard let (head, rest) = try reader.append(bytes) else { return nil }
            return answer(head, rest)
        } catch {
            return refuse(400, error.explanation)
        }
    }

    private func answer(_ head: HTTPHead, _ rest: [UInt8]) -> Outcome {
        guard head.start.count == 3, head.start[0] == "GET", head.start[2] == "HTTP/1.1", head.single("host") != nil
        else {
            return refuse(400, "the request is no GET of HTTP/1.1 with one Host")
        }
        guard head.contains("websocket", in: "upgrade"), head.contains("upgrade", in: "connection") else {
            return refuse(426, "the request asks for no WebSocket", "Upgrade: websocket\r\nConnection: Upgrade\r\n")
        }
        guard head.single("sec-websocket-version") == "13" else {
            return refuse(426, "only version 13 is spoken", "Sec-WebSocket-Version: 13\r\n")
        }
        guard let key = head.single("sec-websocket-key"), let nonce = try? base64Decode(key), nonce.count == 16 else {
            return refuse(400, "Sec-WebSocket-Key is not the base64 of 16 bytes")
        }
        let resource = head.start[1].prefix { $0 != "?" }
        guard path.map({ $0 == resource }) ?? resource.hasPrefix("/") else {
            return refuse(404, "nothing is at this path")
        }
        guard head.list("sec-websocket-protocol").contains(subprotocol) else {
            return refuse(400, "the client does not offer the subprotocol \"\(subprotocol)\"")
        }
        let response = """
            HTTP/1.1 101 Switching Protocols\r
            Upgrade: websocket\r
            Connection: Upgrade\r
            Sec-WebSocket-Accept: \(webSocketAccept(key))\r
            Sec-WebSocket-Protocol: \(subprotocol)\r
            \r

            """
        return .accepted(response: Array(response.utf8), rest: rest)
    }

    private func refuse(_ status: Int, _ words: String, _ fields: String = "") -> Outcome {
        let phrase = [400: "Bad Request", 404: "Not Found", 426: "Upgrade Required"][status] ?? "Refused"
        let response = """
            HTTP/1.1 \(status) \(phrase)\r
            \(fields)Content-Type: text/plain; charset=utf-8\r
            Content-Length: \(words.utf8.count + 1)\r
            \r
            \(words)

            """
        return .refused(response: Array(response.utf8), .handshake("refused a client with \(status): \(words)"))
    }
}
