import Primitives

/// TLS 1.2 or 1.3 over another stream, as client or server, by OpenSSL. See `ByteStream` for the rules about handlers.
///
/// Make it right after the stream below, which must not be open yet, and leave that one to it: its handlers are set
/// here, and it is closed with this one. `onOpen` means that the handshake is done and, for a client, that the server's
/// certificate is trusted and for `serverName`. Whatever fails ends the stream with a `NetworkError` whose code is
/// `.tls(TLSFailure)`, or with the error of the stream below.
public final class TLSStream: ByteStream, @unchecked Sendable {
    private enum State {
        /// The stream below is not open yet.
        case connecting
        case handshaking
        case open
        /// Our closing message is on its way.
        case closing
        case closed
    }

    /// The loop that the stream lives on.
    public let loop: EventLoop
    /// This side's address; nil before the stream below is open, and for Unix sockets.
    public var localAddress: TransportAddress? { lower.localAddress }
    /// The peer's address; nil for Unix sockets.
    public var remoteAddress: TransportAddress? { lower.remoteAddress }
    /// Called once when the handshake is done and the server is verified.
    public var onOpen: (@Sendable () -> Void)?
    /// Called with what arrived, decrypted, at most 64 KiB at a time.
    public var onData: (@Sendable ([UInt8]) -> Void)?
    /// Called once, last: nil when either side ended the stream in order, else why it broke or never opened.
    public var onClose: (@Sendable (NetworkError?) -> Void)?
    /// Bytes accepted by `send` that the system has not taken yet, as they travel: encrypted.
    public var queuedBytes: Int { early.byteCount + lower.queuedBytes }
    /// The version and cipher in use, such as "TLSv1.3 TLS_AES_256_GCM_SHA384"; nil before the stream is open.
    public var cipher: String? { state == .open ? session?.cipher : nil }

    private let lower: any ByteStream
    /// Nil when OpenSSL could not make one.
    private let session: TLSSession?
    /// What error messages call the peer.
    private let peerName: String
    private let isClient: Bool
    private let handshakeTimeout: Duration
    private var state = State.connecting
    private var timer: TimerHandle?
    /// What was sent before the stream is open.
    private var early = SendQueue()

    /// How much may be sent before the stream is open.
    private static let earlyLimit = 1 << 20

    /// Makes a client's side over a stream that is not open yet. On the loop only.
    ///
    /// - Parameters:
    ///   - context: the trusted authorities.
    ///   - serverName: the configured domain, never the address that it was resolved to: it goes into the Server Name
    ///     Indication and must be in the certificate. An IP literal must be among the certificate's IP addresses.
    ///   - nameRule: how the certificate's names are compared.
    ///   - handshakeTimeout: how long the handshake may take, from the opening of the stream below.
    public convenience init(
        client lower: any ByteStream, context: TLSClientContext, serverName: String, nameRule: TLSNameRule = .sip,
        handshakeTimeout: Duration = .seconds(5)
    ) {
        let name = ExpectedServerName(serverName, rule: nameRule)
        self.init(
            lower, session: TLSSession(client: context, expecting: name), peerName: serverName, isClient: true,
            handshakeTimeout: handshakeTimeout)
    }

    /// Makes a server's side over a stream that is not open yet. On the loop only.
    ///
    /// - Parameters:
    ///   - context: certificate and key.
    ///   - handshakeTimeout: how long the handshake may take, from the opening of the stream below.
    public convenience init(
        server lower: any ByteStream, context: TLSServerContext, handshakeTimeout: Duration = .seconds(5)
    ) {
        self.init(
            lower, session: TLSSession(server: context), peerName: lower.remoteAddress?.description ?? "the client",
            isClient: false, handshakeTimeout: handshakeTimeout)
    }

    private init(
        _ lower: any ByteStream, session: TLSSession?, peerName: String, isClient: Bool, handshakeTimeout: Duration
    ) {
        lower.loop.checkIsolated()
        self.lower = lower
        self.session = session
        self.peerName = peerName
        self.isClient = isClient
        self.handshakeTimeout = handshakeTimeout
        loop = lower.loop
        // These keep this stream alive until it is closed, whether its owner holds it or not.
        lower.onOpen = { [self] in begin() }
        lower.onData = { [self] in receive($0) }
        lower.onClose = { [self] in lowerClosed($0) }
    }

    // MARK: For the owner

