/// A request method (RFC 3261 section 7.1). Methods are case-sensitive: `invite` is not `INVITE`.
public struct SIPMethod: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The method as it stands on the wire.
    public var rawValue: String

    /// Creates a method; that it is a token is checked when a message is parsed or printed.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Creates a method from a literal.
    public init(stringLiteral value: String) {
        self.rawValue = value
    }

    /// The method as it stands on the wire.
    public var description: String { rawValue }

    /// RFC 3261: asks for a session.
    public static let invite: SIPMethod = "INVITE"
    /// RFC 3261: confirms a final response to INVITE.
    public static let ack: SIPMethod = "ACK"
    /// RFC 3261: ends a session.
    public static let bye: SIPMethod = "BYE"
    /// RFC 3261: gives up a pending INVITE.
    public static let cancel: SIPMethod = "CANCEL"
    /// RFC 3261: binds an address to where its user is.
    public static let register: SIPMethod = "REGISTER"
    /// RFC 3261: asks for capabilities; also used as a probe.
    public static let options: SIPMethod = "OPTIONS"
    /// RFC 6086: carries information within a session.
    public static let info: SIPMethod = "INFO"
    /// RFC 3262: acknowledges a reliable provisional response.
    public static let prack: SIPMethod = "PRACK"
    /// RFC 3311: changes a session before it is answered.
    public static let update: SIPMethod = "UPDATE"
    /// RFC 3515: asks the peer to call someone else.
    public static let refer: SIPMethod = "REFER"
    /// RFC 6665: tells a subscriber about an event.
    public static let notify: SIPMethod = "NOTIFY"
    /// RFC 6665: asks to be told about events.
    public static let subscribe: SIPMethod = "SUBSCRIBE"
    /// RFC 3428: carries a text message.
    public static let message: SIPMethod = "MESSAGE"
    /// RFC 3903: publishes event state.
    public static let publish: SIPMethod = "PUBLISH"
}
