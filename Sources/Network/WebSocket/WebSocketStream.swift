import Primitives
import WebSocket

/// WebSocket (RFC 6455) over another stream, TCP or TLS, as client or server, with one subprotocol (RFC 7118: `sip`).
///
/// One `send` is one message and one `onData` is one whole message, of whatever size the limits allow. For the rest the
/// rules of `ByteStream` hold. Make it right after the stream below, which must not be open yet, and leave that one to
/// it. `onOpen` means that the opening handshake is done. What fails ends the stream with a `NetworkError` whose code is
/// `.webSocket(WebSocketFailure)`, or with the error of the stream below.
public final class WebSocketStream: ByteStream, @unchecked Sendable {
    private enum State {
        /// The stream below is not open yet.
        case connecting
        case handshaking
        case open
        /// Our close frame was sent; the peer's is awaited.
        case closing
        /// Both close frames were exchanged, or need not be; the stream below is ending.
        case ending
        case closed
    }

    private enum Handshake {
        case client(WebSocketClientHandshake)
        case server(WebSocketServerHandshake)
        /// The client's request cannot be made.
        case impossible(WebSocketFailure)
        case done
    }

    /// The loop that the stream lives on.
    public let loop: EventLoop
    /// This side's address; nil before the stream below is open, and for Unix sockets.
    public var localAddress: TransportAddress? { lower.localAddress }
    /// The peer's address; nil for Unix sockets.
    public var remoteAddress: TransportAddress? { lower.remoteAddress }
    /// Called once when the opening handshake is done.
    public var onOpen: (@Sendable () -> Void)?
    /// Called with one whole message, text or binary.
    public var onData: (@Sendable ([UInt8]) -> Void)?
    /// Called when the peer has answered the latest `ping`.
    public var onPong: (@Sendable () -> Void)?
    /// Called once, last: nil when either side ended the stream in order (codes 1000, 1001 or none), else why it broke or
    /// never opened.
    public var onClose: (@Sendable (NetworkError?) -> Void)?
    /// Bytes accepted by `send` that the system has not taken yet.
    public var queuedBytes: Int { earlyBytes + lower.queuedBytes }
    /// The code of the peer's close frame; 1005 when it had none, nil when no such frame came.
    public private(set) var closeCode: UInt16?

    private let lower: any ByteStream
    private let role: WebSocketRole
    private let peerName: String
    private let handshakeTimeout: Duration
    private let closeTimeout: Duration
    private var handshake: Handshake
    private var receiver: WebSocketReceiver
    private var state = State.connecting
    private var timer: TimerHandle?
    /// Messages that were sent before the stream is open.
    private var early: [[UInt8]] = []
    private var earlyBytes = 0
    private var random = SystemRandomNumberGenerator()
    /// The payload of the ping whose answer is awaited.
    private var awaitedPong: [UInt8]?
    /// How the stream ends when the one below has.
    private var result: NetworkError?

    /// How much may be sent before the stream is open.
    private static let earlyLimit = 1 << 20

    /// Makes a client's side over a stream that is not open yet. On the loop only.
    ///
    /// - Parameters:
    ///   - host: for the Host field: the configured domain, with `:port` when it is not the scheme's own (80 or 443).
    ///   - path: the resource, from its slash, with the query if there is one.
    ///   - subprotocol: what the server must speak.
    ///   - handshakeTimeout: how long the opening handshake may take, from the opening of the stream below.
    ///   - closeTimeout: how long the peer's close frame is awaited after ours.
    public convenience init(
        client lower: any ByteStream, host: String, path: String = "/", subprotocol: String = "sip",
        limits: WebSocketLimits = WebSocketLimits(), handshakeTimeout: Duration = .seconds(5),
        closeTimeout: Duration = .seconds(2)
    ) {
        var random = SystemRandomNumberGenerator()
        let nonce = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        let handshake: Handshake
        do {
            handshake = .client(
                try WebSocketClientHandshake(
                    host: host, path: path, subprotocol: subprotocol, nonce: nonce, limits: limits))
        } catch {
            handshake = .impossible(error)
        }
        self.init(
            lower, role: .client, handshake: handshake, peerName: host + path, limits: limits,
            handshakeTimeout: handshakeTimeout, closeTimeout: closeTimeout)
    }

