import Glibc
import Primitives
import Testing

@testable import Network
@testable import TestCertificates

extension NetworkTests {
    @Suite struct TLSStreamTests {
        /// A server and a client's context that trusts it.
        private struct Pair: Sendable {
            let server: TLSTestServer
            let client: TLSClientContext
            let files: TLSFiles

            init(_ loop: EventLoop) async throws {
                files = try TLSFiles()
                let authority = try TestCertificate.authority()
                let context = try files.server(authority.issue())
                client = try files.client(trusting: [authority])
                server = try await loop.call { try TLSTestServer(loop, context) }
            }

            /// A reporting client, not open yet. On the loop.
            func connect(
                _ loop: EventLoop, _ events: Inbox<StreamEvent>, to address: TransportAddress? = nil,
                options: StreamConnection.Options = .init()
            ) -> TLSStream {
                let stream = TLSStream(
                    client: TCPConnection.connect(
                        loop: loop, to: address ?? server.listener.localAddress, options: options),
                    context: client, serverName: "example.com")
                stream.reportStream(to: events)
                return stream
            }

            /// Both sides of an open connection.
            func open(
                _ loop: EventLoop, _ events: Inbox<StreamEvent>, options: StreamConnection.Options = .init()
            ) async throws -> (client: TLSStream, accepted: TLSStream) {
                let client = try await loop.call { connect(loop, events, options: options) }
                #expect(await events.next() == .open)
                #expect(await server.events.next() == .open)
                return (client, await server.connections.next())
            }
        }

        @Test func bytesFlowBothWaysAndBothSidesEndOnce() async throws {
            let before = try openDescriptors()
            try await withLoop { loop in
                let pair = try await Pair(loop)
                let events = Inbox<StreamEvent>()
                let (client, accepted) = try await pair.open(loop, events)
                try await loop.call {
                    #expect(client.localAddress == accepted.remoteAddress)
                    #expect(client.remoteAddress == pair.server.listener.localAddress)
                    client.send(Array("ping".utf8))
                }
                #expect(try await pair.server.events.bytes(4) == Array("ping".utf8))
                loop.execute { accepted.send(Array("pong".utf8)) }
                #expect(try await events.bytes(4) == Array("pong".utf8))
                loop.execute {
                    client.close()
                    client.close()
                    #expect(!client.send([1]))
                }
                #expect(await events.next() == .closed(nil))
                #expect(await pair.server.events.next() == .closed(nil))
                #expect(try await loop.call { loop.load.timers } == 0)
                #expect(events.rest.isEmpty && pair.server.events.rest.isEmpty)
            }
            #expect(try openDescriptors() == before)
        }

        @Test func whatIsSentEarlyFollowsTheOpeningInOrder() async throws {
            try await withLoop { loop in
                let pair = try await Pair(loop)
                let events = Inbox<StreamEvent>()
                try await loop.call {
                    let client = pair.connect(loop, events)
                    client.send([0, 1])
                    client.send([2])
                    #expect(client.queuedBytes == 3)
                    client.onOpen = { [unowned client] in client.send([3]) }
                }
                #expect(await pair.server.events.next() == .open)
                #expect(try await pair.server.events.bytes(4) == pattern(4))
            }
        }

        @Test func tooMuchBeforeTheOpeningEndsIt() async throws {
            try await withLoop { loop in
                let pair = try await Pair(loop)
                let events = Inbox<StreamEvent>()
                try await loop.call {
                    let client = pair.connect(loop, events)
                    #expect(client.send(pattern(1 << 20)))
                    #expect(!client.send([1]))
                }
                #expect(await events.next() == .closed(.sendQueueFull))
            }
        }

        @Test func muchArrivesWholeAndInOrder() async throws {
            try await withLoop { loop in
                let pair = try await Pair(loop)
                let events = Inbox<StreamEvent>()
                var options = StreamConnection.Options()
                options.sendQueueLimit = 16 << 20
                let (client, _) = try await pair.open(loop, events, options: options)
                let bytes = pattern(8 << 20)
                loop.execute {
                    #expect(client.send(bytes))
                    client.close()
                }
                #expect(try await pair.server.events.bytes(bytes.count) == bytes)
                #expect(await pair.server.events.next() == .closed(nil))
                #expect(await events.next() == .closed(nil))
            }
        }

        @Test func aPeerThatDoesNotReadIsGivenUp() async throws {
            try await withLoop { loop in
                let pair = try await Pair(loop)
                let events = Inbox<StreamEvent>()
                var options = StreamConnection.Options()
                options.sendQueueLimit = 100_000
                let (client, _) = try await pair.open(loop, events, options: options)
                let below = await pair.server.lower.next()
                try await loop.call {
                    below.pauseReading()
                    while client.send(pattern(50_000)) {}
                    #expect(!client.send([1]))
                }
                #expect(await events.next() == .closed(.sendQueueFull))
            }
        }

