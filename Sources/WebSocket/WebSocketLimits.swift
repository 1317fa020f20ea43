/// How much a peer may send.
public struct WebSocketLimits: Hashable, Sendable {
    /// The largest payload of one frame, in bytes.
    public var maximumFrame: Int
    /// The largest message, over all its frames, in bytes.
    public var maximumMessage: Int
    /// The largest opening handshake, in bytes.
    public var maximumHandshake: Int

    /// Limits that any SIP message stays far below.
    public init(maximumFrame: Int = 262_144, maximumMessage: Int = 262_144, maximumHandshake: Int = 16_384) {
        self.maximumFrame = maximumFrame
        self.maximumMessage = maximumMessage
        self.maximumHandshake = maximumHandshake
    }
}