    /// Makes a server's side over a stream that is not open yet. On the loop only.
    ///
    /// - Parameters:
    ///   - path: the only resource that is served, without a query; nil: every one.
    ///   - subprotocol: what clients must offer.
    ///   - handshakeTimeout: how long the opening handshake may take, from the opening of the stream below.
    ///   - closeTimeout: how long the peer's close frame is awaited after ours.
    public convenience init(
        server lower: any ByteStream, path: String? = nil, subprotocol: String = "sip",
        limits: WebSocketLimits = WebSocketLimits(), handshakeTimeout: Duration = .seconds(5),
        closeTimeout: Duration = .seconds(2)
    ) {
        self.init(
            lower, role: .server,
            handshake: .server(WebSocketServerHandshake(path: path, subprotocol: subprotocol, limits: limits)),
            peerName: lower.remoteAddress?.description ?? "the client", limits: limits,
            handshakeTimeout: handshakeTimeout, closeTimeout: closeTimeout)
    }

    private init(
        _ lower: any ByteStream, role: WebSocketRole, handshake: Handshake, peerName: String, limits: WebSocketLimits,
        handshakeTimeout: Duration, closeTimeout: Duration
    ) {
        lower.loop.checkIsolated()
        self.lower = lower
        self.role = role
        self.handshake = handshake
        self.peerName = peerName
        self.handshakeTimeout = handshakeTimeout
        self.closeTimeout = closeTimeout
        loop = lower.loop
        receiver = WebSocketReceiver(role: role, limits: limits)
        // These keep this stream alive until it is closed, whether its owner holds it or not.
        lower.onOpen = { [self] in begin() }
        lower.onData = { [self] in receive($0) }
        lower.onClose = { [self] in lowerClosed($0) }
    }

    // MARK: For the owner

    /// Queues one message: text when the bytes are valid UTF-8, else binary. See `ByteStream`. Before the stream is
    /// open up to 1 MiB is kept.
    @discardableResult
    public func send(_ bytes: [UInt8]) -> Bool {
        loop.checkIsolated()
        switch state {
        case .connecting, .handshaking:
            guard earlyBytes + bytes.count <= Self.earlyLimit else {
                end(
                    NetworkError(
                        .sendQueueFull,
                        "closed the connection to \(peerName): \(earlyBytes) bytes wait for the WebSocket handshake"))
                return false
            }
            early.append(bytes)
            earlyBytes += bytes.count
            return true
        case .open:
            return sendFrame(isValidUTF8(bytes) ? .text : .binary, bytes)
        case .closing, .ending, .closed:
            return false
        }
    }

