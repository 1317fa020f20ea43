import Network
import Primitives
import Synchronization

/// Carries TCP connections to a server, and cuts them when a test says so or when certain bytes come by.
final class CuttableRelay: Sendable {
    let address: TransportAddress
    private let loop: EventLoop
    private let listener: TCPListener
    private let state = Mutex(State())

    private struct State {
        var connections: [TCPConnection] = []
        var opened = 0
        /// Cut when the server's (true) or client's side sends this.
        var trigger: (text: String, fromServer: Bool)?
        var trickles = false
    }

    static func start(to server: TransportAddress) async throws -> CuttableRelay {
        let loop = try EventLoop(name: "relay")
        return try await loop.call { try CuttableRelay(loop, to: server) }
    }

    private init(_ loop: EventLoop, to server: TransportAddress) throws {
        self.loop = loop
        listener = try TCPListener(loop: loop, bind: TransportAddress(host: "127.0.0.1", port: 0))
        address = listener.localAddress
        listener.onConnection = { [weak self] client in
            guard let self else { return client.abort() }
            let upstream = TCPConnection.connect(loop: loop, to: server)
            self.state.withLock {
                $0.connections += [client, upstream]; $0.opened += 1
            }
            client.onData = { self.pass($0, to: upstream, fromServer: false) }
            upstream.onData = { self.pass($0, to: client, fromServer: true) }
            client.onClose = { _ in upstream.close() }
            upstream.onClose = { _ in client.close() }
        }
    }

    /// How many connections were made through it.
    var opened: Int { state.withLock { $0.opened } }

    /// Resets every connection.
    func cut() {
        loop.execute { self.cutNow() }
    }

    /// Resets every connection as soon as this text comes by, once, before it goes on.
    func cut(at text: String, fromServer: Bool) {
        state.withLock { $0.trigger = (text, fromServer) }
    }

    /// Hands everything on in single bytes.
    func trickle() {
        state.withLock { $0.trickles = true }
    }

    func stop() async throws {
        try await loop.call {
            self.listener.close()
            self.cutNow()
        }
        loop.stop()
    }

    private func cutNow() {
        let all = state.withLock { state in
            defer { state.connections = [] }
            return state.connections
        }
        for connection in all { connection.abort() }
    }

    private func pass(_ bytes: [UInt8], to other: TCPConnection, fromServer: Bool) {
        let (isCut, trickles) = state.withLock { state in
            guard let trigger = state.trigger, trigger.fromServer == fromServer,
                String(decoding: bytes, as: UTF8.self).contains(trigger.text)
            else { return (false, state.trickles) }
            state.trigger = nil
            return (true, false)
        }
        if isCut { return cutNow() }
        if trickles {
            for byte in bytes { other.send([byte]) }
        } else {
            other.send(bytes)
        }
    }
}
