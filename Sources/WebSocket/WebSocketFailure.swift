/// Why a WebSocket connection was not made, or ended.
public enum WebSocketFailure: Error, Hashable, Sendable {
    /// The server answered the opening handshake with this HTTP status instead of 101.
    case refused(status: Int, reason: String)
    /// What the peer sent as its opening handshake is none; the text says what is wrong with it.
    case handshake(String)
    /// The handshake did not end in time.
    case timedOut
    /// The peer broke a rule of the protocol or a limit; the connection is closed with the code.
    case violation(String, code: WebSocketCloseCode)
    /// The peer closed the connection with a code that means trouble.
    case closed(code: WebSocketCloseCode, reason: String)
    /// The connection below ended without a close frame.
    case truncated
}

/// A status code of a close frame (RFC 6455, section 7.4).
public struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable {
    /// The number.
    public var rawValue: UInt16

    /// A code of that number.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The purpose is fulfilled.
    public static let normal = WebSocketCloseCode(rawValue: 1000)
}