    /// Sends a ping; `onPong` follows when the peer answers. Does nothing unless the stream is open.
    public func ping() {
        loop.checkIsolated()
        guard state == .open else { return }
        let number = UInt64.random(in: .min ... .max, using: &random)
        let payload = (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) }
        awaitedPong = payload
        sendFrame(.ping, payload)
    }

    /// Sends what is queued and a close frame (1000), then ends the stream: `onClose(nil)` follows when the peer has
    /// answered, or after the close time limit. Before the stream is open, it ends at once.
    public func close() {
        loop.checkIsolated()
        switch state {
        case .connecting, .handshaking:
            end(nil)
        case .open:
            state = .closing
            sendFrame(.close, webSocketClosePayload(.normal))
            timer = loop.schedule(after: closeTimeout) { [weak self] in self?.beginEnding(nil) }
        case .closing, .ending, .closed:
            return
        }
    }

    /// Ends the stream at once, without a close frame; `onClose` gets `error`.
    public func abort(_ error: NetworkError? = nil) {
        loop.checkIsolated()
        guard state != .closed else { return }
        finish(error)
        lower.abort(error)
    }

    // MARK: The stream below

    private func begin() {
        guard state == .connecting else { return }
        state = .handshaking
        timer = loop.schedule(after: handshakeTimeout) { [weak self] in
            guard let self, state == .handshaking else { return }
            end(error(.timedOut))
        }
        switch handshake {
        case .client(let client): lower.send(client.request)
        case .impossible(let failure): end(error(failure))
        case .server, .done: break
        }
    }

    private func receive(_ bytes: [UInt8]) {
        switch state {
        case .handshaking: goOn(bytes)
        case .open, .closing:
            receiver.append(bytes)
            deliver()
        case .connecting, .ending, .closed: return
        }
    }

    private func lowerClosed(_ cause: NetworkError?) {
        switch state {
        case .handshaking where cause == nil || cause?.code == .reset:
            finish(error(.closedInHandshake))
        case .open where cause == nil:
            finish(error(.truncated))
        case .closing:
            // The owner wants the end, and this is one.
            finish(nil)
        case .ending:
            finish(result)
        default:
            finish(cause)
        }
    }

    // MARK: Opening

    private func goOn(_ bytes: [UInt8]) {
        switch handshake {
        case .client(var client):
            do throws(WebSocketFailure) {
                let rest = try client.receive(bytes)
                handshake = .client(client)
                if let rest { becomeOpen(rest) }
            } catch {
                end(self.error(error))
            }
        case .server(var server):
            let outcome = server.receive(bytes)
            handshake = .server(server)
            switch outcome {
            case nil: return
            case .accepted(let response, let rest):
                if lower.send(response) { becomeOpen(rest) }
            case .refused(let response, let failure):
                lower.send(response)
                end(error(failure))
            }
        case .impossible, .done:
            return
        }
    }

    private func becomeOpen(_ rest: [UInt8]) {
        handshake = .done
        timer?.cancel()
        timer = nil
        state = .open
        let messages = early
        (early, earlyBytes) = ([], 0)
        for message in messages where state == .open { _ = send(message) }
        if state == .open { onOpen?() }
        receiver.append(rest)
        deliver()
    }

    // MARK: Frames

    @discardableResult
    private func sendFrame(_ opcode: WebSocketOpcode, _ payload: [UInt8]) -> Bool {
        let mask = role == .client ? WebSocketMask(key: .random(in: .min ... .max, using: &random)) : nil
        return lower.send(webSocketFrame(opcode, payload, mask: mask))
    }

    private func deliver() {
        // Of several pings that came together only the last needs an answer (RFC 6455, section 5.5.3).
        var lastPing: [UInt8]?
        defer { if let lastPing, state == .open { sendFrame(.pong, lastPing) } }
        do throws(WebSocketFailure) {
            while state == .open || state == .closing, let event = try receiver.next() {
                switch event {
                case .message(let bytes, _):
                    if state == .open { onData?(bytes) }
                case .ping(let payload):
                    lastPing = payload
                case .pong(let payload):
                    guard payload == awaitedPong else { continue }
                    awaitedPong = nil
                    if state == .open { onPong?() }
                case .close(let code, let reason):
                    peerCloses(code, reason)
                }
            }
        } catch {
            guard state == .open else {
                beginEnding(nil)
                return
            }
            if case .violation(_, let code) = error { sendFrame(.close, webSocketClosePayload(code)) }
            end(self.error(error))
        }
    }

    private func peerCloses(_ code: WebSocketCloseCode, _ reason: String) {
        closeCode = code.rawValue
        guard state == .open else {
            beginEnding(nil)
            return
        }
        sendFrame(.close, webSocketClosePayload(code))
        beginEnding(code.isOrderly ? nil : error(.closed(code: code, reason: reason)))
    }

    // MARK: The end

    /// No more frames: the stream below sends what it has, and then ends both.
    private func beginEnding(_ error: NetworkError?) {
        guard state == .open || state == .closing else { return }
        timer?.cancel()
        timer = nil
        state = .ending
        result = error
        lower.close()
    }

    /// Ends this stream now and lets the one below send what it has, such as a close frame.
    private func end(_ error: NetworkError?) {
        finish(error)
        lower.close()
    }

    /// Ends the stream. Runs at most once; the owner hears of it after the current call returned.
    private func finish(_ error: NetworkError?) {
        guard state != .closed else { return }
        state = .closed
        timer?.cancel()
        timer = nil
        (early, earlyBytes) = ([], 0)
        (lower.onOpen, lower.onData, lower.onClose) = (nil, nil, nil)
        loop.execute { [self] in
            let handler = onClose
            (onOpen, onData, onPong, onClose) = (nil, nil, nil, nil)
            handler?(error)
        }
    }

    private func error(_ failure: WebSocketFailure) -> NetworkError {
        NetworkError(.webSocket(failure), "WebSocket with \(peerName): \(failure.explanation)")
    }
}