    /// Encrypts and queues bytes in order; see `ByteStream`. Before the stream is open up to 1 MiB is kept.
    @discardableResult
    public func send(_ bytes: [UInt8]) -> Bool {
        loop.checkIsolated()
        switch state {
        case .connecting, .handshaking:
            guard early.byteCount + bytes.count <= Self.earlyLimit else {
                end(
                    NetworkError(
                        .sendQueueFull,
                        "closed the connection to \(peerName): \(early.byteCount) bytes wait for the TLS handshake"))
                return false
            }
            early.append(bytes)
            return true
        case .open:
            return bytes.withUnsafeBytes { encrypt($0) }
        case .closing, .closed:
            return false
        }
    }

    /// Sends what is queued and TLS's closing message, then ends the stream: `onClose(nil)` follows. Before the stream
    /// is open, it ends at once.
    public func close() {
        loop.checkIsolated()
        switch state {
        case .connecting, .handshaking:
            end(nil)
        case .open:
            beginClosing()
        case .closing, .closed:
            return
        }
    }

    /// Ends the stream at once, without a closing message; `onClose` gets `error`.
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
            end(error(.timedOut, detail: "after \(handshakeTimeout)"))
        }
        goOn()
    }

    private func receive(_ bytes: [UInt8]) {
        guard state == .handshaking || state == .open, let session else { return }
        session.feed(bytes)
        if state == .handshaking { goOn() }
        if state == .open { decrypt(session) }
    }

    private func lowerClosed(_ cause: NetworkError?) {
        switch state {
        case .handshaking where cause == nil || cause?.code == .reset:
            finish(error(.closedInHandshake))
        case .open where cause == nil:
            finish(error(.truncated))
        default:
            finish(cause)
        }
    }

    // MARK: Handshake

    private func goOn() {
        guard let session else {
            end(NetworkError(.tls(.handshake("out of memory")), "cannot start TLS with \(peerName): out of memory"))
            return
        }
        let progress = session.handshake()
        // Also after a failure: the alert tells the peer why.
        let output = session.takeOutput()
        if !output.isEmpty, !lower.send(output) { return }
        switch progress {
        case .waiting: break
        case .done: becomeOpen()
        case .failed(let failure, let detail): end(error(failure, detail: detail))
        }
    }

    private func becomeOpen() {
        timer?.cancel()
        timer = nil
        state = .open
        while !early.isEmpty, state == .open {
            let count = early.withFirstBytes { bytes in
                _ = encrypt(bytes)
                return bytes.count
            }
            early.consume(count)
        }
        if state == .open { onOpen?() }
    }

    // MARK: Data

    /// Whole records of one read of the connection, decrypted and passed on together.
    private func decrypt(_ session: TLSSession) {
        let buffer = loop.scratch
        while state == .open {
            var filled = 0
            var result = TLSSession.ReadResult.waiting
            while filled < buffer.count {
                result = session.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
                guard case .bytes(let count) = result else { break }
                filled += count
            }
            // Reading may have answered: a key update asks for one.
            let output = session.takeOutput()
            if !output.isEmpty, !lower.send(output) { return }
            if filled > 0 { onData?([UInt8](UnsafeRawBufferPointer(rebasing: buffer[..<filled]))) }
            guard state == .open else { return }
            switch result {
            case .bytes: continue
            case .waiting: return
            case .ended: beginClosing()
            case .failed(let failure): end(error(failure))
            }
        }
    }

    /// One record after the other, so that the memory needed does not grow with the message.
    private func encrypt(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let session else { return false }
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(16_384)
            rest = rest.dropFirst(piece.count)
            if let failure = session.write(UnsafeRawBufferPointer(rebasing: piece)) {
                end(error(failure))
                return false
            }
            // When it refuses, it is closed or about to say why.
            guard lower.send(session.takeOutput()) else { return false }
        }
        return true
    }

    // MARK: The end

    /// Sends the closing message; the stream below sends it, and then ends both.
    private func beginClosing() {
        state = .closing
        session?.shutDown()
        if let output = session?.takeOutput(), !output.isEmpty { lower.send(output) }
        lower.close()
    }

    /// Ends this stream now and lets the one below send what it has, such as an alert.
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
        early = SendQueue()
        (lower.onOpen, lower.onData, lower.onClose) = (nil, nil, nil)
        loop.execute { [self] in
            let handler = onClose
            (onOpen, onData, onClose) = (nil, nil, nil)
            handler?(error)
        }
    }

    private func error(_ failure: TLSFailure, detail: String? = nil) -> NetworkError {
        let words = failure.explanation + (detail.map { " (\($0))" } ?? "")
        return NetworkError(.tls(failure), "TLS with \(peerName): \(words)")
    }
}
