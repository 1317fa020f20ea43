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
    /// The longest request that goes out in a datagram, in bytes; longer ones need a stream (RFC 3261, 18.1.1).
    public var maximumDatagramRequest = SIPTransportSet.maximumDatagramRequest
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

/// What the user agent tells the layer above, in the order it happened.
public enum UserAgentAction: Sendable {
    /// Send these messages over this flow.
    case transmit(SIPMessage, SIPFlow)
    /// Open a flow to the platform and report `flowOpened` or `flowNotOpened`.
    case openFlow
    /// The registration does not fit into a datagram: open a TCP flow to the server of this one, and report as above.
    case openStream(SIPFlow)
    /// Send this to keep the flow alive, and report answers by `receiveKeepAlive`.
    case keepAlive(KeepAliveProbe, SIPFlow)
    /// This flow is dead: close it.
    case closeFlow(SIPFlow)
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
