/// The settings of a profile, each with its environment variable and flag.
public enum ProfileKey: String, CaseIterable, Sendable {
    case applicationKey
    case applicationSecret
    case applicationSecretFile
    case tokenCommand
    case tokenURL
    case tokenFile
    case environmentHost
    case transport
    case outboundProxy
    case caFile
    case authentication
    case authenticationUser
    case password
    case passwordFile
    case mediaSecurity
    case iceServers
    case capture
    case playback

    /// The environment variable: `SINCHCTL_ENVIRONMENT_HOST`.
    public var environmentVariable: String { "SINCHCTL_" + words.joined(separator: "_").uppercased() }

    /// The flag: `--environment-host`.
    public var flag: String { "--" + words.joined(separator: "-") }

    /// Whether the value is a secret, which only a file may hold: neither an environment variable nor a flag.
    public var isSecret: Bool { secretFileKey != nil }

    /// For a secret, the setting that names a file which holds it.
    public var secretFileKey: ProfileKey? {
        switch self {
        case .applicationSecret: .applicationSecretFile
        case .password: .passwordFile
        default: nil
        }
    }

    /// What the setting is, for help and manual.
    public var summary: String {
        switch self {
        case .applicationKey: "the application key, a UUID"
        case .applicationSecret: "the application secret in base64; tokens are signed here (development)"
        case .applicationSecretFile: "a file that holds the application secret, mode 0600"
        case .tokenCommand: "a program, with arguments, that prints a token"
        case .tokenURL: "an https endpoint that gives a token; {user} in it stands for the user"
        case .tokenFile: "a file that holds a token"
        case .environmentHost: "HOST[:PORT][;transport=…], or 'embedded' for the embedded environment (default)"
        case .transport: "udp, tcp, tls, ws or wss"
        case .outboundProxy: "HOST[:PORT][;transport=…] to connect to"
        case .caFile: "certificate authorities beside the system's, a PEM file"
        case .authentication: "bearer, digest or none"
        case .authenticationUser: "the user name for digest; default: the user of the client"
        case .password: "the password for digest"
        case .passwordFile: "a file that holds the password for digest, mode 0600"
        case .mediaSecurity: "required, optional or none"
        case .iceServers: "STUN and TURN servers"
        case .capture: "audio device that is spoken into"
        case .playback: "audio device that is heard on"
        }
    }

    /// The words of the name in lower case: `tokenURL` is token, url.
    private var words: [String] {
        var words: [String] = []
        var wasUpper = true
        for character in rawValue {
            if character.isUppercase, !wasUpper { words.append("") }
            if words.isEmpty { words.append("") }
            words[words.count - 1] += character.lowercased()
            wasUpper = character.isUppercase
        }
        return words
    }
}

/// What flags say, before it is checked: the values as typed. They beat environment variables and the profile.
public struct Overrides: Sendable, Equatable {
    /// The values by setting.
    public var values: [ProfileKey: String]

    /// Creates overrides.
    public init(_ values: [ProfileKey: String] = [:]) {
        self.values = values
    }

    /// The value of one setting.
    public subscript(key: ProfileKey) -> String? {
        get { values[key] }
        set { values[key] = newValue }
    }
}
