import Token

/// How a client proves who it is.
public enum AuthenticationScheme: String, CaseIterable, Sendable {
    /// A registration token as bearer token (RFC 8898).
    case bearer
    /// SIP digest (RFC 7616): user name and password.
    case digest
    /// Not at all.
    case none
}

/// Whether media is encrypted.
public enum MediaSecurity: String, CaseIterable, Sendable {
    /// Calls without encrypted media fail.
    case required
    /// Encrypted where the other side can.
    case optional
    /// Never encrypted.
    case none
}

/// A text that is never printed: a password or a TURN credential.
public struct ConcealedText: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    private let text: String

    /// Conceals a text.
    public init(_ text: String) {
        self.text = text
    }

    /// The text, for the one place that needs it.
    public func revealed() -> String { text }

    /// Says that there is a text.
    public var description: String { "(secret, not shown)" }
    /// Says that there is a text.
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)](), displayStyle: .struct) }
}

/// A STUN or TURN server.
public struct ICEServer: Equatable, Sendable {
    /// `stun:`, `stuns:`, `turn:` or `turns:` URIs (RFC 7064, RFC 7065).
    public var urls: [String]
    /// The user name, for TURN.
    public var username: String?
    /// The password, for TURN.
    public var credential: ConcealedText?

    /// Creates a server.
    public init(urls: [String], username: String? = nil, credential: ConcealedText? = nil) {
        self.urls = urls
        self.username = username
        self.credential = credential
    }
}

/// The settings in effect: of one profile, environment variables and flags together. Absent means the default.
public struct Profile: Equatable, Sendable {
    /// The profile's name.
    public var name: String
    /// The application key, a UUID.
    public var applicationKey: String?
    /// The application secret: tokens are signed here. For development.
    public var applicationSecret: ApplicationSecret?
    /// The file that the secret was read from, when it was.
    public var applicationSecretFile: String?
    /// The program, with arguments, that prints a token.
    public var tokenCommand: [String]?
    /// The endpoint that gives a token.
    public var tokenURL: String?
    /// The file that holds a token.
    public var tokenFile: String?
    /// Where calls go; nil for the embedded environment.
    public var environmentHost: EnvironmentHost?
    /// The transport of `transport`; `effectiveTransport` is what counts.
    public var transport: SignallingTransport?
    /// Where to connect, when DNS for the host does not say.
    public var outboundProxy: EnvironmentHost?
    /// Certificate authorities beside the system's, a PEM file.
    public var caFile: String?
    /// How the client proves who it is.
    public var authentication: AuthenticationScheme?
    /// The user name for digest; nil for the client's user, or the application key where its secret is the password.
    public var authenticationUser: String?
    /// The password for digest.
    public var password: ConcealedText?
    /// The file that the password was read from, when it was.
    public var passwordFile: String?
    /// Whether media is encrypted.
    public var mediaSecurity: MediaSecurity?
    /// STUN and TURN servers.
    public var iceServers: [ICEServer]?
    /// The device that is spoken into, an audio device name.
    public var capture: String?
    /// The device that is heard on, an audio device name.
    public var playback: String?

    /// Creates a profile in which everything has its default.
    public init(name: String = "default") {
        self.name = name
    }

    /// Whether calls go to the embedded environment.
    public var usesEmbeddedEnvironment: Bool { environmentHost == nil }

    /// The transport in effect: what follows the host counts before the separate setting. Nil leaves it to DNS.
    public var effectiveTransport: SignallingTransport? { environmentHost?.transport ?? transport }

    /// User name and password for digest: those of an account, else the application's key and secret as base64. Nil when
    /// there is no password.
    public func digestCredentials(user: String) -> (username: String, password: ConcealedText)? {
        if let password { return (authenticationUser ?? user, password) }
        guard let applicationKey, let applicationSecret else { return nil }
        return (authenticationUser ?? applicationKey, ConcealedText(applicationSecret.revealed()))
    }

    /// Where a token comes from.
    public enum TokenSource: Equatable, Sendable {
        /// A program prints it.
        case command([String])
        /// An endpoint gives it.
        case url(String)
        /// A file holds it.
        case file(String)
        /// It is signed here.
        case signed(applicationKey: String, applicationSecret: ApplicationSecret)
    }

    /// Where tokens come from: a command before a URL before a file before signing here, so that adding the production
    /// way to a development profile is enough.
    public var tokenSource: TokenSource? {
        if let tokenCommand { return .command(tokenCommand) }
        if let tokenURL { return .url(tokenURL) }
        if let tokenFile { return .file(tokenFile) }
        if let applicationKey, let applicationSecret {
            return .signed(applicationKey: applicationKey, applicationSecret: applicationSecret)
        }
        return nil
    }
}
