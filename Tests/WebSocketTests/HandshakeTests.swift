import Crypto
import Testing

@testable import WebSocket

/// The nonce of RFC 6455, section 1.3.
private let nonce = Array("the sample nonce".utf8)

private func client(host: String = "example.com", path: String = "/ws") throws -> WebSocketClientHandshake {
    try WebSocketClientHandshake(host: host, path: path, subprotocol: "sip", nonce: nonce)
}

@Suite struct WebSocketHandshakeTests {
    // MARK: The client

    private let answer = [
        "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "Sec-WebSocket-Protocol: sip",
    ]

    /// The answer with one line replaced by others.
    private func answer(_ number: Int, _ lines: String...) -> [UInt8] {
        var all = answer
        all.replaceSubrange(number...number, with: lines)
        return Array((all.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    private func failure(_ bytes: [UInt8]) throws -> WebSocketFailure? {
        var handshake = try client()
        do throws(WebSocketFailure) {
            let rest = try handshake.receive(bytes)
            #expect(rest != nil)
            return nil
        } catch {
            return error
        }
    }

    @Test func sha1IsTheStandards() {
        #expect(hexadecimal(sha1(Array("abc".utf8))) == "a9993e364706816aba3e25717850c26c9cd0d89d")
        #expect(hexadecimal(sha1([])) == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
    }

    @Test func theRequestIsTheStandards() throws {
        #expect(
            String(decoding: try client().request, as: UTF8.self) == """
                GET /ws HTTP/1.1\r
                Host: example.com\r
                Upgrade: websocket\r
                Connection: Upgrade\r
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
                Sec-WebSocket-Version: 13\r
                Sec-WebSocket-Protocol: sip\r
                \r

                """)
    }

    @Test func whatCannotBeAskedIsNot() {
        for path in ["", "ws", "/a b", "/a\r\nX: y", "/ä", "/a#b", "http://x/"] {
            #expect(throws: WebSocketFailure.self) { try client(path: path) }
        }
        for host in ["", "a b", "a\r\nX: y", "a/b", "ä.example"] {
            #expect(throws: WebSocketFailure.self) { try client(host: host) }
        }
    }

    @Test func theAnswerIsTaken() throws {
        #expect(try failure(answer(0, answer[0])) == nil)
        // Fields and tokens in any case, lists, spaces, no phrase, fields that nobody asked for.
        #expect(try failure(answer(0, "HTTP/1.1 101 ")) == nil)
        #expect(try failure(answer(1, "upgrade:\t WebSocket ")) == nil)
        #expect(try failure(answer(2, "CONNECTION: keep-alive, UPGRADE")) == nil)
        #expect(try failure(answer(2, "Connection: keep-alive", "Connection: Upgrade")) == nil)
        #expect(try failure(answer(4, "Sec-WebSocket-Protocol: sip", "Server: x", "X-Empty:")) == nil)
    }

    @Test func everyCutOfTheAnswerMeansTheSame() throws {
        let bytes = answer(0, answer[0]) + [0x81, 0x00]
        for cut in 0...bytes.count {
            var handshake = try client()
            let first = try handshake.receive(Array(bytes[..<cut]))
            if cut >= bytes.count - 2 {
                #expect(first == Array(bytes[(bytes.count - 2)..<cut]))
            } else {
                #expect(first == nil)
                #expect(try handshake.receive(Array(bytes[cut...])) == [0x81, 0x00])
            }
        }
    }

    @Test(arguments: [200, 301, 400, 401, 403, 404, 426, 500, 503, 600])
    func otherStatusesAreExplained(_ status: Int) throws {
        let failure = try failure(answer(0, "HTTP/1.1 \(status) Whatever"))
        #expect(failure == .refused(status: status))
        #expect(failure?.explanation.hasPrefix("HTTP status \(status): ") == true)
        if status == 404 { #expect(failure?.explanation.contains("check the path") == true) }
        // Also when an old server says so.
        #expect(try self.failure(answer(0, "HTTP/1.0 \(status) Whatever")) == .refused(status: status))
    }

    @Test(arguments: [
        (0, ["HTTP/1.0 101 Switching Protocols"]), (0, ["HTTP/1.1"]), (0, ["HTTP/1.1 1O1 x"]), (0, ["HTTP/1.1 +10 x"]),
        (0, ["HTTP/1.1 099 x"]), (1, []), (1, ["Upgrade: h2c"]), (1, ["Upgrade: websocket", "Upgrade: websocket"]),
        (2, []), (2, ["Connection: close"]), (3, []), (3, ["Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo="]),
        (
            3,
            ["Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo", "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="]
        ),
        (4, []), (4, ["Sec-WebSocket-Protocol: msrp"]), (4, ["Sec-WebSocket-Protocol: sip, msrp"]),
        (4, ["Sec-WebSocket-Protocol: sip", "Sec-WebSocket-Extensions: permessage-deflate"]),
        (1, ["Upgrade: websocket", " folded"]), (1, ["Upgrade : websocket"]), (1, ["no field"]), (1, [": empty"]),
        (1, ["Upgrade: websocket", "X: a\u{0}b"]), (1, ["Upgrade: websocket", "X: a\nb: c"]),
    ])
    func brokenAnswersAreRefused(_ line: Int, _ replacement: [String]) throws {
        var all = answer
        all.replaceSubrange(line...line, with: replacement)
        let failure = try failure(Array((all.joined(separator: "\r\n") + "\r\n\r\n").utf8))
        guard case .handshake(let words) = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(!words.isEmpty)
    }

    @Test func whatIsNotHTTPIsRefusedAtOnce() throws {
        for text in ["SIP/2.0 400 Bad Request", "HTTP/2 200", "S", "\u{16}\u{3}\u{1}"] {
            var handshake = try client()
            #expect(throws: WebSocketFailure.handshake("what answers does not speak HTTP; check port and transport")) {
                try handshake.receive(Array(text.utf8))
            }
        }
    }

    @Test func endlessAnswersAreCutOff() throws {
        var handshake = try client()
        _ = try handshake.receive(Array("HTTP/1.1 101 x\r\n".utf8))
        #expect(throws: WebSocketFailure.self) {
            for _ in 0..<1_000 { _ = try handshake.receive(Array("X-Padding: 0123456789\r\n".utf8)) }
        }
        let many =
            answer(4, "Sec-WebSocket-Protocol: sip").dropLast(2)
            + Array(repeating: "A: b\r\n", count: 100).joined().utf8
        #expect(try failure(Array(many) + [13, 10]) == .handshake("the HTTP header has more than 100 fields"))
    }

    // MARK: The server

    private let request = [
        "GET /ws HTTP/1.1", "Host: example.com", "Upgrade: websocket", "Connection: keep-alive, Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: msrp, sip",
    ]

    private func serve(_ number: Int, _ lines: String..., path: String? = "/ws") -> (status: String, response: String)?
    {
        var all = request
        all.replaceSubrange(number...number, with: lines)
        var server = WebSocketServerHandshake(path: path, subprotocol: "sip")
        switch server.receive(Array((all.joined(separator: "\r\n") + "\r\n\r\n").utf8)) {
        case nil: return nil
        case .accepted(let response, _), .refused(let response, _):
            let text = String(decoding: response, as: UTF8.self)
            return (String(text.dropFirst(9).prefix(3)), text)
        }
    }

    @Test func aGoodClientIsServed() throws {
        let (status, response) = try #require(serve(0, request[0]))
        #expect(status == "101")
        #expect(response.contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"))
        #expect(response.contains("\r\nSec-WebSocket-Protocol: sip\r\n"))
        #expect(serve(0, "GET /ws?user=1 HTTP/1.1")?.status == "101")
        #expect(serve(0, "GET /other HTTP/1.1", path: nil)?.status == "101")
        #expect(serve(6, "Sec-WebSocket-Protocol: msrp", "Sec-WebSocket-Protocol: sip")?.status == "101")
        #expect(
            serve(6, "Sec-WebSocket-Protocol: sip", "Sec-WebSocket-Extensions: permessage-deflate")?.status == "101")
    }

