import Network
import Primitives
import SIP
import Testing

@testable import Signalling

/// Requests that are too long for a datagram (RFC 3261, 18.1.1).
@Suite(.serialized, .timeLimit(.minutes(1)))
struct LongRequestTests {
    private static let long = String(repeating: "x", count: 1_300)

    private func client(_ loop: EventLoop) async throws -> Element {
        let client = Element(loop)
        let transports = client.transports
        try await loop.call { transports.maximumDatagramRequest = SIPTransportSet.maximumDatagramRequest }
        return client
    }

    /// UDP and TCP at one port, as servers have it.
    private func server(_ loop: EventLoop) async throws -> (Element, TransportAddress) {
        let server = Element(loop)
        let address = try await server.listen(.udp)
        let transports = server.transports
        _ = try await loop.call { () throws(NetworkError) in try transports.listenTCP(address) }
        return (server, address)
    }

    private func invite(_ branch: String, body: String = long) -> SIPMessage {
        make(.invite, branch, body: body)
    }

    private func make(_ method: SIPMethod, _ branch: String, body: String = "") -> SIPMessage {
        let model = SIPTransportSetTests.message(body)
        var request = SIPMessage(request: method, uri: SIPURI(user: "bob", host: "example.org"))
        request.vias = [SIPVia(transport: "UDP", host: "127.0.0.1", port: 5060, branch: branch)]
        request.from = model.from
        request.to = model.to
        request.callID = model.callID
        request.cseq = SIPCSeq(number: 1, method: method)
        request.body = model.body
        return request
    }

    @Test func longRequestsGoOverTCPAndTheirFollowersToo() async throws {
        try await withLoop { loop in
            let client = try await client(loop)
            let (server, address) = try await server(loop)
            let path = try await client.connect(.udp, to: address).get()
            let invite = invite("z9hG4bKlong")
            await client.send(invite, over: path.flow)
            // Timer A of a transaction over datagrams: no second copy goes over the stream.
            await client.send(invite, over: path.flow)
            let (received, flow) = try await server.nextMessage()
            #expect(flow.transport == .tcp)
            #expect(received.topVia?.transport == "TCP" && received.topVia?.branch == "z9hG4bKlong")
            #expect(received.body == Array(Self.long.utf8))
            await server.send(received.response(status: 486, toTag: "t"), over: flow)
            let (answer, back) = try await client.nextMessage()
            #expect(answer.status == 486 && back.transport == .tcp && back.remote == address)
            // ACK and CANCEL take the INVITE's way, however short they are.
            for method in [SIPMethod.cancel, .ack, .ack] {
                await client.send(make(method, "z9hG4bKlong"), over: path.flow)
                let (got, way) = try await server.nextMessage()
                #expect(got.method == method && way == flow)
            }
            // Everything else goes as ever, responses of any length included.
            await client.send(SIPTransportSetTests.message(), over: path.flow)
            #expect(try await server.nextMessage().1.transport == .udp)
            let response = SIPTransportSetTests.message(Self.long).response(status: 200, toTag: "t")
            await client.send(response, over: path.flow)
            #expect(try await server.nextMessage().1.transport == .udp)
            // A second long one takes the same connection, and a new one when that is gone.
            await client.send(self.invite("z9hG4bKsecond"), over: path.flow)
            #expect(try await server.nextMessage().1 == flow)
            await server.close(flow)
            guard case .failed(let lost, _) = try await client.next() else {
                Issue.record("not reported")
                return
            }
            #expect(lost == back)
            await client.send(self.invite("z9hG4bKthird"), over: path.flow)
            let (third, other) = try await server.nextMessage()
            #expect(third.topVia?.branch == "z9hG4bKthird" && other != flow && other.transport == .tcp)
        }
    }

    @Test func withoutTCPTheSenderLearnsSizeAndRemedy() async throws {
        try await withLoop { loop in
            let (client, server) = (try await client(loop), Element(loop))
            let path = try await client.connect(.udp, to: try await server.listen(.udp)).get()
            await client.send(invite("z9hG4bKlong"), over: path.flow)
            guard case .unsent(let request, let error) = try await client.next() else {
                Issue.record("not reported")
                return
            }
            #expect(request.topVia?.branch == "z9hG4bKlong")
            #expect(error.code == .tooLarge)
            for part in ["INVITE", "1300", "transport=tcp"] {
                #expect(error.message.contains(part), "\(error.message)")
            }
            // The flow goes on.
            await client.send(SIPTransportSetTests.message("short"), over: path.flow)
            #expect(try await server.nextMessage().0.body == Array("short".utf8))
        }
    }

    @Test func aServerWhoseNetworkIsKnownSendsEverythingInDatagrams() async throws {
        try await withLoop { loop in
            let (client, server) = (Element(loop), Element(loop))
            let path = try await client.connect(.udp, to: try await server.listen(.udp)).get()
            await client.send(invite("z9hG4bKlong"), over: path.flow)
            #expect(try await server.nextMessage().1.transport == .udp)
        }
    }
}
