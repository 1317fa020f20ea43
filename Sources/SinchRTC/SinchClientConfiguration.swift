import Audio
import Network
import Primitives
import SIP

/// Everything that can be set about a client; the first three fields are all that is needed.
public struct SinchClientConfiguration: Sendable {
    /// The application, as the registration token names it.
    public var applicationKey: String
    /// `HOST[:PORT][;transport=udp|tcp|tls|ws|wss]`: the SIP domain and, unless `outboundProxy` says otherwise, where to
    /// connect. Without a transport DNS decides among those with TLS; on this machine it is UDP.
    public var environmentHost: String
    /// Whom the client is for.
    public var userId: String
    /// `HOST[:PORT][;transport=…]` to connect to, when DNS for the environment host does not say. A name is what the
    /// server's certificate must be for; with an address here, it must be for the environment host.
    public var outboundProxy: String?
    /// A PEM file with certificate authorities to trust beside the system's.
    public var caFile: String?
    /// `urn:uuid:…`, the same whenever this device registers this user (RFC 5626, section 4.1), so that a registration
    /// takes the place of the one before; nil makes one for the life of the client.
    public var instanceID: String?
    /// The name that callees see; at most 255 bytes.
    public var displayName: String?
    /// Where the audio that is sent comes from.
    public var capture: AudioDeviceName = .alsa("default")
    /// Where the audio that is heard goes to.
    public var playback: AudioDeviceName = .alsa("default")
    /// How long an outgoing call may ring before it ends with `noAnswer`.
    public var noAnswerTimeout: Duration = .seconds(60)
    /// How long an answered call may be without any media before it ends with an error.
    public var mediaTimeout: Duration = .seconds(10)
    /// How long established media may stay away before the call ends with `inactive`.
    public var inactivityTimeout: Duration = .seconds(30)
    /// Calls at the same time; further incoming ones are refused as busy.
    public var maximumCalls = 16
    /// Asked lifetime of the registration; the platform may grant less.
    public var registrationLifetime: Duration = .seconds(600)
    /// Opus complexity, 0…10: quality against CPU.
    public var opusComplexity = 5
    /// Opus bit rate in bits a second.
    public var opusBitrate = 32_000

    /// Creates a configuration with the documented defaults.
    public init(applicationKey: String, environmentHost: String, userId: String) {
        self.applicationKey = applicationKey
        self.environmentHost = environmentHost
        self.userId = userId
    }
}

/// `HOST[:PORT][;transport=…]`, taken apart.
struct SIPEndpoint: Sendable, Equatable {
    var host: String
    var port: UInt16?
    var transport: SIPTransport?

    init(parsing text: String) throws(SinchError) {
        // The grammar is the one of a SIP URI's host part and parameters.
        guard !text.isEmpty, !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x40 || $0 == 0x7F }),
            let uri = try? SIPURI(parsing: "sip:" + text), uri.isSIP, !uri.host.isEmpty
        else {
            throw SinchError(
                .invalidArgument, "'\(text)' is not HOST[:PORT][;transport=udp|tcp|tls|ws|wss]",
                hint: "for example sip.example.com or 127.0.0.1:5060;transport=tcp")
        }
        host = uri.host
        port = uri.port
        if let name = uri.transport {
            guard let transport = SIPTransport(rawValue: name) else {
                throw SinchError(
                    .invalidArgument, "transport '\(name)' is unknown", hint: "use udp, tcp, tls, ws or wss")
            }
            self.transport = transport
        }
        if host.hasPrefix("ocra.") || (host.hasPrefix("ocra-") && host.hasSuffix(".sinch.com")) {
            throw SinchError(
                .unsupportedEnvironment,
                "'\(host)' speaks the vendor's private signalling protocol, which this library does not speak",
                hint: "use the SIP interface of your platform, or leave the host out for the embedded environment")
        }
    }

    /// Whether the host is a numeric address.
    var isNumeric: Bool { host.hasPrefix("[") || (try? SocketAddress(TransportAddress(host: host, port: 0))) != nil }

    /// Whether the host is this machine by definition (RFC 6761).
    var isLocal: Bool {
        let name = host.lowercased()
        return name == "localhost" || name.hasSuffix(".localhost") || name == "[::1]"
            || isNumeric && TransportAddress(host: host, port: 0).isLoopback
    }
}
