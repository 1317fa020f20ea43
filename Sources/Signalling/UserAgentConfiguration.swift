import Primitives
import SDP
import SIP

/// What a user agent needs to know about itself and about the platform it registers with.
public struct UserAgentConfiguration: Sendable {
    /// The user part of the address of record.
    public var user: String
    /// The domain of the address of record and of the registrar.
    public var domain: String
    /// The name shown to those who are called, where one is set.
    public var displayName: String?
    /// `urn:uuid:…`, the same for the life of this device (RFC 5626).
    public var instanceID: String
    /// What to say in User-Agent.
    public var userAgent: String
    /// What there is to answer challenges with from the start; tokens come later, by `credentialsChanged`.
    public var credentials: [Credential] = []
    /// Asked lifetime of the binding.
    public var registrationExpires: Duration = .seconds(600)
    /// Codecs and packet times offered and accepted.
    public var capabilities: AudioCapabilities = .default
    /// How long a call may ring before the caller gives up with `noAnswer`.
    public var noAnswerTimeout: Duration = .seconds(60)
    /// How long an incoming call may ring here; longer than any caller and proxy waits, it ends calls whose caller vanished.
    public var incomingRingTimeout: Duration = .seconds(240)
    /// Calls at the same time, in both directions; further incoming ones are refused with 486, outgoing ones at once.
    public var maximumCalls = 16
    /// Timer values; tests shorten nothing, they simulate time.
    public var timers = SIPTimerSettings()

    /// Creates a configuration with the documented defaults.
    public init(
        user: String, domain: String, displayName: String? = nil, instanceID: String, userAgent: String = "SinchRTC"
    ) {
        self.user = user
        self.domain = domain
        self.displayName = displayName
        self.instanceID = instanceID
        self.userAgent = userAgent
    }

    /// The address of record, `sip:USER@DOMAIN`.
    public var addressOfRecord: SIPURI { SIPURI(user: user, host: domain) }
}

/// The path to the platform over which this user agent registers and makes its calls.
public struct RegisteredFlow: Sendable, Equatable {
    /// Where messages go.
    public var flow: SIPFlow
    /// The local end, as it stands in Via and Contact.
    public var local: TransportAddress

    /// Creates a flow from its two ends.
    public init(flow: SIPFlow, local: TransportAddress) {
        self.flow = flow
        self.local = local
    }

    /// The host as SIP writes it: IPv6 in brackets.
    var sipHost: String { local.isIPv6 ? "[\(local.host)]" : local.host }

    /// The Via that requests over this flow carry; the transaction layer gives it its branch.
    var via: SIPVia {
        var via = SIPVia(transport: flow.transport.viaName, host: sipHost, port: local.port, branch: "")
        via.parameters.setFlag("rport")
        return via
    }

    /// The contact for `user` behind this flow.
    func contact(user: String) -> SIPAddress {
        var uri = SIPURI(user: user, host: sipHost, port: local.port)
        if flow.transport != .udp {
            uri.parameters["transport"] = flow.transport.rawValue
        }
        return SIPAddress(uri: uri)
    }
}

/// What the user agent tells the layer above, in the order it happened.
public enum UserAgentAction: Sendable {
    /// Send these messages over this flow.
    case transmit(SIPMessage, SIPFlow)
    /// Open a flow to the platform and report `flowOpened` or `flowFailed`.
    case openFlow
    /// The platform asks for a token; answer with `credentialsChanged`.
    case needsCredentials(Challenge?)
    /// The registration changed.
    case registration(RegistrationEvent)
    /// A call moved.
    case call(CallHandle, CallEvent)
}

/// What can happen to the registration.
public enum RegistrationEvent: Sendable {
    /// The binding exists for this long; `isRefresh` when it already existed before.
    case registered(expires: Duration, isRefresh: Bool)
    /// An attempt failed; the next one is at `retryAt`, nil when only new credentials can help.
    case failed(RegistrationFailure, retryAt: MonotonicTime?)
    /// The binding was removed, or the time for removing it ran out.
    case unregistered
}

/// What can happen to a call.
public enum CallEvent: Sendable {
    /// Somebody calls: answer, hang up, or let it ring. 180 is already on its way back.
    case incoming(IncomingCall)
    /// The platform is working on our call (18x).
    case progressed
    /// The callee's device has the call and rings (180).
    case rang
    /// The call is answered; media as agreed.
    case answered(NegotiatedAudio)
    /// The media changed within the call (re-INVITE): hold, resume, a new address.
    case mediaChanged(NegotiatedAudio)
    /// The call is over. Nothing about it follows.
    case ended(CallTermination)
}

/// What an incoming INVITE says.
public struct IncomingCall: Sendable {
    /// The SIP Call-ID.
    public var callID: String
    /// The caller's address.
    public var from: SIPAddress
    /// Application headers (`X-…`), names as they came, without those of SIP itself.
    public var headers: [String: String]
}
