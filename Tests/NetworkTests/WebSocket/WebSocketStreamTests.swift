import Primitives
import Testing
import WebSocket

@testable import Network
@testable import TestCertificates

extension NetworkTests {
    @Suite struct WebSocketStreamTests {
        /// A WebSocket listener on loopback whose connections report to one inbox.
        private final class Server: Sendable {
            let listener: TCPListener
            let events = Inbox<StreamEvent>()
            let streams = Inbox<WebSocketStream>()

            /// On the loop.
            init(_ loop: EventLoop, path: String? = nil, timeout: Duration = .seconds(10)) throws {
                listener = try TCPListener(loop: loop, bind: anyLoopback)
                listener.onConnection = { [events, streams] connection in
                    let stream = WebSocketStream(server: connection, path: path, handshakeTimeout: timeout)
                    stream.reportStream(to: events)
                    streams.put(stream)
                }
            }
        }

        private func client(
            _ loop: EventLoop, _ address: TransportAddress, _ events: Inbox<StreamEvent>, path: String = "/",
            timeout: Duration = .seconds(10), closeTimeout: Duration = .seconds(10)
        ) -> WebSocketStream {
            let stream = WebSocketStream(
                client: TCPConnection.connect(loop: loop, to: address), host: "example.com", path: path,
                handshakeTimeout: timeout, closeTimeout: closeTimeout)
            stream.reportStream(to: events)
            return stream
        }

        /// A listener that answers the first bytes of each connection with these, whatever they are.
        private func answering(
            _ loop: EventLoop, _ received: Inbox<[UInt8]> = Inbox(), _ answer: @escaping @Sendable ([UInt8]) -> [UInt8]
        ) async throws -> TransportAddress {
            try await loop.call {
                let listener = try TCPListener(loop: loop, bind: anyLoopback)
                listener.onConnection = { connection in
                    let isFirst = Locked(true)
                    connection.onData = { [unowned connection] bytes in
                        let first = isFirst.withLock { isFirst in
                            defer { isFirst = false }
                            return isFirst
                        }
                        if first { connection.send(answer(bytes)) } else { received.put(bytes) }
                    }
                }
                return listener.localAddress
            }
        }

        /// What a server answers a client's request, with frames right behind it.
        private static func accept(_ request: [UInt8], then frames: [UInt8] = []) -> [UInt8] {
            var server = WebSocketServerHandshake(path: nil, subprotocol: "sip")
            guard case .accepted(let response, _) = server.receive(request) else { return [] }
            return response + frames
        }

        @Test func messagesKeepTheirBorders() async throws {
            let before = try openDescriptors()
            try await withLoop { loop in
                let server = try await loop.call { try Server(loop) }
                let events = Inbox<StreamEvent>()
                let stream = try await loop.call {
                    let stream = client(loop, server.listener.localAddress, events)
                    // Before it is open, too.
                    stream.send([1])
                    stream.send([2, 3])
                    return stream
                }
                #expect(await events.next() == .open)
                #expect(await server.events.next() == .open)
                #expect(await server.events.next() == .data([1]))
                #expect(await server.events.next() == .data([2, 3]))
                let accepted = await server.streams.next()
                try await loop.call {
                    stream.send([])
                    stream.send(pattern(100_000))
                    accepted.send(Array("a".utf8))
                    accepted.send(Array("b".utf8))
                    #expect(stream.localAddress == accepted.remoteAddress)
                }
                #expect(await server.events.next() == .data([]))
                #expect(await server.events.next() == .data(pattern(100_000)))
                #expect(await events.next() == .data(Array("a".utf8)))
                #expect(await events.next() == .data(Array("b".utf8)))
                loop.execute {
                    stream.close()
                    stream.close()
                    #expect(!stream.send([1]))
                }
                #expect(await events.next() == .closed(nil))
                #expect(await server.events.next() == .closed(nil))
                #expect(try await loop.call { stream.closeCode } == 1000)
                #expect(try await loop.call { loop.load.timers } == 0)
            }
            #expect(try openDescriptors() == before)
        }

