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
    /// The longest request that goes out in a datagram, in bytes; longer ones need a stream (RFC 3261, 18.1.1).
    public var maximumDatagramRequest = SIPTransportSet.maximumDatagramRequest
    /// How long a call may live without a sign of life; asked for in each call (RFC 4028), nil asks for nothing.
    public var sessionExpires: Duration? = .seconds(1_800)
    /// The smallest such time that is accepted from others; 90 s at least.
    public var minimumSessionExpires: Duration = .seconds(90)
    /// Whether the other side of a call may send us to somebody else (REFER). Whoever can do that can make calls in the
    /// user's name and at the user's cost.
    public var acceptsTransfers = false
    /// How often one call may be redirected (3xx); 0 turns redirects off, more than 5 count as 5.
    public var maximumRedirects = 5
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
    /// Media of a device that has not answered yet may be heard: announcements, ringing tones made by the network. `fork`
    /// counts the devices from 0, in the order in which they were heard of; the media of each are its own.
    case earlyMedia(NegotiatedAudio, fork: Int)
    /// That device has given up; nothing more comes from it.
    case earlyMediaEnded(fork: Int)
    /// The call is answered; media as agreed.
    case answered(NegotiatedAudio)
    /// The media changed within the call (re-INVITE): hold, resume, a new address.
    case mediaChanged(NegotiatedAudio)
    /// Who holds the call changed: `local` that we do, `remote` that the other side does.
    case holdChanged(local: Bool, remote: Bool)
    /// A hold or resume that was asked for did not come about, and why; the call is as it was.
    case changeFailed(String)
    /// The other side reports how the call goes that it was asked to make (a status of 100 to 699).
    case transferProgress(status: Int)
    /// The other side has made that call. Ours may be ended.
    case transferred
    /// The other side refused the transfer, or could not make the call; ours goes on.
    case transferFailed(CallTermination)
    /// The other side asks us to call somebody else. Answer with `followTransfer` or `declineTransfer`.
    case transferRequested(TransferRequest)
    /// The other side pressed a key and told of it by INFO.
    case keyReceived(Character)
    /// All keys that were to be sent by INFO have been taken.
    case keysSent
    /// A key was refused by the other side, or could not be sent; those after it were not sent.
    case keysFailed(CallTermination)
    /// Application headers that the callee sent with its answer, which follows.
    case answerHeaders([String: String])
    /// The call is over. Nothing about it follows.
    case ended(CallTermination)
}

/// What an incoming INVITE says.
public struct IncomingCall: Sendable {
    /// The SIP Call-ID.
    public var callID: String
    /// The caller's address.
    public var from: SIPAddress
    /// The address that the platform vouches for (P-Asserted-Identity), where it does.
    public var assertedIdentity: SIPAddress?
    /// The call whose place this one takes: the other side of that one was transferred. Answering ends that call. There is
    /// nobody new to be asked, so it should be answered at once.
    public var replaces: CallHandle?
    /// Application headers (`X-…`), names as they came, without those of SIP itself.
    public var headers: [String: String]
}
