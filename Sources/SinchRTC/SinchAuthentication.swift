import Primitives

/// How a client proves to the platform who it is. Printing or dumping one never shows the password.
public enum SinchAuthentication: Sendable, Equatable {
    /// By a registration token, which the delegate supplies (RFC 8898). It leaves this machine only over TLS, and goes to
    /// the platform alone. A platform that asks for a password instead gets none.
    case token
    /// By user name and password (SIP digest, RFC 7616 and RFC 8760), as phones and most SIP services do it. The
    /// password itself is never sent. A platform that asks for a token gets none.
    case digest(username: String, password: String)
    /// Not at all: whoever asks for credentials refuses the registration.
    case none
}

extension SinchAuthentication: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `token`, `digest (USER)` or `none`.
    public var description: String {
        switch self {
        case .token: "token"
        case .digest(let username, _): "digest (\(username))"
        case .none: "none"
        }
    }

    /// The same as the description.
    public var debugDescription: String { description }

    /// A mirror that shows the description only.
    public var customMirror: Mirror { Mirror(self, children: ["authentication": description], displayStyle: .enum) }
}

/// Whether media is encrypted.
public enum SinchMediaSecurity: String, Sendable, CaseIterable {
    /// Media that leaves this machine is encrypted, or the call ends.
    case required
    /// Encrypted where the other side can; as long as this version encrypts nothing, the same as `required`.
    case optional
    /// Never encrypted: everyone on the way can listen. Only for networks that are protected otherwise.
    case none

    /// Whether unencrypted media may go there.
    func allowsPlain(to remote: TransportAddress) -> Bool {
        self == .none || remote.isLoopback
    }
}
