import Network
import Primitives
import SIP

/// One connection that carries SIP, and what has arrived of its next message.
///
/// TCP and TLS are cut into messages by Content-Length; over WebSocket each message comes whole (RFC 7118, section 4.2).
final class SIPStream: @unchecked Sendable {
    // @unchecked: owned by its transport set and touched on the same loop.
    let flow: SIPFlow
    let connection: any ByteStream
    var framer: SIPStreamFramer
    /// Whether this side opened it.
    let isOutgoing: Bool
    /// Whom to tell that the connection is there or will not be.
    private var completion: (@Sendable (Result<RegisteredFlow, NetworkError>) -> Void)?
    private var timer: TimerHandle?
    /// What a WebSocket client writes instead of its address.
    private let anonymousHost: String?
    private let layers: StreamLayers

    init(
        flow: SIPFlow, layers: StreamLayers, limits: SIPLimits, anonymousHost: String? = nil,
        completion: (@Sendable (Result<RegisteredFlow, NetworkError>) -> Void)?
    ) {
        self.flow = flow
        self.layers = layers
        connection = layers.top
        self.completion = completion
        self.anonymousHost = anonymousHost
        isOutgoing = completion != nil
        framer = SIPStreamFramer(limits: limits)
    }

    /// The WebSocket layer; nil over TCP and TLS.
    var webSocket: WebSocketStream? { layers.webSocket }

    /// The flow that is reported when the connection is open.
    var registeredFlow: RegisteredFlow {
        let local = connection.localAddress ?? TransportAddress(host: "0.0.0.0", port: 0)
        return RegisteredFlow(
            flow: flow, local: local, cipher: layers.tls?.cipher,
            anonymousHost: anonymousHost)
    }

    /// Gives the completion away, so that it is called once.
    func takeCompletion() -> (@Sendable (Result<RegisteredFlow, NetworkError>) -> Void)? {
        defer { completion = nil }
        return completion
    }

    /// Asks whether the other side is still there (RFC 5626, section 3.5.1; RFC 7118, section 6).
    func ping() {
        if let webSocket {
            webSocket.ping()
        } else {
            framer.pingSent()
            connection.send([0x0D, 0x0A, 0x0D, 0x0A])
        }
    }

    /// Bounds the time that the pending message may take.
    ///
    /// - Parameter isNew: whether messages were completed just now, so that what is pending is another one than before.
    func watchPartialMessage(on loop: EventLoop, within limit: Duration, isNew: Bool) {
        if framer.isIdle || isNew { stopWatching() }
        guard !framer.isIdle, timer == nil else { return }
        timer = loop.schedule(after: limit) { [weak self] in
            self?.connection.abort(NetworkError(.timedOut, "a message was not completed within \(limit)"))
        }
    }

    func stopWatching() {
        timer?.cancel()
        timer = nil
    }
}

/// The layers of a connection, from TCP up to where messages go in.
struct StreamLayers {
    let tls: TLSStream?
    let webSocket: WebSocketStream?
    let top: any ByteStream

    /// The client's side of a connection to `target`.
    ///
    /// - Parameter timeout: how long each layer's handshake may take.
    init(client tcp: TCPConnection, target: FlowTarget, context: TLSClientContext?, timeout: Duration) {
        let transport = target.transport
        tls =
            transport.isSecure
            ? context.map {
                TLSStream(
                    client: tcp, context: $0, serverName: target.domain,
                    nameRule: transport.isWebSocket ? .web : .sip, handshakeTimeout: timeout)
            } : nil
        let lower: any ByteStream = tls ?? tcp
        webSocket =
            transport.isWebSocket
            ? WebSocketStream(
                client: lower, host: target.webSocketHost, path: target.path, handshakeTimeout: timeout) : nil
        top = webSocket ?? lower
    }

    /// The server's side of an accepted connection.
    init(server tcp: TCPConnection, transport: SIPTransport, context: TLSServerContext?) {
        tls = transport.isSecure ? context.map { TLSStream(server: tcp, context: $0) } : nil
        let lower: any ByteStream = tls ?? tcp
        webSocket = transport.isWebSocket ? WebSocketStream(server: lower) : nil
        top = webSocket ?? lower
    }
}

extension FlowTarget {
    /// For the Host field (RFC 6455, section 4.1): the domain, and the port where it is not the scheme's own.
    fileprivate var webSocketHost: String {
        let isIPv6 = domain.utf8.contains(UInt8(ascii: ":")) && !domain.hasPrefix("[")
        let host = isIPv6 ? "[\(domain)]" : domain
        return address.port == transport.defaultPort ? host : "\(host):\(address.port)"
    }
}
