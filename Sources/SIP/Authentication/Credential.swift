/// What convinces a server of who we are. Printing, dumping or reflecting one never shows the secret.
public enum Credential: Sendable, Hashable {
    /// A token, sent as it is (RFC 8898): only over TLS or loopback.
    case bearer(token: String)
    /// A user name and a password; the password is never sent (RFC 7616).
    case digest(username: String, password: String)
}

extension Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The kind of credential and the user name.
    public var description: String {
        switch self {
        case .bearer: "bearer(token: ‹hidden›)"
        case .digest(let username, _): "digest(username: \(username), password: ‹hidden›)"
        }
    }

    /// The same as the description.
    public var debugDescription: String { description }

    /// A mirror that shows the description only.
    public var customMirror: Mirror {
        Mirror(self, children: ["credential": description], displayStyle: .enum)
    }
}
