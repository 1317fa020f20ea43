import Network
import Primitives
import SIP
import STUN
import Testing

@testable import Signalling

/// What is special about each transport, over real sockets on loopback.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct StreamTransportTests {
    private static let streams: [SIPTransport] = [.tcp, .tls, .ws, .wss]

    @Test(arguments: streams) func pingsAreAnswered(transport: SIPTransport) async throws {
        try await withLoop { loop in
            let (server, client) = (Element(loop), Element(loop))
            try await client.trust()
            let path = try await client.connect(transport, to: try await server.listen(transport)).get()
            for _ in 0..<3 {
                await client.send(.ping, over: path.flow)
                guard case .keepAlive(.pong, let flow) = try await client.next() else {
                    Issue.record("no pong")
                    return
                }
                #expect(flow == path.flow)
            }
            #expect(try await client.counters().received == 0)
        }
    }

    @Test func serversTellTheAddressOverUDP() async throws {
        try await withLoop { loop in
            let (server, client) = (Element(loop), Element(loop))
            let path = try await client.connect(.udp, to: try await server.listen(.udp)).get()
            var random = RandomSource.system
            let transaction = STUNTransactionID(using: &random)
            await client.send(.binding(transaction), over: path.flow)
            guard case .keepAlive(.binding(let answered, let address), let flow) = try await client.next() else {
                Issue.record("no answer")
                return
            }
            #expect(answered == transaction && flow == path.flow)
            #expect(address == STUNAddress(bytes: [127, 0, 0, 1], port: path.local.port))
            #expect(try await server.counters().malformed == 0)
        }
    }

    @Test(arguments: [SIPTransport.tls, .wss])
    func aServerOfAnotherNameGetsNothing(transport: SIPTransport) async throws {
        try await withLoop { loop in
            let (server, client) = (Element(loop), Element(loop))
            try await client.trust()
            let address = try await server.listen(transport)
            // Resolved to loopback, but configured as another domain: that one counts (RFC 5922).
            guard
                case .failure(let error) = try await client.connect(transport, to: address, domain: "sip.example.com"),
                case .tls(.nameMismatch(let expected, _)) = error.code
            else {
                Issue.record("accepted")
                return
            }
            #expect(expected == "sip.example.com")
            // Without the authority nobody is trusted.
            let stranger = Element(loop)
            guard case .failure(let other) = try await stranger.connect(transport, to: address),
                case .tls = other.code
            else {
                Issue.record("accepted")
                return
            }
            #expect(try await server.counters().received == 0)
        }
    }

    @Test func anObjectionIsHeardBeforeAnythingIsSent() async throws {
        try await withLoop { loop in
            let (server, client) = (Element(loop), Element(loop))
            for transport in [SIPTransport.udp, .tcp, .ws] {
                let address = try await server.listen(transport)
                let transports = client.transports
                try await loop.call {
                    transports.objection = { NetworkError(.insecureTransport, "not over \($0.transport.rawValue)") }
                }
                guard case .failure(let error) = try await client.connect(transport, to: address) else {
                    Issue.record("opened")
                    return
                }
                #expect(error.code == .insecureTransport && error.message.contains(transport.rawValue))
            }
        }
    }

    @Test(arguments: streams) func anAttemptCanBeGivenUp(transport: SIPTransport) async throws {
        try await withLoop { loop in
            let (server, client) = (Element(loop), Element(loop))
            try await client.trust()
            let address = try await server.listen(transport)
            let answers = Inbox<Bool>()
            let transports = client.transports
            try await loop.call {
                let target = FlowTarget(transport: transport, address: address, domain: "localhost")
                transports.connect(target) { _ in answers.put(false) }.cancel()
                transports.connect(target) { _ in answers.put(true) }
            }
            #expect(try await answers.next() == true)
            #expect(answers.rest.isEmpty)
        }
    }

    @Test func webSocketMessagesNeedNoContentLengthAndMayComeInFragments() async throws {
        try await withLoop { loop in
            let server = Element(loop)
            let raw = try await RawConnection(loop, to: try await server.listen(.ws))
            try await raw.upgrade()
            var text = String(decoding: try SIPTransportSetTests.message("hello").encoded(), as: UTF8.self)
            text = text.replacing("Content-Length: 5\r\n", with: "")
            #expect(!text.contains("Content-Length"))
            // One message in three frames, each of them in single bytes.
            let bytes = Array(text.utf8)
            let frames = [
                frame(1, bytes[..<10], isLast: false), frame(0, bytes[10..<11], isLast: false),
                frame(0, bytes[11...], isLast: true),
            ]
            for byte in frames.joined() { await raw.send([byte]) }
            #expect(try await server.nextMessage().0.body == Array("hello".utf8))
            // What is no SIP message is reported, and the connection goes on.
            await raw.send(frame(1, Array("no SIP".utf8)[...], isLast: true))
            guard case .malformed(let odd, _) = try await server.next() else {
                Issue.record("not reported")
                return
            }
            #expect(odd == Array("no SIP".utf8))
            await raw.send(frame(1, Array("\r\n\r\n".utf8)[...], isLast: true) + frame(2, bytes[...], isLast: true))
            #expect(try await server.nextMessage().0.body == Array("hello".utf8))
        }
    }

    /// A client's frame, masked with zeros.
    private func frame(_ opcode: UInt8, _ payload: ArraySlice<UInt8>, isLast: Bool) -> [UInt8] {
        let count = payload.count
        let length = count < 126 ? [0x80 | UInt8(count)] : [0xFE, UInt8(count >> 8), UInt8(count & 255)]
        return [(isLast ? 0x80 : 0) | opcode] + length + [0, 0, 0, 0] + payload
    }
}
