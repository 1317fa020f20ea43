import Network
import Primitives
import SIP
import STUN
import Synchronization
import TestCertificates
import Testing

@testable import Signalling

/// One transport set and what it reported.
final class Element: Sendable {
    enum Report: Sendable {
        case message(SIPMessage, SIPFlow)
        case malformed([UInt8], SIPFlow)
        case failed(SIPFlow, NetworkError)
        case unsent(SIPMessage, NetworkError)
        case keepAlive(KeepAliveAnswer, SIPFlow)
    }

    let transports: SIPTransportSet
    let inbox = Inbox<Report>()
    private let loop: EventLoop

    init(_ loop: EventLoop, partialMessageTimeout: Duration = SIPTransportSet.partialMessageTimeout) {
        self.loop = loop
        let inbox = inbox
        transports = SIPTransportSet(
            loop: loop, partialMessageTimeout: partialMessageTimeout,
            handlers: SIPTransportSet.Handlers(
                onMessage: { inbox.put(.message($0, $1)) },
                onMalformed: { bytes, _, flow in inbox.put(.malformed(bytes, flow)) },
                onFlowFailed: { inbox.put(.failed($0, $1)) },
                onRequestFailed: { message, _, error in inbox.put(.unsent(message, error)) },
                onKeepAlive: { inbox.put(.keepAlive($0, $1)) }))
    }

    func listen(_ transport: SIPTransport) async throws -> TransportAddress {
        let transports = transports
        let any = TransportAddress(host: "127.0.0.1", port: 0)
        let files = try LoopbackIdentity.files.get()
        let certificate =
            transport.isSecure
            ? try TLSServerContext(certificateFile: files.certificate, keyFile: files.key) : nil
        return try await loop.call { () throws(NetworkError) in
            transport == .udp
                ? try transports.bindUDP(any) : try transports.listen(transport, any, certificate: certificate)
        }
    }

    /// Trusts the authority of the test servers.
    func trust() async throws {
        let transports = transports
        let context = try TLSClientContext(caFile: LoopbackIdentity.files.get().authority)
        try await loop.call { transports.tls = context }
    }

    func send(_ probe: KeepAliveProbe, over flow: SIPFlow) async {
        let transports = transports
        loop.execute { transports.send(probe, over: flow) }
    }

    func connect(
        _ transport: SIPTransport, to address: TransportAddress, domain: String = "localhost"
    ) async throws -> Result<RegisteredFlow, NetworkError> {
        let transports = transports
        let answer = Inbox<Result<RegisteredFlow, NetworkError>>()
        let target = FlowTarget(transport: transport, address: address, domain: domain)
        loop.execute { transports.connect(target) { answer.put($0) } }
        return try await answer.next()
    }

    func send(_ message: SIPMessage, over flow: SIPFlow) async {
        let transports = transports
        loop.execute { transports.send(message, over: flow) }
    }

    func close(_ flow: SIPFlow) async {
        let transports = transports
        loop.execute { transports.close(flow) }
    }

    func counters() async throws -> SIPTransportSet.Counters {
        let transports = transports
        let answer = Inbox<SIPTransportSet.Counters>()
        loop.execute { answer.put(transports.counters) }
        return try await answer.next()
    }

    func next() async throws -> Report { try await inbox.next() }

    func nextMessage() async throws -> (SIPMessage, SIPFlow) {
        let report = try await next()
        guard case .message(let message, let flow) = report else {
            throw Unexpected(report: "\(report)")
        }
        return (message, flow)
    }

    struct Unexpected: Error {
        let report: String
    }
}

/// A TCP connection that sends what it is told, SIP or not.
final class RawConnection: Sendable {
    enum Report: Sendable, Equatable {
        case open
        case bytes([UInt8])
        case closed
    }

    private let loop: EventLoop
    private let connection: TCPConnection
    private let inbox = Inbox<Report>()

    init(_ loop: EventLoop, to address: TransportAddress) async throws {
        self.loop = loop
        let inbox = inbox
        connection = try await loop.call {
            let connection = TCPConnection.connect(loop: loop, to: address, timeout: .seconds(5))
            connection.onOpen = { inbox.put(.open) }
            connection.onData = { inbox.put(.bytes($0)) }
            connection.onClose = { _ in inbox.put(.closed) }
            return connection
        }
        let first = try await inbox.next()
        #expect(first == .open)
    }

    func send(_ bytes: [UInt8]) async {
        let connection = connection
        loop.execute { connection.send(bytes) }
    }

    func next() async throws -> Report { try await inbox.next() }

    /// The opening handshake of a WebSocket, as a browser writes it.
    func upgrade() async throws {
        let lines = [
            "GET / HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Protocol: sip", "", "",
        ]
        await send(Array(lines.joined(separator: "\r\n").utf8))
        guard case .bytes(let answer) = try await next() else {
            Issue.record("closed")
            return
        }
        #expect(String(decoding: answer, as: UTF8.self).contains("101"))
    }
}

/// Events on their way from handlers to a test, which waits for each.
final class Inbox<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiting: CheckedContinuation<Value, any Error>?
    }

    private let state = Mutex(State())

    func put(_ value: Value) {
        let waiting = state.withLock { state -> CheckedContinuation<Value, any Error>? in
            guard let waiting = state.waiting else {
                state.values.append(value)
                return nil
            }
            state.waiting = nil
            return waiting
        }
        waiting?.resume(returning: value)
    }

    /// Throws when the test is cancelled because its time is over.
    func next() async throws -> Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let ready = state.withLock { state -> Value? in
                    if !state.values.isEmpty { return state.values.removeFirst() }
                    state.waiting = continuation
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            let waiting = state.withLock { state in
                defer { state.waiting = nil }
                return state.waiting
            }
            waiting?.resume(throwing: CancellationError())
        }
    }

    /// What came and was not taken.
    var rest: [Value] { state.withLock { $0.values } }
}

/// Runs a test with a loop and ends the loop whatever happens.
func withLoop(_ body: (EventLoop) async throws -> Void) async throws {
    let loop = try EventLoop(name: "test")
    defer { loop.stop() }
    try await body(loop)
}