        @Test func anAbortIsNoOrderlyEnd() async throws {
            try await withLoop { loop in
                let pair = try await Pair(loop)
                let events = Inbox<StreamEvent>()
                let (client, _) = try await pair.open(loop, events)
                loop.execute { client.abort(NetworkError(.timedOut, "no pong")) }
                #expect(await events.next() == .closed(.timedOut))
                #expect(await pair.server.events.next() == .closed(.reset))
            }
        }

        @Test func anEndWithoutTheClosingMessageIsTold() async throws {
            try await withLoop { loop in
                let pair = try await Pair(loop)
                let events = Inbox<StreamEvent>()
                let (_, accepted) = try await pair.open(loop, events)
                let below = await pair.server.lower.next()
                loop.execute {
                    accepted.send([0, 1, 2])
                    below.close()
                }
                #expect(try await events.bytes(3) == pattern(3))
                #expect(await events.next() == .closed(.tls(.truncated)))
            }
        }

        @Test func handlersAreNotCalledFromWithinCalls() async throws {
            try await withLoop { loop in
                let pair = try await Pair(loop)
                let depth = Locked(0)
                let ends = Inbox<Int>()
                let events = Inbox<StreamEvent>()
                let (client, _) = try await pair.open(loop, events)
                try await loop.call {
                    func within(_ body: () -> Void) {
                        depth.withLock { $0 += 1 }
                        body()
                        depth.withLock { $0 -= 1 }
                    }
                    client.onClose = { _ in ends.put(depth.withLock { $0 }) }
                    let early = pair.connect(loop, events)
                    early.onClose = { _ in ends.put(depth.withLock { $0 }) }
                    let broken = pair.connect(loop, events)
                    broken.onClose = { _ in ends.put(depth.withLock { $0 }) }
                    within { early.close() }
                    within { broken.abort(nil) }
                    within { client.abort(nil) }
                }
                for _ in 0..<3 { #expect(await ends.next() == 0) }
            }
        }

        @Test func aStoppedLoopClosesItsStreams() async throws {
            let before = try openDescriptors()
            let loop = try EventLoop(name: "stopped")
            let pair = try await Pair(loop)
            let events = Inbox<StreamEvent>()
            _ = try await pair.open(loop, events)
            loop.stop()
            #expect(await events.next() == .closed(.closed))
            #expect(await pair.server.events.next() == .closed(.closed))
            #expect(try openDescriptors() == before)
        }

        @Test func streamsAreLetGoWhenTheyEnd() async throws {
            final class Token: Sendable {}
            try await withLoop { loop in
                let pair = try await Pair(loop)
                weak var weakClient: TLSStream?
                weak var weakToken: Token?
                do {
                    let token = Token()
                    weakToken = token
                    let ended = Inbox<Void>()
                    let stream = try await loop.call {
                        let stream = pair.connect(loop, Inbox())
                        stream.onOpen = { [unowned stream] in stream.close() }
                        stream.onData = { _ in withExtendedLifetime(token) {} }
                        stream.onClose = { _ in ended.put(()) }
                        return stream
                    }
                    weakClient = stream
                    await ended.next()
                }
                // What ran last on the loop has let go by now.
                try await loop.call {}
                #expect(weakToken == nil)
                #expect(weakClient == nil)
            }
        }

        // MARK: Servers that are none

        @Test func aServerThatSaysNothingIsGivenUp() async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let client = try files.client(trusting: [])
                for greeting: [UInt8] in [[], [22], [22, 3, 3, 0, 100], [22, 3, 3, 0, 90, 2, 0, 0, 86, 3, 3]] {
                    let server = try await loop.call { try ReportingServer(loop) }
                    loop.execute {
                        server.listener.onConnection = { connection in
                            connection.onOpen = { [unowned connection] in connection.send(greeting) }
                        }
                    }
                    let outcome = try await attemptTLS(
                        loop, to: server.listener.localAddress, client, handshakeTimeout: .milliseconds(50))
                    #expect(outcome.failure == .timedOut)
                    #expect(outcome.error?.message.contains("after 0.05 seconds") == true)
                }
                try await loop.call {}
                #expect(try await loop.call { loop.load.timers } <= 8)
            }
        }

