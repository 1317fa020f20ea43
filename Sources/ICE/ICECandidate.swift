import STUN

/// A transport address at which a side may be reached (RFC 8445, section 2.1), as an SDP carries it (RFC 8839, 5.1).
public struct ICECandidate: Hashable, Sendable {
    /// How the address was found.
    public enum Kind: String, Sendable {
        /// An address of the machine.
        case host
        /// What a STUN server saw.
        case serverReflexive = "srflx"
        /// What the peer saw in a check.
        case peerReflexive = "prflx"
        /// An address of a TURN server.
        case relayed = "relay"

        /// RFC 8445, section 5.1.2.2.
        var typePreference: UInt32 {
            switch self {
            case .host: 126
            case .peerReflexive: 110
            case .serverReflexive: 100
            case .relayed: 0
            }
        }
    }

    /// Candidates with the same foundation are likely to work alike.
    public var foundation: String
    /// 1: RTP, and RTCP with it.
    public var component: UInt16
    /// `udp`; others are kept and never used.
    public var transport: String
    /// Higher is better.
    public var priority: UInt32
    /// The numeric host, or a name that ends with `.local` and is to be resolved by multicast DNS (RFC 8828, 3.1.1).
    public var host: String
    /// The port.
    public var port: UInt16
    /// How it was found.
    public var kind: Kind
    /// The address behind it: for diagnosis only.
    public var related: STUNAddress?

    /// Creates a candidate for RTP over UDP.
    public init(
        kind: Kind, address: STUNAddress, foundation: String, priority: UInt32, related: STUNAddress? = nil
    ) {
        self.kind = kind
        self.foundation = foundation
        self.priority = priority
        self.related = related
        component = 1
        transport = "udp"
        host = address.host
        port = address.port
    }

    /// The address; nil while it is a name.
    public var address: STUNAddress? { STUNAddress(host: host, port: port) }

    /// The priority of a candidate of component 1 (RFC 8445, section 5.1.2.1).
    public static func priority(_ kind: Kind, localPreference: UInt16) -> UInt32 {
        kind.typePreference << 24 | UInt32(localPreference) << 8 | 255
    }

    /// Reads the value of an `a=candidate` line; nil when it is not of that form. Extensions are passed over.
    public init?(attribute: String) {
        let fields = attribute.split(separator: " ", maxSplits: 64)
        guard fields.count >= 8, fields[6] == "typ",
            (1...32).contains(fields[0].utf8.count), fields[0].utf8.allSatisfy(Self.isICECharacter),
            let component = UInt16(fields[1]), (1...256).contains(component),
            let priority = UInt32(fields[3]), (1...0x7FFF_FFFF).contains(priority),
            fields[4].utf8.count <= 253, let port = UInt16(fields[5]), let kind = Kind(rawValue: String(fields[7]))
        else { return nil }
        self.component = component
        self.priority = priority
        self.port = port
        self.kind = kind
        foundation = String(fields[0])
        transport = fields[2].lowercased()
        host = String(fields[4])
        var relatedHost: String?
        var index = 8
        while index + 1 < fields.count {
            switch fields[index] {
            case "raddr": relatedHost = String(fields[index + 1])
            case "rport":
                related = relatedHost.flatMap { host in
                    UInt16(fields[index + 1]).flatMap { STUNAddress(host: host, port: $0) }
                }
            default: break
            }
            index += 2
        }
    }

    /// The value of an `a=candidate` line.
    public var attribute: String {
        var text = "\(foundation) \(component) \(transport) \(priority) \(host) \(port) typ \(kind.rawValue)"
        if let related { text += " raddr \(related.host) rport \(related.port)" }
        return text
    }

    static func isICECharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2F: true
        default: false
        }
    }
}

/// What authenticates the checks of one side (RFC 8445, section 5.3). The password is never printed.
public struct ICECredentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The user name fragment, 4 to 256 characters.
    public let fragment: String
    /// The password, 22 to 256 characters.
    public let password: String

    /// Takes credentials; nil when they are not of the form that RFC 8839, section 5.4, wants.
    public init?(fragment: String, password: String) {
        guard (4...256).contains(fragment.utf8.count), (22...256).contains(password.utf8.count),
            fragment.utf8.allSatisfy(ICECandidate.isICECharacter),
            password.utf8.allSatisfy(ICECandidate.isICECharacter)
        else { return nil }
        self.fragment = fragment
        self.password = password
    }

    /// Draws credentials: 48 and 144 random bits.
    public init(using random: inout some RandomNumberGenerator) {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        func text(_ count: Int) -> String {
            let bytes = (0..<count).map { _ in alphabet[Int(random.next() & 63)] }
            return String(decoding: bytes, as: UTF8.self)
        }
        fragment = text(8)
        password = text(24)
    }

    /// The fragment.
    public var description: String { "ICE credentials of \(fragment)" }
    /// A mirror without the password.
    public var customMirror: Mirror { Mirror(self, children: ["fragment": fragment], displayStyle: .struct) }
}
