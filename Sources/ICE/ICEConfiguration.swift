import Primitives
import STUN

/// What an ICE agent needs to know beforehand.
public struct ICEConfiguration: Sendable {
    /// The pause between two checks (RFC 8445, section 14.2).
    public var pacing: Duration = .milliseconds(50)
    /// How long gathering may take before it goes on with what there is.
    public var gatheringLimit: Duration = .seconds(1)
    /// How long the controlling side looks for a better pair after the first valid one.
    public var nominationDelay: Duration = .milliseconds(200)
    /// How long checks may go on without any valid pair.
    public var checkLimit: Duration = .seconds(20)
    /// Consent checks are this far apart, give or take a fifth (RFC 7675, section 5.1).
    public var consentInterval: Duration = .seconds(5)
    /// Without an answer for this long nothing may be sent any more.
    public var consentLimit: Duration = .seconds(30)
    /// Which addresses of the peer are checked.
    public var policy = ICEAddressPolicy()
    /// Candidates of the peer that are looked at; further ones are passed over.
    public var maximumRemoteCandidates = 32
    /// Pairs that are checked at all (RFC 8445, section 6.1.2.5).
    public var maximumPairs = 100

    /// The defaults.
    public init() {}
}

/// Which addresses a peer may make us send checks to. What the peer names is not to be trusted: a check is a packet to
/// an address of its choice.
public struct ICEAddressPolicy: Sendable {
    /// Addresses of this machine itself: for tests and peers on it.
    public var allowsLoopback = false
    /// 169.254/16 and fe80::/10, where cloud machines have their metadata service.
    public var allowsLinkLocal = false

    /// Allows neither.
    public init() {}

    /// Whether a check may be sent there.
    public func allows(_ address: STUNAddress) -> Bool {
        guard address.port != 0 else { return false }
        var bytes = address.bytes
        if bytes.count == 16, bytes.prefix(10).allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
            bytes = Array(bytes[12...])
        }
        if bytes.count == 4 {
            switch (bytes[0], bytes[1]) {
            case (0, _), (224..., _): return false
            case (127, _): return allowsLoopback
            case (169, 254): return allowsLinkLocal
            default: return true
            }
        }
        if bytes.dropLast().allSatisfy({ $0 == 0 }) {
            // The unspecified address, and loopback.
            return bytes[15] == 1 && allowsLoopback
        }
        if bytes[0] == 0xFF { return false }
        if bytes[0] == 0xFE, bytes[1] & 0xC0 == 0x80 { return allowsLinkLocal }
        return true
    }
}

/// A UDP socket that the agent may send from. The owner opens it, reads it and closes it.
public struct ICESocket: Hashable, Sendable {
    /// How agent and owner call it.
    public var id: Int
    /// Its address: a host candidate.
    public var address: STUNAddress

    /// Names a socket.
    public init(id: Int, address: STUNAddress) {
        self.id = id
        self.address = address
    }
}

/// A STUN or TURN server, its name resolved.
public struct ICEServerAddress: Sendable {
    /// The server.
    public var address: STUNAddress
    /// The long-term credentials of a TURN server; nil for one that only tells addresses.
    public var relay: TURNCredentials?
    /// The stream to a TURN server over TCP or TLS, as the owner calls it: the owner opens it, and cuts what arrives
    /// into messages. Nil for UDP, from the sockets.
    public var stream: Int?

    /// Creates a server.
    public init(address: STUNAddress, relay: TURNCredentials? = nil, stream: Int? = nil) {
        self.address = address
        self.relay = relay
        self.stream = stream
    }
}

/// User name and password at a TURN server (RFC 8489, section 9.2). Never printed.
public struct TURNCredentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The user name.
    public let username: String
    /// The password.
    public let password: String

    /// Takes credentials.
    public init(username: String, password: String) {
        self.username = username
        self.password = password
    }

    /// Says that there are some.
    public var description: String { "(TURN credentials, not shown)" }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)](), displayStyle: .struct) }
}
