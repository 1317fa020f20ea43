import CSys
import Glibc
import Primitives
import Testing

@testable import Network
@testable import TestCertificates

/// Certificates on disk, and TLS contexts of them.
struct TLSFiles: Sendable {
    let directory: ScratchDirectory

    init() throws {
        directory = try ScratchDirectory()
    }

    /// Writes a file and returns its path.
    func write(_ text: String, _ name: String) throws -> String {
        let path = directory.file(name)
        let file = try FileDescriptor(csysOpen(path), "create \(path)")
        let bytes = Array(text.utf8)
        try #require(Glibc.write(file.number, bytes, bytes.count) == bytes.count)
        file.close()
        return path
    }

    /// A server that has this certificate.
    func server(_ certificate: TestCertificate, name: String = "server") throws -> TLSServerContext {
        try TLSServerContext(
            certificateFile: write(certificate.chainPEM, "\(name).pem"),
            keyFile: write(certificate.keyPEM(), "\(name).key"))
    }

    /// A client that trusts these authorities and, as is hard to avoid, the machine's.
    func client(trusting authorities: [TestCertificate]) throws -> TLSClientContext {
        if authorities.isEmpty { return try TLSClientContext() }
        return try TLSClientContext(caFile: write(authorities.map(\.pem).joined(), "ca.pem"))
    }
}

private func csysOpen(_ path: String) -> Int32 {
    csys_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
}

/// A TLS listener on loopback whose connections report to one inbox.
final class TLSTestServer: Sendable {
    let listener: TCPListener
    let events = Inbox<StreamEvent>()
    let connections = Inbox<TLSStream>()
    /// The connections below, for tests that disturb them.
    let lower = Inbox<TCPConnection>()

    private let current: Locked<TLSServerContext>

    /// On the loop.
    init(_ loop: EventLoop, _ context: TLSServerContext, handshakeTimeout: Duration = .seconds(10)) throws {
        current = Locked(context)
        listener = try TCPListener(loop: loop, bind: anyLoopback)
        listener.onConnection = { [events, connections, lower, current] connection in
            let stream = TLSStream(
                server: connection, context: current.withLock { $0 }, handshakeTimeout: handshakeTimeout)
            stream.reportStream(to: events)
            lower.put(connection)
            connections.put(stream)
        }
    }

    var currentContext: TLSServerContext { current.withLock { $0 } }

    /// What new connections get from now on.
    func use(_ context: TLSServerContext) {
        current.withLock { $0 = context }
    }
}

/// How a client's connection attempt ended.
struct TLSOutcome: Sendable {
    /// Nil when the stream opened.
    var error: NetworkError?
    var cipher: String?

    /// The failing check.
    var failure: TLSFailure? {
        guard case .tls(let failure) = error?.code else { return nil }
        return failure
    }
}

/// Connects a TLS client and says how it went; an open stream is closed again.
func attemptTLS(
    _ loop: EventLoop, to address: TransportAddress, _ context: TLSClientContext, serverName: String = "example.com",
    rule: TLSNameRule = .sip, handshakeTimeout: Duration = .seconds(10)
) async throws -> TLSOutcome {
    let outcome = Inbox<TLSOutcome>()
    try await loop.call {
        let stream = TLSStream(
            client: TCPConnection.connect(loop: loop, to: address), context: context, serverName: serverName,
            nameRule: rule, handshakeTimeout: handshakeTimeout)
        stream.onOpen = { [unowned stream] in
            outcome.put(TLSOutcome(error: nil, cipher: stream.cipher))
            stream.close()
        }
        stream.onClose = { if let error = $0 { outcome.put(TLSOutcome(error: error)) } }
    }
    return await outcome.next()
}
