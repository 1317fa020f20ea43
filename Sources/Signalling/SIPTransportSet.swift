import Network
import Primitives
import SIP

/// The sockets of one SIP element: UDP and TCP, listening and connecting, messages in and out.
///
/// The one place where SIP messages meet sockets. A new transport (TLS, WebSocket) is a new way to make a
/// `ByteStream`; framing, limits and flow identity stay here. Confined to its event loop: every method must be called
/// on it, and every handler is called on it.
public final class SIPTransportSet: @unchecked Sendable {
    // @unchecked: all state is touched on `loop` only, which each entry point checks.

    /// What happens on the sockets.
    public struct Handlers: Sendable {
        /// A whole, well-formed message arrived.
        public var onMessage: @Sendable (SIPMessage, SIPFlow) -> Void
        /// Bytes arrived that are no SIP message. A stream that cannot be cut into messages any more is closed after this
        /// handler returned, so that an answer to them still goes out.
        public var onMalformed: @Sendable ([UInt8], SIPParseError, SIPFlow) -> Void
        /// A flow broke, or a datagram was answered by ICMP.
        public var onFlowFailed: @Sendable (SIPFlow, NetworkError) -> Void

        /// Creates the handlers.
        public init(
            onMessage: @escaping @Sendable (SIPMessage, SIPFlow) -> Void,
            onMalformed: @escaping @Sendable ([UInt8], SIPParseError, SIPFlow) -> Void = { _, _, _ in },
            onFlowFailed: @escaping @Sendable (SIPFlow, NetworkError) -> Void
        ) {
            self.onMessage = onMessage
            self.onMalformed = onMalformed
            self.onFlowFailed = onFlowFailed
        }
    }

    /// A message that has begun must be whole within this time: one byte a second is no way to talk.
    public static let partialMessageTimeout: Duration = .seconds(10)

    private let loop: EventLoop
    private let limits: SIPLimits
    private let partialMessageTimeout: Duration
    private let handlers: Handlers
    private var udp: UDPSocket?
    private var listener: TCPListener?
    private var streams: [SIPFlow: SIPStream] = [:]
    private var nextConnection: UInt64 = 1
    /// Messages sent and received and bytes dropped, for status reports.
    public private(set) var counters = Counters()

    /// What passed through the sockets.
    public struct Counters: Sendable {
        /// Messages received.
        public var received: UInt64 = 0
        /// Messages sent.
        public var sent: UInt64 = 0
        /// Datagrams and streams that were not SIP.
        public var malformed: UInt64 = 0
        /// Messages of our own that the printer refused (a header with CR or LF, say).
        public var unprintable: UInt64 = 0
    }

    /// Creates a set without sockets.
    public init(
        loop: EventLoop, limits: SIPLimits = .default,
        partialMessageTimeout: Duration = SIPTransportSet.partialMessageTimeout, handlers: Handlers
    ) {
        self.loop = loop
        self.limits = limits
        self.partialMessageTimeout = partialMessageTimeout
        self.handlers = handlers
    }

    /// Binds the UDP socket; port 0 takes a free one.
    ///
    /// - Returns: the address that was got.
    public func bindUDP(_ address: TransportAddress) throws(NetworkError) -> TransportAddress {
        let socket = try UDPSocket(loop: loop, bind: address)
        socket.onDatagram = { [weak self] bytes, peer in
            self?.receiveDatagram(bytes, from: peer)
        }
        socket.onError = { [weak self] error, peer in
            guard let peer else { return }
            self?.handlers.onFlowFailed(SIPFlow(transport: .udp, remote: peer, connection: 0), error)
        }
        udp?.close()
        udp = socket
        return socket.localAddress
    }

    /// Listens for TCP connections; port 0 takes a free one.
    ///
    /// - Returns: the address that was got.
    public func listenTCP(_ address: TransportAddress, maximumConnections: Int = 1_024) throws(NetworkError)
        -> TransportAddress
    {
        var options = TCPListener.Options()
        options.maximumConnections = maximumConnections
        options.maximumConnectionsPerHost = maximumConnections
        // RFC 5626 clients ping every two minutes; who is silent for an hour is gone.
        options.connection.idleTimeout = .seconds(3_600)
        let listener = try TCPListener(loop: loop, bind: address, options: options)
        listener.onConnection = { [weak self] connection in
            self?.adopt(connection, completion: nil)
        }
        self.listener?.close()
        self.listener = listener
        return listener.localAddress
    }

    /// Opens a flow to `remote`; for UDP that is a matter of naming it.
    ///
    /// - Parameter completion: called once, on the loop, possibly before this method returns; fails when the set is closed.
    public func connect(
        _ transport: SIPTransport, to remote: TransportAddress, timeout: Duration = .seconds(4),
        completion: @escaping @Sendable (Result<RegisteredFlow, NetworkError>) -> Void
    ) {
        switch transport {
        case .udp:
            completion(Result { () throws(NetworkError) in try openUDP(toward: remote) })
        case .tcp:
            adopt(TCPConnection.connect(loop: loop, to: remote, timeout: timeout), completion: completion)
        case .tls, .ws, .wss:
            completion(
                .failure(
                    NetworkError(
                        .invalidAddress,
                        "transport \(transport.rawValue) is not available in this version; use udp or tcp")))
        }
    }

    private func openUDP(toward remote: TransportAddress) throws(NetworkError) -> RegisteredFlow {
        let local: TransportAddress
        if let udp {
            local = udp.localAddress
        } else {
            // The address that the kernel would use toward the peer is the one that the peer can answer to.
            let source = try LocalAddresses.localAddress(toward: remote)
            local = try bindUDP(TransportAddress(host: source.host, port: 0))
        }
        return RegisteredFlow(flow: SIPFlow(transport: .udp, remote: remote, connection: 0), local: local)
    }