        @Test func everyCutOfTheBytesIsFine() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try Server(loop) }
                let relay = try await loop.call { try Relay(loop, to: server.listener.localAddress, cut: 1) }
                let events = Inbox<StreamEvent>()
                let stream = try await loop.call { client(loop, relay.address, events) }
                #expect(await events.next() == .open)
                #expect(await server.events.next() == .open)
                let accepted = await server.streams.next()
                loop.execute {
                    stream.send(pattern(300))
                    accepted.send(pattern(200))
                }
                #expect(await server.events.next() == .data(pattern(300)))
                #expect(await events.next() == .data(pattern(200)))
                loop.execute { accepted.close() }
                #expect(await events.next() == .closed(nil))
                #expect(await server.events.next() == .closed(nil))
            }
        }

        @Test func framesMayFollowTheAnswerAtOnce() async throws {
            try await withLoop { loop in
                let frames = webSocketFrame(.text, [65], mask: nil) + webSocketFrame(.close, [], mask: nil)
                let address = try await answering(loop) { Self.accept($0, then: frames) }
                let events = Inbox<StreamEvent>()
                let stream = try await loop.call { client(loop, address, events) }
                #expect(await events.next() == .open)
                #expect(await events.next() == .data([65]))
                #expect(await events.next() == .closed(nil))
                #expect(try await loop.call { stream.closeCode } == 1005)
            }
        }

        @Test func ofManyPingsTheLastIsAnswered() async throws {
            try await withLoop { loop in
                let received = Inbox<[UInt8]>()
                let pings = (1...100).flatMap { webSocketFrame(.ping, [UInt8($0)], mask: nil) }
                let address = try await answering(loop, received) { Self.accept($0, then: pings) }
                let events = Inbox<StreamEvent>()
                let stream = try await loop.call { client(loop, address, events) }
                #expect(await events.next() == .open)
                var receiver = WebSocketReceiver(role: .server)
                receiver.append(await received.next())
                #expect(try receiver.next() == .pong([100]))
                #expect(try receiver.next() == nil)
                loop.execute { stream.abort() }
                #expect(await events.next() == .closed(nil))
            }
        }

        @Test func onlyTheAnswerToOurPingIsAPong() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try Server(loop) }
                let (events, pongs) = (Inbox<StreamEvent>(), Inbox<Int>())
                let unasked = webSocketFrame(.pong, [1, 2], mask: nil) + webSocketFrame(.text, [65], mask: nil)
                let address = try await answering(loop) { Self.accept($0, then: unasked) }
                try await loop.call {
                    let stream = client(loop, address, events)
                    stream.onPong = { pongs.put(1) }
                    let good = client(loop, server.listener.localAddress, Inbox())
                    good.onOpen = { [unowned good] in
                        good.ping()
                        good.ping()
                    }
                    good.onPong = { pongs.put(2) }
                }
                #expect(await events.next() == .open)
                #expect(await events.next() == .data([65]))
                #expect(await pongs.next() == 2)
                #expect(pongs.rest.isEmpty)
            }
        }

        @Test func afterTheOwnersCloseNothingIsDelivered() async throws {
            try await withLoop { loop in
                let frames = (0..<3).flatMap { webSocketFrame(.binary, [$0], mask: nil) }
                let address = try await answering(loop) { Self.accept($0, then: frames) }
                let events = Inbox<StreamEvent>()
                try await loop.call {
                    let stream = client(loop, address, events, closeTimeout: .milliseconds(30))
                    stream.onData = { [unowned stream] in
                        events.put(.data($0))
                        stream.close()
                    }
                }
                #expect(await events.next() == .open)
                #expect(await events.next() == .data([0]))
                // This server never answers a close frame.
                #expect(await events.next() == .closed(nil))
            }
        }

        @Test func handlersAreNotCalledFromWithinCalls() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try Server(loop) }
                let depth = Locked(0)
                let ends = Inbox<Int>()
                try await loop.call {
                    for action in [{ $0.close() }, { $0.abort(nil) }] as [@Sendable (WebSocketStream) -> Void] {
                        let early = client(loop, server.listener.localAddress, Inbox())
                        early.onClose = { _ in ends.put(depth.withLock { $0 }) }
                        depth.withLock { $0 += 1 }
                        action(early)
                        depth.withLock { $0 -= 1 }
                        let open = client(loop, server.listener.localAddress, Inbox())
                        open.onClose = { _ in ends.put(depth.withLock { $0 }) }
                        open.onOpen = { [unowned open] in
                            open.loop.execute {
                                depth.withLock { $0 += 1 }
                                action(open)
                                depth.withLock { $0 -= 1 }
                            }
                        }
                    }
                }
                for _ in 0..<4 { #expect(await ends.next() == 0) }
            }
        }

        @Test func streamsAreLetGoWhenTheyEnd() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try Server(loop) }
                weak var gone: WebSocketStream?
                do {
                    let ended = Inbox<Void>()
                    let stream = try await loop.call {
                        let stream = client(loop, server.listener.localAddress, Inbox())
                        stream.onOpen = { [unowned stream] in stream.close() }
                        stream.onClose = { _ in ended.put(()) }
                        return stream
                    }
                    gone = stream
                    await ended.next()
                }
                try await loop.call {}
                #expect(gone == nil)
            }
        }

        @Test func aStoppedLoopClosesItsStreams() async throws {
            let loop = try EventLoop(name: "stopped")
            let server = try await loop.call { try Server(loop) }
            let events = Inbox<StreamEvent>()
            _ = try await loop.call { client(loop, server.listener.localAddress, events) }
            #expect(await events.next() == .open)
            #expect(await server.events.next() == .open)
            loop.stop()
            #expect(await events.next() == .closed(.closed))
            #expect(await server.events.next() == .closed(.closed))
        }

        // MARK: Peers that are none

        @Test func serversThatAreNoneAreExplained() async throws {
            try await withLoop { loop in
                for (answer, expected) in [
                    ("HTTP/1.1 404 Not Found\r\n\r\n", WebSocketFailure.refused(status: 404)),
                    ("HTTP/1.1 503 Service Unavailable\r\n\r\n", .refused(status: 503)),
                    (
                        "SIP/2.0 400 Bad Request\r\n\r\n",
                        .handshake("what answers does not speak HTTP; check port and transport")
                    ),
                ] {
                    let address = try await answering(loop) { _ in Array(answer.utf8) }
                    let (events, failures) = (Inbox<StreamEvent>(), Inbox<NetworkError>())
                    try await loop.call {
                        client(loop, address, events, path: "/ws").reportStream(to: events, failures: failures)
                    }
                    #expect(await events.next() == .closed(.webSocket(expected)))
                    #expect(await failures.next().message.hasPrefix("WebSocket with example.com/ws: "))
                }
            }
        }

        @Test func silenceAndEndsInTheHandshakeAreTold() async throws {
            try await withLoop { loop in
                let silent = try await answering(loop) { _ in Array("HTTP/1.1 101".utf8) }
                let events = Inbox<StreamEvent>()
                try await loop.call { _ = client(loop, silent, events, timeout: .milliseconds(30)) }
                #expect(await events.next() == .closed(.webSocket(.timedOut)))
                for abortively in [true, false] {
                    let address = try await loop.call {
                        let listener = try TCPListener(loop: loop, bind: anyLoopback)
                        listener.onConnection = { connection in
                            connection.onData = { [unowned connection] _ in
                                abortively ? connection.abort() : connection.close()
                            }
                        }
                        return listener.localAddress
                    }
                    try await loop.call { _ = client(loop, address, events) }
                    #expect(await events.next() == .closed(.webSocket(.closedInHandshake)))
                }
                try await loop.call { _ = client(loop, silent, events, path: "no path") }
                guard case .closed(.webSocket(.handshake)) = await events.next() else {
                    Issue.record("asked for what is no path")
                    return
                }
            }
        }

        @Test func clientsThatAreNoneAreToldAndClosed() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try Server(loop, path: "/ws") }
                for (request, status) in [
                    ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "426"), ("OPTIONS sip:a SIP/2.0\r\n", "400"),
                    ("GET /ws HTTP/1.1\r\n" + String(repeating: "A: b\r\n", count: 3_000), "400"),
                ] {
                    let events = Inbox<StreamEvent>()
                    try await loop.call {
                        let plain = TCPConnection.connect(loop: loop, to: server.listener.localAddress)
                        plain.report(to: events)
                        plain.send(Array(request.utf8))
                    }
                    #expect(await events.next() == .open)
                    guard case .closed(.webSocket(.handshake)) = await server.events.next() else {
                        Issue.record("served \(request)")
                        return
                    }
                    #expect(try await events.bytes(12).starts(with: Array("HTTP/1.1 \(status)".utf8)))
                    #expect(await events.nextChange() == .closed(nil))
                }
                let stalled = try await loop.call { try Server(loop, timeout: .milliseconds(30)) }
                loop.execute {
                    TCPConnection.connect(loop: loop, to: stalled.listener.localAddress).send(Array("GET /".utf8))
                }
                #expect(await stalled.events.next() == .closed(.webSocket(.timedOut)))
            }
        }

        @Test func tooMuchBeforeTheOpeningEndsIt() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try Server(loop) }
                let events = Inbox<StreamEvent>()
                try await loop.call {
                    let stream = client(loop, server.listener.localAddress, events)
                    #expect(stream.send(pattern(1 << 20)))
                    #expect(!stream.send([1]))
                }
                #expect(await events.next() == .closed(.sendQueueFull))
            }
        }
    }
}
