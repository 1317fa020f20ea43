/// How much a peer may send.
public struct WebSocketLimits: Hashable, Sendable {
    /// The largest payload of one frame, in bytes.
    public var maximumFrame = 262_144
    /// The largest message, over all its frames, in bytes.
    public var maximumMessage = 262_144
    /// The largest opening handshake, in bytes.
    public var maximumHandshake = 16_384

    /// The defaults.
    public init() {}
}
