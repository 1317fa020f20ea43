/// A status code of a close frame (RFC 6455, section 7.4).
public struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The number.
    public var rawValue: UInt16

    /// A code of that number.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The purpose is fulfilled.
    public static let normal = WebSocketCloseCode(rawValue: 1000)
    /// The server goes down.
    public static let goingAway = WebSocketCloseCode(rawValue: 1001)
    /// A rule of the protocol was broken.
    public static let protocolError = WebSocketCloseCode(rawValue: 1002)
    /// Stands for a close frame without a code; never sent.
    public static let none = WebSocketCloseCode(rawValue: 1005)
    /// Text that is not UTF-8.
    public static let invalidText = WebSocketCloseCode(rawValue: 1007)
    /// The message is larger than what is taken.
    public static let tooLarge = WebSocketCloseCode(rawValue: 1009)

    /// Whether the code may be in a close frame: those of the protocol (1004 to 1006 and 1015 are never sent), of
    /// registered libraries and applications (3000 to 3999), and private ones (4000 to 4999).
    public var maySend: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// Whether a peer that sends it ends the connection in order.
    public var isOrderly: Bool { self == .normal || self == .goingAway || self == .none }

    /// The number, with its meaning where it has a known one.
    public var description: String {
        let meaning: String? =
            switch rawValue {
            case 1000: "normal"
            case 1001: "going away"
            case 1002: "protocol error"
            case 1003: "unsupported data"
            case 1005: "no code"
            case 1007: "invalid text"
            case 1008: "policy violation"
            case 1009: "message too big"
            case 1010: "extension missing"
            case 1011: "internal error"
            case 1012: "service restart"
            case 1013: "try again later"
            case 1014: "bad gateway"
            default: nil
            }
        return meaning.map { "\(rawValue) \($0)" } ?? "\(rawValue)"
    }
}
