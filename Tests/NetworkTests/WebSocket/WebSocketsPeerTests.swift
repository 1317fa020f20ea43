import Glibc
import Primitives
import Testing
import WebSocket

@testable import Network
@testable import TestCertificates

/// The Python packages that scripts/setup installs.
private enum PythonPackages {
    static let repository = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
    static let interpreter = "\(repository)/.build/python/bin/python"
    static let areThere = access("\(repository)/.build/python/requirements.txt", R_OK) == 0
    /// A developer without a network may go without these tests, continuous integration may not.
    static let areWanted = areThere || getenv("CI") != nil

    static func peer(_ arguments: String..., loop: EventLoop) throws -> ExternalProgram {
        try #require(areThere, "the Python packages for the tests are missing; run: scripts/setup test")
        return try ExternalProgram(
            [interpreter, "\(repository)/Tests/NetworkTests/WebSocket/websockets-peer.py"] + arguments, loop: loop)
    }
}

extension NetworkTests {
    /// Against another implementation: the Python package `websockets`.
    @Suite(.enabled(if: PythonPackages.areWanted, "run scripts/setup test to install the Python packages"))
    struct WebSocketsPeerTests {
        /// A client of ours with an open connection to a server of the package.
        private func connect(
            _ loop: EventLoop, _ events: Inbox<StreamEvent>, path: String = "/ws", subprotocol: String = "sip",
            limits: WebSocketLimits = WebSocketLimits(), failures: Inbox<NetworkError>? = nil
        ) async throws -> (stream: WebSocketStream, peer: ExternalProgram) {
            let peer = try PythonPackages.peer("server", loop: loop)
            let line = try await peer.line(containing: "listening")
            let port = try #require(UInt16(line.split(separator: " ").last ?? ""))
            let stream = try await loop.call {
                let lower = TCPConnection.connect(loop: loop, to: TransportAddress(host: "127.0.0.1", port: port))
                let stream = WebSocketStream(
                    client: lower, host: "127.0.0.1:\(port)", path: path, subprotocol: subprotocol, limits: limits)
                stream.reportStream(to: events, failures: failures)
                return stream
            }
            return (stream, peer)
        }

        /// A client of the package with an open connection to a server of ours.
        private func accept(
            _ loop: EventLoop, _ events: Inbox<StreamEvent>
        ) async throws -> (stream: WebSocketStream, peer: ExternalProgram) {
            let accepted = Inbox<WebSocketStream>()
            let port = try await loop.call {
                let listener = try TCPListener(loop: loop, bind: anyLoopback)
                listener.onConnection = { connection in
                    let stream = WebSocketStream(server: connection, path: "/ws")
                    stream.reportStream(to: events)
                    accepted.put(stream)
                }
                return listener.localAddress.port
            }
            let peer = try PythonPackages.peer("client", "\(port)", loop: loop)
            return (await accepted.next(), peer)
        }

        @Test(arguments: [true, false])
        func messagesOfEveryKindAndSize(_ isClient: Bool) async throws {
            try await withLoop { loop in
                let events = Inbox<StreamEvent>()
                let (stream, peer) = try await isClient ? connect(loop, events) : accept(loop, events)
                #expect(await events.next() == .open)
                #expect(try await peer.line(containing: "open") == "open sip")
                loop.execute { stream.send(Array("Grüße 🎈".utf8)) }
                #expect(try await peer.line(containing: "text") == "text Grüße 🎈")
                for size in [1, 125, 126, 65_535, 65_536, 200_000] {
                    let bytes = [0xFF] + pattern(size - 1)
                    loop.execute { stream.send(bytes) }
                    let sum = bytes.reduce(0) { $0 + Int($1) }
                    #expect(try await peer.line(containing: "binary") == "binary \(size) \(sum)")
                    peer.write("binary \(size)\n")
                    #expect(await events.next() == .data(pattern(size)))
                }
                peer.write("text OPTIONS sip:example.com SIP/2.0\n")
                #expect(await events.next() == .data(Array("OPTIONS sip:example.com SIP/2.0".utf8)))
                peer.write("fragments one two  three\n")
                #expect(await events.next() == .data(Array("onetwothree".utf8)))
                loop.execute { stream.close() }
                #expect(try await peer.line(containing: "closed") == "closed 1000 ")
                #expect(await events.next() == .closed(nil))
                #expect(try await loop.call { stream.closeCode } == 1000)
            }
        }

        @Test(arguments: [true, false])
        func pingsAreAnswered(_ isClient: Bool) async throws {
            try await withLoop { loop in
                let events = Inbox<StreamEvent>()
                let (stream, peer) = try await isClient ? connect(loop, events) : accept(loop, events)
                #expect(await events.next() == .open)
                let pongs = Inbox<Void>()
                loop.execute {
                    stream.onPong = { pongs.put(()) }
                    stream.ping()
                }
                await pongs.next()
                peer.write("ping\n")
                #expect(try await peer.line(containing: "pong") == "pong")
                #expect(pongs.rest.isEmpty && events.rest.isEmpty)
                loop.execute { stream.close() }
                #expect(await events.next() == .closed(nil))
            }
        }