    @Test func ourClientAndOurServerAgree() throws {
        var client = try client()
        var server = WebSocketServerHandshake(path: "/ws", subprotocol: "sip")
        guard case .accepted(let response, let rest) = server.receive(client.request + [1, 2]) else {
            Issue.record("refused")
            return
        }
        #expect(rest == [1, 2])
        #expect(try client.receive(response) == [])
    }

    @Test func otherClientsAreToldWhy() {
        #expect(serve(0, "GET /other HTTP/1.1")?.status == "404")
        #expect(serve(0, "GET /ws HTTP/1.0")?.status == "400")
        #expect(serve(0, "POST /ws HTTP/1.1")?.status == "400")
        #expect(serve(1)?.status == "400")
        #expect(serve(1, "Host: a", "Host: b")?.status == "400")
        #expect(serve(2)?.status == "426")
        #expect(serve(3, "Connection: close")?.status == "426")
        #expect(serve(4)?.status == "400")
        #expect(serve(4, "Sec-WebSocket-Key: dGhlIHNhbXBsZQ==")?.status == "400")
        #expect(serve(4, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==")?.status == "400")
        #expect(serve(5, "Sec-WebSocket-Version: 8")?.response.contains("\r\nSec-WebSocket-Version: 13\r\n") == true)
        #expect(serve(6)?.status == "400")
        #expect(serve(6, "Sec-WebSocket-Protocol: sip2")?.status == "400")
    }

    @Test func mutatedHandshakesAreSurvived() throws {
        var random = SplitMix(seed: 7_118)
        let good = Array((request.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        let reply = answer(0, answer[0])
        for _ in 0..<5_000 {
            for (bytes, isRequest) in [(good, true), (reply, false)] {
                var mutated = bytes
                for _ in 0..<3 {
                    mutated[Int.random(in: 0..<mutated.count, using: &random)] = .random(
                        in: .min ... .max, using: &random)
                }
                if isRequest {
                    var server = WebSocketServerHandshake(path: "/ws", subprotocol: "sip")
                    guard case .refused(let response, _) = server.receive(mutated) else { continue }
                    #expect(response.starts(with: Array("HTTP/1.1 4".utf8)))
                } else {
                    var handshake = try client()
                    _ = try? handshake.receive(mutated)
                }
            }
        }
    }
}
