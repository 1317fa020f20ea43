import Primitives

/// What a registration is about, and how patient it is.
public struct RegistrationConfiguration: Sendable {
    /// The registrar: `sip:DOMAIN`, without a user part.
    public var registrar: SIPURI
    /// The address that is registered.
    public var addressOfRecord: SIPAddress
    /// Where we are reached. `+sip.instance` and `reg-id` are added.
    public var contact: SIPAddress
    /// This device's identity, a UUID URN (RFC 5626 section 4.1); with or without `urn:uuid:`.
    public var instanceID: String
    /// Tells the flows of one device apart (RFC 5626 section 4.2); 0 leaves outbound support out.
    public var registrationID: Int
    /// The lifetime to ask for; the registrar decides.
    public var requestedExpires: Duration
    /// The Call-ID of all requests; nil makes one.
    public var callID: String?
    /// The part of the granted lifetime after which the binding is refreshed; a random point out of the range.
    public var refreshFraction: ClosedRange<Double>
    /// The first pause after a failure, and the longest: it doubles in between, and the lower half is random.
    public var backoff: ClosedRange<Duration>
    /// The first pause after a refusal (wrong credentials, forbidden) of a client that was registered before, and the
    /// longest: long enough that a registrar does not take us for somebody who guesses passwords.
    public var refusalBackoff: ClosedRange<Duration>
    /// The longest Retry-After that is believed.
    public var maximumRetryAfter: Duration
    /// The largest Min-Expires of a 423 that is accepted.
    public var maximumMinExpires: Duration
    /// How long ``RegistrationMachine/unregister(at:)`` may take.
    public var unregisterTimeout: Duration
    /// Whether to ask for credentials before the first REGISTER when there are none, instead of being challenged.
    public var asksForCredentialsFirst: Bool
    /// The proxies to go through, nearest first.
    public var route: [SIPAddress]
    /// More headers for every REGISTER, for example User-Agent and Allow.
    public var headers: [(name: String, value: String)]

    /// Creates a configuration.
    public init(
        registrar: SIPURI, addressOfRecord: SIPAddress, contact: SIPAddress, instanceID: String,
        registrationID: Int = 1, requestedExpires: Duration = .seconds(600), callID: String? = nil,
        refreshFraction: ClosedRange<Double> = 0.75...0.9,
        backoff: ClosedRange<Duration> = .seconds(1) ... .seconds(300),
        refusalBackoff: ClosedRange<Duration> = .seconds(60) ... .seconds(3600),
        maximumRetryAfter: Duration = .seconds(3600), maximumMinExpires: Duration = .seconds(86_400),
        unregisterTimeout: Duration = .seconds(2), asksForCredentialsFirst: Bool = false, route: [SIPAddress] = [],
        headers: [(name: String, value: String)] = []
    ) {
        self.registrar = registrar
        self.addressOfRecord = addressOfRecord
        self.contact = contact
        self.instanceID = instanceID
        self.registrationID = registrationID
        self.requestedExpires = requestedExpires
        self.callID = callID
        self.refreshFraction = refreshFraction
        self.backoff = backoff
        self.refusalBackoff = refusalBackoff
        self.maximumRetryAfter = maximumRetryAfter
        self.maximumMinExpires = maximumMinExpires
        self.unregisterTimeout = unregisterTimeout
        self.asksForCredentialsFirst = asksForCredentialsFirst
        self.route = route
        self.headers = headers
    }

    /// `urn:uuid:…`, whatever way it was given.
    var instanceURN: String {
        instanceID.lowercased().hasPrefix("urn:") ? instanceID : "urn:uuid:\(instanceID)"
    }
}

/// Why a registration, or the refresh of one, did not succeed.
public struct RegistrationFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Kind: Hashable, Sendable {
        /// The registrar does not want us: wrong credentials, forbidden, unknown user.
        case refused
        /// The registrar cannot be reached, or the connection to it was lost.
        case unreachable
        /// Nobody answered.
        case timeout
        /// The registrar has a problem of its own.
        case server
        /// The registrar does not understand or accept the request.
        case badRequest
    }

    /// The SIP status; nil when there was no response.
    public var status: Int?
    /// What happened, in one line.
    public var reason: String
    /// What kind of failure it is.
    public var kind: Kind
    /// Whether an earlier registration still holds: calls still arrive.
    public var isBindingAlive: Bool
    /// The challenge for a token, when it was a token that was refused: it may say why, and who issues tokens.
    public var tokenChallenge: Challenge?
    /// The registrar's clock (Date header, as written), where it told it with the refusal.
    public var date: String?

    /// Creates a failure.
    public init(status: Int? = nil, reason: String, kind: Kind, isBindingAlive: Bool = false) {
        self.status = status
        self.reason = reason.withoutControls
        self.kind = kind
        self.isBindingAlive = isBindingAlive
    }

    /// Status and reason.
    public var description: String {
        (status.map { "\($0) " } ?? "") + reason
    }
}

extension RegistrationFailure.Kind {
    /// What kind of failure a final response is.
    init(status: Int) {
        switch status {
        case 403, 404, 410, 604: self = .refused
        case 408: self = .timeout
        case 300..<400, 480, 500...: self = .server
        default: self = .badRequest
        }
    }
}

extension Duration {
    /// Whole seconds, rounded down, never negative.
    var wholeSeconds: Int {
        Int(max(0, min(components.seconds, Int64(Int32.max))))
    }
}