        @Test(arguments: [(1000, true), (1001, true), (1008, false), (1011, false), (3000, false), (4999, false)])
        func closeCodesArrive(_ code: Int, _ isOrderly: Bool) async throws {
            try await withLoop { loop in
                for isClient in [true, false] {
                    let events = Inbox<StreamEvent>()
                    let (stream, peer) = try await isClient ? connect(loop, events) : accept(loop, events)
                    #expect(await events.next() == .open)
                    peer.write("close \(code) for a reason\n")
                    let expected = WebSocketFailure.closed(
                        code: WebSocketCloseCode(rawValue: UInt16(code)), reason: "for a reason")
                    #expect(await events.next() == .closed(isOrderly ? nil : .webSocket(expected)))
                    #expect(try await loop.call { stream.closeCode } == UInt16(code))
                    // Ours answers with the same code.
                    #expect(try await peer.line(containing: "closed").hasPrefix("closed \(code)"))
                }
            }
        }

        /// Frames that the package would never send, written beside it.
        @Test(arguments: [
            ("c100", 1002), ("8300", 1002), ("0900", 1002), ("897e007e", 1002), ("8000", 1002), ("827e007d", 1002),
            ("8101ff", 1007), ("880103", 1002), ("880203ed", 1002), ("827f0000000000100000", 1009), ("8180", 1002),
        ])
        func badFramesAreAnsweredWithTheirCode(_ hex: String, _ code: Int) async throws {
            try await withLoop { loop in
                let events = Inbox<StreamEvent>()
                let (_, peer) = try await connect(loop, events)
                #expect(await events.next() == .open)
                peer.write("raw \(hex)\n")
                guard case .closed(.webSocket(.violation(_, let ours))) = await events.next() else {
                    Issue.record("not refused")
                    return
                }
                #expect(Int(ours.rawValue) == code)
                #expect(try await peer.line(containing: "closed").hasPrefix("closed \(code)"))
            }
        }

        @Test func anUnmaskedClientIsRefused() async throws {
            try await withLoop { loop in
                let events = Inbox<StreamEvent>()
                let (_, peer) = try await accept(loop, events)
                #expect(await events.next() == .open)
                peer.write("raw 810141\n")
                guard case .closed(.webSocket(.violation)) = await events.next() else {
                    Issue.record("not refused")
                    return
                }
                #expect(try await peer.line(containing: "closed").hasPrefix("closed 1002"))
            }
        }

        @Test func whatIsTooLargeIsRefusedOnBothSides() async throws {
            try await withLoop { loop in
                let events = Inbox<StreamEvent>()
                var limits = WebSocketLimits()
                limits.maximumMessage = 10_000
                let (stream, peer) = try await connect(loop, events, limits: limits)
                #expect(await events.next() == .open)
                peer.write("binary 10000\n")
                #expect(await events.next() == .data(pattern(10_000)))
                peer.write("binary 10001\n")
                #expect(try await peer.line(containing: "closed").hasPrefix("closed 1009"))
                #expect(try await loop.call { stream.closeCode } == nil)
                let other = Inbox<StreamEvent>()
                let (large, second) = try await connect(loop, other)
                #expect(await other.next() == .open)
                loop.execute { large.send(pattern((1 << 20) + 1)) }
                #expect(try await second.line(containing: "closed").hasPrefix("closed 1009"))
                guard case .closed(.webSocket(.closed(.tooLarge, _))) = await other.next() else {
                    Issue.record("not closed by the peer")
                    return
                }
            }
        }

        @Test func wrongPathsAndSubprotocolsAreExplained() async throws {
            try await withLoop { loop in
                let failures = Inbox<NetworkError>()
                _ = try await connect(loop, Inbox(), path: "/other", failures: failures)
                let missing = await failures.next()
                #expect(missing.code == .webSocket(.refused(status: 404)))
                #expect(missing.message.contains("/other") && missing.message.contains("check the path"))
                _ = try await connect(loop, Inbox(), subprotocol: "msrp", failures: failures)
                let other = await failures.next()
                guard case .webSocket = other.code else {
                    Issue.record("\(other)")
                    return
                }
            }
        }

        @Test func aServerThatDiesIsNoOrderlyEnd() async throws {
            try await withLoop { loop in
                let events = Inbox<StreamEvent>()
                let (_, peer) = try await connect(loop, events)
                #expect(await events.next() == .open)
                peer.signal(SIGKILL)
                #expect(await events.next() == .closed(.webSocket(.truncated)))
            }
        }

        @Test func overTLS() async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let authority = try TestCertificate.authority()
                let certificate = try authority.issue { $0.alternativeNames = "DNS:*.example.com" }
                let context = try files.client(trusting: [authority])
                let peer = try PythonPackages.peer(
                    "server", files.write(certificate.pem, "wss.pem"), files.write(certificate.keyPEM(), "wss.key"),
                    loop: loop)
                let line = try await peer.line(containing: "listening")
                let port = try #require(UInt16(line.split(separator: " ").last ?? ""))
                let events = Inbox<StreamEvent>()
                let stream = try await loop.call {
                    let lower = TCPConnection.connect(loop: loop, to: TransportAddress(host: "127.0.0.1", port: port))
                    let secure = TLSStream(
                        client: lower, context: context, serverName: "sip.example.com", nameRule: .web)
                    let stream = WebSocketStream(client: secure, host: "sip.example.com", path: "/ws")
                    stream.reportStream(to: events)
                    return stream
                }
                #expect(await events.next() == .open)
                loop.execute { stream.send(pattern(150_000)) }
                _ = try await peer.line(containing: "binary 150000 ")
                peer.write("binary 150000\n")
                #expect(await events.next() == .data(pattern(150_000)))
                loop.execute { stream.close() }
                #expect(try await peer.line(containing: "closed") == "closed 1000 ")
                #expect(await events.next() == .closed(nil))
            }
        }
    }
}