    /// Sends a message over a flow; a flow that is gone is reported by `onFlowFailed`, after this method returns.
    public func send(_ message: SIPMessage, over flow: SIPFlow) {
        let bytes: [UInt8]
        do {
            bytes = try message.encoded()
        } catch {
            // Every field that a user can set is checked before it comes here; what is left is a fault of ours.
            counters.unprintable &+= 1
            return
        }
        counters.sent &+= 1
        if flow.transport == .udp, let udp {
            udp.send(bytes, to: flow.remote)
        } else if let stream = streams[flow] {
            stream.connection.send(bytes)
        } else {
            let handlers = handlers
            loop.execute {
                handlers.onFlowFailed(flow, NetworkError(.closed, "the connection is closed"))
            }
        }
    }

    /// Closes one stream flow without reporting it.
    public func close(_ flow: SIPFlow) {
        guard let stream = streams.removeValue(forKey: flow) else { return }
        discard(stream)
    }

    /// Closes every socket without reporting it.
    public func close() {
        udp?.close()
        udp = nil
        listener?.close()
        listener = nil
        let all = streams.values
        streams = [:]
        all.forEach(discard)
    }

    // MARK: Inside

    private func discard(_ stream: SIPStream) {
        stream.stopWatching()
        stream.connection.close()
        if let completion = stream.takeCompletion() {
            loop.execute { completion(.failure(NetworkError(.closed, "the transports were closed"))) }
        }
    }

    private func receiveDatagram(_ bytes: [UInt8], from peer: TransportAddress) {
        let flow = SIPFlow(transport: .udp, remote: peer, connection: 0)
        // Keep-alives (RFC 5626, 3.5) and the like: nothing but white space.
        if bytes.allSatisfy({ $0 == 0x0D || $0 == 0x0A || $0 == 0 }) { return }
        deliver(bytes, from: flow)
    }

    private func deliver(_ bytes: [UInt8], from flow: SIPFlow) {
        do {
            let message = try SIPMessage.parse(bytes, limits: limits)
            counters.received &+= 1
            handlers.onMessage(message, flow)
        } catch {
            counters.malformed &+= 1
            handlers.onMalformed(bytes, error, flow)
        }
    }

    private func adopt(
        _ connection: TCPConnection,
        completion: (@Sendable (Result<RegisteredFlow, NetworkError>) -> Void)?
    ) {
        let remote = connection.remoteAddress ?? TransportAddress(host: "0.0.0.0", port: 0)
        let flow = SIPFlow(transport: .tcp, remote: remote, connection: nextConnection)
        nextConnection &+= 1
        let stream = SIPStream(connection: connection, limits: limits, completion: completion)
        streams[flow] = stream
        connection.onOpen = { [weak stream] in
            guard let stream else { return }
            let local = stream.connection.localAddress ?? TransportAddress(host: "0.0.0.0", port: 0)
            stream.takeCompletion()?(.success(RegisteredFlow(flow: flow, local: local)))
        }
        connection.onData = { [weak self, weak stream] bytes in
            guard let self, let stream else { return }
            self.receiveStream(bytes, on: stream, flow: flow)
        }
        connection.onClose = { [weak self] error in
            guard let self, let stream = self.streams.removeValue(forKey: flow) else { return }
            stream.stopWatching()
            let cause = error ?? NetworkError(.closed, "the other side closed the connection")
            if let completion = stream.takeCompletion() {
                completion(.failure(cause))
            } else {
                self.handlers.onFlowFailed(flow, cause)
            }
        }
    }

    private func receiveStream(_ bytes: [UInt8], on stream: SIPStream, flow: SIPFlow) {
        // A closed stream may still bring what was on its way.
        guard streams[flow] === stream else { return }
        stream.framer.receive(bytes)
        var isProgressing = false
        do {
            while streams[flow] === stream, let frame = try stream.framer.next() {
                isProgressing = true
                switch frame {
                case .message(let message): deliver(message, from: flow)
                case .keepAlivePing: stream.connection.send([0x0D, 0x0A])
                case .keepAlivePong: break
                }
            }
            if streams[flow] === stream {
                stream.watchPartialMessage(on: loop, within: partialMessageTimeout, isNew: isProgressing)
            }
        } catch {
            counters.malformed &+= 1
            handlers.onMalformed(bytes, error, flow)
            close(flow)
            handlers.onFlowFailed(
                flow, NetworkError(.closed, "what arrived is not SIP: \(error.reason)"))
        }
    }
}

/// One stream connection and what has arrived of its next message.
private final class SIPStream: @unchecked Sendable {
    // @unchecked: owned by its transport set and touched on the same loop.
    let connection: TCPConnection
    var framer: SIPStreamFramer
    private var timer: TimerHandle?
    private var completion: (@Sendable (Result<RegisteredFlow, NetworkError>) -> Void)?

    init(
        connection: TCPConnection, limits: SIPLimits,
        completion: (@Sendable (Result<RegisteredFlow, NetworkError>) -> Void)?
    ) {
        self.connection = connection
        self.completion = completion
        framer = SIPStreamFramer(limits: limits)
    }

    /// Whom to tell that the connection is there or will not be; once.
    func takeCompletion() -> (@Sendable (Result<RegisteredFlow, NetworkError>) -> Void)? {
        defer { completion = nil }
        return completion
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