        @Test func aServerThatClosesInTheHandshakeIsToldFromOneThatRefuses() async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let client = try files.client(trusting: [])
                for abortively in [false, true] {
                    let server = try await loop.call { try ReportingServer(loop) }
                    loop.execute {
                        server.listener.onConnection = { connection in
                            connection.onData = { [unowned connection] _ in
                                abortively ? connection.abort() : connection.close()
                            }
                        }
                    }
                    let outcome = try await attemptTLS(loop, to: server.listener.localAddress, client)
                    #expect(outcome.failure == .closedInHandshake)
                }
                let dead = try await loop.call {
                    let listener = try TCPListener(loop: loop, bind: anyLoopback)
                    listener.close()
                    return listener.localAddress
                }
                #expect(try await attemptTLS(loop, to: dead, client).error?.code == .connectionRefused)
            }
        }

        @Test(arguments: [
            "SIP/2.0 400 Bad Request\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
            "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}",
        ])
        func aServerThatSpeaksPlainTextIsNamed(_ text: String) async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let server = try await loop.call { try ReportingServer(loop) }
                loop.execute {
                    server.listener.onConnection = { connection in
                        connection.onData = { [unowned connection] _ in connection.send(Array(text.utf8)) }
                    }
                }
                let outcome = try await attemptTLS(
                    loop, to: server.listener.localAddress, files.client(trusting: []))
                #expect(outcome.failure == .notTLS)
            }
        }

        @Test func clientsThatSpeakPlainTextAreRefused() async throws {
            try await withLoop { loop in
                let pair = try await Pair(loop)
                for text in ["REGISTER sip:example.com SIP/2.0\r\n", "GET / HTTP/1.1\r\n\r\n"] {
                    let events = Inbox<StreamEvent>()
                    try await loop.call {
                        let plain = TCPConnection.connect(loop: loop, to: pair.server.listener.localAddress)
                        plain.report(to: events)
                        plain.send(Array(text.utf8))
                    }
                    #expect(await events.next() == .open)
                    #expect(await pair.server.events.next() == .closed(.tls(.notTLS)))
                    // Nothing but an alert, at most, came from the server.
                    #expect(await events.nextChange() == .closed(nil))
                }
            }
        }

        @Test func aClientThatStallsIsGivenUp() async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let context = try files.server(TestCertificate(TestCertificateOptions()))
                let server = try await loop.call {
                    try TLSTestServer(loop, context, handshakeTimeout: .milliseconds(50))
                }
                let events = Inbox<StreamEvent>()
                try await loop.call {
                    let plain = TCPConnection.connect(loop: loop, to: server.listener.localAddress)
                    plain.report(to: events)
                    plain.send([22, 3, 1])
                }
                #expect(await server.events.next() == .closed(.tls(.timedOut)))
                #expect(await events.next() == .open)
                #expect(await events.next() == .closed(nil))
            }
        }

        // MARK: Disturbed connections

        @Test func everyCutOfTheBytesIsFine() async throws {
            try await withLoop { loop in
                let pair = try await Pair(loop)
                let relay = try await loop.call { try Relay(loop, to: pair.server.listener.localAddress, cut: 1) }
                let events = Inbox<StreamEvent>()
                let client = try await loop.call { pair.connect(loop, events, to: relay.address) }
                #expect(await events.next() == .open)
                #expect(await pair.server.events.next() == .open)
                let accepted = await pair.server.connections.next()
                loop.execute {
                    client.send(pattern(300))
                    accepted.send(pattern(200))
                }
                #expect(try await pair.server.events.bytes(300) == pattern(300))
                #expect(try await events.bytes(200) == pattern(200))
                loop.execute { client.close() }
                #expect(await events.next() == .closed(nil))
                #expect(await pair.server.events.next() == .closed(nil))
            }
        }

        /// A bit is flipped somewhere on the way: whatever it hits, no false byte reaches an owner.
        @Test(arguments: [Relay.Side.client, .server])
        func noFlippedBitGoesUnnoticed(_ side: Relay.Side) async throws {
            try await withLoop { loop in
                let pair = try await Pair(loop)
                var position = 0
                var broken = 0
                while position < 900 {
                    let relay = try await loop.call { [position] in
                        try Relay(
                            loop, to: pair.server.listener.localAddress,
                            flip: (side, position, UInt8(1 << (position % 8))))
                    }
                    let events = Inbox<StreamEvent>()
                    let both = Locked(([UInt8](), [UInt8]()))
                    let ended = Inbox<NetworkError?>()
                    try await loop.call {
                        pair.server.listener.onConnection = { connection in
                            let stream = TLSStream(
                                server: connection, context: pair.server.currentContext,
                                handshakeTimeout: .milliseconds(300))
                            stream.onData = { [unowned stream] bytes in
                                both.withLock { $0.0 += bytes }
                                stream.send(bytes)
                            }
                        }
                        let client = TLSStream(
                            client: TCPConnection.connect(loop: loop, to: relay.address), context: pair.client,
                            serverName: "example.com", handshakeTimeout: .milliseconds(300))
                        client.onOpen = { [unowned client] in client.send(pattern(40)) }
                        client.onData = { [unowned client] bytes in
                            let count = both.withLock {
                                $0.1 += bytes
                                return $0.1.count
                            }
                            if count >= 40 { client.close() }
                        }
                        client.onClose = { ended.put($0) }
                        // A length that was made longer waits for what never comes.
                        loop.schedule(after: .milliseconds(300)) { client.abort(NetworkError(.timedOut, "stuck")) }
                    }
                    if await ended.next() != nil { broken += 1 }
                    let (there, back) = both.withLock { $0 }
                    #expect(there == pattern(40).prefix(there.count)[...].map { $0 })
                    #expect(back == pattern(40).prefix(back.count)[...].map { $0 })
                    withExtendedLifetime((relay, events)) {}
                    position += 13
                }
                // Some bits matter to nobody, such as those of the record's legacy version.
                #expect(broken > 25)
            }
        }
    }
}
