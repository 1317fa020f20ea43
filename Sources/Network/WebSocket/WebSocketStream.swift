import Primitives
import WebSocket

/// WebSocket over another stream: one `send` is one message, one `onData` is one whole message.
public final class WebSocketStream: ByteStream, @unchecked Sendable {
    /// The loop that the stream lives on.
    public let loop: EventLoop
    /// This side's address.
    public var localAddress: TransportAddress? { lower.localAddress }
    /// The peer's address.
    public var remoteAddress: TransportAddress? { lower.remoteAddress }
    /// Called once when the opening handshake is done.
    public var onOpen: (@Sendable () -> Void)?
    /// Called with one whole message.
    public var onData: (@Sendable ([UInt8]) -> Void)?
    /// Called when a pong arrived.
    public var onPong: (@Sendable () -> Void)?
    /// Called once, last.
    public var onClose: (@Sendable (NetworkError?) -> Void)?
    /// Bytes that the stream below has not sent yet.
    public var queuedBytes: Int { lower.queuedBytes }
    /// The code of the peer's close frame; nil before it came, 1005 when it had none.
    public var closeCode: UInt16? { nil }

    private let lower: any ByteStream

    /// Makes a client's side. `host` goes into the Host field: the configured domain, with `:port` when it is not the
    /// scheme's own.
    public init(
        client lower: any ByteStream, host: String, path: String = "/", subprotocol: String = "sip",
        limits: WebSocketLimits = WebSocketLimits(), handshakeTimeout: Duration = .seconds(5)
    ) {
        self.lower = lower
        loop = lower.loop
    }

    /// Makes a server's side. `path` is the only resource that is served; nil: all.
    public init(
        server lower: any ByteStream, path: String? = nil, subprotocol: String = "sip",
        limits: WebSocketLimits = WebSocketLimits(), handshakeTimeout: Duration = .seconds(5)
    ) {
        self.lower = lower
        loop = lower.loop
    }

    /// Sends one message: text when the bytes are valid UTF-8, else binary.
    @discardableResult public func send(_ bytes: [UInt8]) -> Bool { false }
    /// Sends a ping; `onPong` follows when the peer answers.
    public func ping() {}
    /// Ends the stream in order, with code 1000.
    public func close() { lower.close() }
    /// Ends the stream at once.
    public func abort(_ error: NetworkError? = nil) { lower.abort(error) }
}
