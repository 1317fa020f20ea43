import Network
import Primitives
import SIP
import Testing

@testable import Signalling

/// Messages over real sockets on loopback. A test that waits for what never comes fails by the limit.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct SIPTransportSetTests {
    private static let anyPort = TransportAddress(host: "127.0.0.1", port: 0)

    static func message(_ body: String = "") -> SIPMessage {
        var request = SIPMessage(request: .options, uri: SIPURI(user: "bob", host: "example.org"))
        request.vias = [SIPVia(transport: "UDP", host: "127.0.0.1", port: 5060, branch: "z9hG4bKtest")]
        request.from = SIPAddress(uri: SIPURI(user: "alice", host: "example.org"))
        request.to = SIPAddress(uri: SIPURI(user: "bob", host: "example.org"))
        request.callID = "c"
        request.cseq = SIPCSeq(number: 1, method: .options)
        request.body = Array(body.utf8)
        return request
    }

    @Test(arguments: SIPTransport.allCases)
    func roundTrip(transport: SIPTransport) async throws {
        try await withLoop { loop in
            let server = Element(loop)
            let client = Element(loop)
            let address = try await server.listen(transport)
            try await client.trust()
            let path = try await client.connect(transport, to: address).get()
            #expect(path.flow.transport == transport)
            #expect(path.cipher?.hasPrefix("TLSv1.3") == (transport.isSecure ? true : nil))
            #expect(path.anonymousHost?.hasSuffix(".invalid") == (transport.isWebSocket ? true : nil))
            #expect(path.flow.remote == address)
            #expect((path.flow.connection != 0) == transport.isReliable)

            await client.send(Self.message("question"), over: path.flow)
            let (question, flow) = try await server.nextMessage()
            #expect(question.body == Array("question".utf8))
            #expect(flow.remote == path.local, "the local address is the one that the peer sees")
            await server.send(question.response(status: 200, toTag: "t"), over: flow)
            let (answer, back) = try await client.nextMessage()
            #expect(answer.status == 200)
            #expect(back == path.flow)
            let counters = try await client.counters()
            #expect(counters.sent == 1 && counters.received == 1 && counters.malformed == 0)
        }
    }

    @Test func messagesInPiecesAndSeveralAtOnce() async throws {
        try await withLoop { loop in
            let server = Element(loop)
            let raw = try await RawConnection(loop, to: try await server.listen(.tcp))
            let bytes = try Self.message("body of the first").encoded()
            for byte in bytes { await raw.send([byte]) }
            #expect(try await server.nextMessage().0.body == Array("body of the first".utf8))
            // Two and a half messages, between them a keep-alive, then the rest.
            let second = try Self.message("2").encoded()
            let third = try Self.message("3").encoded()
            await raw.send(second + [13, 10, 13, 10] + third + second.prefix(100))
            #expect(try await server.nextMessage().0.body == Array("2".utf8))
            #expect(try await server.nextMessage().0.body == Array("3".utf8))
            #expect(try await raw.next() == .bytes([13, 10]), "a ping gets a pong (RFC 5626)")
            await raw.send(Array(second.dropFirst(100)))
            #expect(try await server.nextMessage().0.body == Array("2".utf8))
            #expect(try await server.counters().received == 4)
        }
    }

    @Test func streamThatIsNotSIPIsClosed() async throws {
        try await withLoop { loop in
            let server = Element(loop)
            let raw = try await RawConnection(loop, to: try await server.listen(.tcp))
            let text = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
            await raw.send(Array(text.utf8))
            guard case .malformed(let bytes, let flow) = try await server.next() else {
                Issue.record("not reported")
                return
            }
            #expect(bytes == Array(text.utf8))
            guard case .failed(let failed, let error) = try await server.next() else {
                Issue.record("not closed")
                return
            }
            #expect(failed == flow)
            #expect(error.message.contains("not SIP"))
            #expect(try await raw.next() == .closed)
            #expect(try await server.counters().malformed == 1)
        }
    }

    /// A message that can be cut out but not read does not cost the connection.
    @Test func unreadableMessageKeepsTheStream() async throws {
        try await withLoop { loop in
            let server = Element(loop)
            let raw = try await RawConnection(loop, to: try await server.listen(.tcp))
            await raw.send(Array("NONSENSE\r\nContent-Length: 0\r\n\r\n".utf8))
            guard case .malformed = try await server.next() else {
                Issue.record("not reported")
                return
            }
            await raw.send(try Self.message("good").encoded())
            #expect(try await server.nextMessage().0.body == Array("good".utf8))
        }
    }

    @Test func malformedAndEmptyDatagrams() async throws {
        try await withLoop { loop in
            let server = Element(loop)
            let address = try await server.listen(.udp)
            let socket = try await loop.call { () throws(NetworkError) in
                try UDPSocket(loop: loop, bind: Self.anyPort)
            }
            for bytes in [[], [13, 10, 13, 10], [0], Array("no SIP at all".utf8)] as [[UInt8]] {
                try await loop.call { socket.send(bytes, to: address) }
            }
            guard case .malformed(let bytes, let flow) = try await server.next() else {
                Issue.record("not reported")
                return
            }
            #expect(bytes == Array("no SIP at all".utf8), "keep-alives are no malformed messages")
            #expect(flow == SIPFlow(transport: .udp, remote: socket.localAddress))
            try await loop.call { socket.close() }
        }
    }

    @Test func nobodyAtTheOtherEnd() async throws {
        try await withLoop { loop in
            let closed = try await unusedPort(loop)
            let client = Element(loop)
            // Over UDP the first datagram comes back by ICMP, at once and not after 32 s.
            let path = try await client.connect(.udp, to: closed).get()
            let start = loop.now
            await client.send(Self.message(), over: path.flow)
            guard case .failed(let flow, let error) = try await client.next() else {
                Issue.record("not reported")
                return
            }
            #expect(flow == path.flow)
            #expect(error.code == .connectionRefused)
            #expect(loop.now - start < .seconds(5))
            // Over TCP the connection fails.
            let result = try await client.connect(.tcp, to: closed)
            #expect(throws: NetworkError.self) { try result.get() }
            for transport in [SIPTransport.tls, .ws, .wss] {
                let result = try await client.connect(transport, to: closed)
                #expect(throws: NetworkError.self) { try result.get() }
            }
        }
    }

    @Test func closedConnectionIsReportedOnceAndItsFlowStaysDead() async throws {
        try await withLoop { loop in
            let server = Element(loop)
            let client = Element(loop)
            let address = try await server.listen(.tcp)
            let path = try await client.connect(.tcp, to: address).get()
            await client.send(Self.message(), over: path.flow)
            let (_, flow) = try await server.nextMessage()
            await server.close(flow)
            guard case .failed(let failed, _) = try await client.next() else {
                Issue.record("not reported")
                return
            }
            #expect(failed == path.flow)
            await client.send(Self.message(), over: path.flow)
            guard case .failed(let again, let error) = try await client.next() else {
                Issue.record("not reported")
                return
            }
            #expect(again == path.flow && error.code == .closed)
            let next = try await client.connect(.tcp, to: address).get()
            #expect(next.flow != path.flow)
        }
    }

    @Test func closingTheSetAnswersAConnectUnderWay() async throws {
        try await withLoop { loop in
            let server = Element(loop)
            let client = Element(loop)
            let address = try await server.listen(.tcp)
            let inbox = Inbox<Result<RegisteredFlow, NetworkError>>()
            try await loop.call {
                client.transports.connect(FlowTarget(transport: .tcp, address: address, domain: "localhost")) {
                    inbox.put($0)
                }
                client.transports.close()
            }
            let result = try await inbox.next()
            #expect(throws: NetworkError.self) { try result.get() }
            // Everything that was on its way has been handled when this comes back.
            try await loop.call {}
            #expect(inbox.rest.isEmpty)
        }
    }

    @Test func messageThatIsNeverCompletedEndsItsConnection() async throws {
        try await withLoop { loop in
            let server = Element(loop, partialMessageTimeout: .milliseconds(100))
            let raw = try await RawConnection(loop, to: try await server.listen(.tcp))
            let bytes = try Self.message().encoded()
            await raw.send(Array(bytes.prefix(50)))
            guard case .failed(_, let error) = try await server.next() else {
                Issue.record("not reported")
                return
            }
            #expect(error.code == .timedOut)
            #expect(try await raw.next() == .closed)
        }
    }

    /// The time is one message's: a stream that never rests between two messages but completes each is a good one.
    @Test func timeForAMessageBeginsAnewWithEachMessage() async throws {
        try await withLoop { loop in
            let server = Element(loop, partialMessageTimeout: .milliseconds(400))
            let raw = try await RawConnection(loop, to: try await server.listen(.tcp))
            let bytes = try Self.message("x").encoded()
            await raw.send(Array(bytes.prefix(50)))
            let start = loop.now
            // Each step ends one message and begins another; the steps are paced by the loop's own timer.
            while loop.now - start < .milliseconds(1_200) {
                let tick = Inbox<Bool>()
                try await loop.call { _ = loop.schedule(after: .milliseconds(20)) { tick.put(true) } }
                _ = try await tick.next()
                await raw.send(Array(bytes.dropFirst(50) + bytes.prefix(50)))
                _ = try await server.nextMessage()
            }
            #expect(server.inbox.rest.isEmpty)
        }
    }

    @Test func messageThatCannotBePrintedIsCountedAndNotSent() async throws {
        try await withLoop { loop in
            let server = Element(loop)
            let client = Element(loop)
            let path = try await client.connect(.udp, to: try await server.listen(.udp)).get()
            var evil = Self.message()
            evil.headers.append("X-Evil", "a\r\nBYE sip:x SIP/2.0")
            await client.send(evil, over: path.flow)
            await client.send(Self.message("next"), over: path.flow)
            #expect(try await server.nextMessage().0.body == Array("next".utf8))
            let counters = try await client.counters()
            #expect(counters.unprintable == 1 && counters.sent == 1)
        }
    }

    private func unusedPort(_ loop: EventLoop) async throws -> TransportAddress {
        // Bound by TCP and UDP once, so that it is free for both.
        try await loop.call { () throws(NetworkError) in
            let listener = try TCPListener(loop: loop, bind: Self.anyPort)
            let address = listener.localAddress
            listener.close()
            let socket = try UDPSocket(loop: loop, bind: address)
            socket.close()
            return address
        }
    }
}
