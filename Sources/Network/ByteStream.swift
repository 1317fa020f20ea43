import Primitives

/// A two-way stream of bytes on an event loop: TCP, a Unix socket, or a layer above one of them.
///
/// **How TLS and WebSocket slot in.** A `TLSStream` is a `ByteStream` that owns another one, `lower`, and sets the
/// lower one's handlers: `lower.onOpen` starts the handshake, `lower.onData` feeds OpenSSL's read BIO and passes what
/// comes out to its own `onData`, its `send` encrypts into `lower.send`, its `onOpen` follows the end of the handshake,
/// `close` sends close_notify and then calls `lower.close`, and `lower.onClose` (once, with the reason) ends it. A
/// `WebSocketStream` wraps a TCP or TLS stream in the same way. What uses a stream (the SIP stream transport) takes
/// `any ByteStream` and never learns what is below.
///
/// Rules that every implementation keeps:
/// - All members are used on the loop's thread, and handlers are called there.
/// - No handler is called from within a call of the owner (`send`, `close`, …), so an actor is never re-entered.
/// - `onOpen` comes at most once, before any `onData`; `onClose` exactly once, last; then all handlers are let go.
public protocol ByteStream: AnyObject, Sendable {
    /// The loop that the stream lives on.
    var loop: EventLoop { get }
    /// This side's address; nil before the stream is open, and for Unix sockets.
    var localAddress: TransportAddress? { get }
    /// The peer's address; nil for Unix sockets.
    var remoteAddress: TransportAddress? { get }
    /// Called once when bytes can flow.
    var onOpen: (@Sendable () -> Void)? { get set }
    /// Called with what arrived, at most 64 KiB at a time.
    var onData: (@Sendable ([UInt8]) -> Void)? { get set }
    /// Called once when the stream is over: nil for an orderly end, else why it broke or never opened.
    var onClose: (@Sendable (NetworkError?) -> Void)? { get set }
    /// Bytes accepted by `send` that the system has not taken yet.
    var queuedBytes: Int { get }
    /// Queues bytes in order. False when the stream is closed or closing, or when the queue's limit is passed, which
    /// also closes the stream with `.sendQueueFull`.
    @discardableResult func send(_ bytes: [UInt8]) -> Bool
    /// Sends what is queued, then ends the stream in order.
    func close()
    /// Ends the stream at once; what is queued is lost. `onClose` gets the error.
    func abort(_ error: NetworkError?)
}
