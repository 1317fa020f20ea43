import Primitives

/// Keeps one address registered (RFC 3261 section 10, RFC 5626): refreshes, answers challenges, backs off for ever.
///
/// A state machine without sockets or clock. The owner sends each ``Action/send(_:)`` as a client transaction and
/// reports what comes of it to ``receive(_:at:)`` or ``requestFailed(_:at:)``; after every call it takes
/// ``nextAction()`` until that is nil, and calls ``timeout(at:)`` no later than ``nextTimeout``.
///
/// A binding counts as alive until it really lapses: a failed refresh is reported with
/// ``RegistrationFailure/isBindingAlive`` set, and the state stays ``State/registered``. When it lapses the last
/// failure is reported once more, with that flag clear, and the state becomes ``State/waiting``.
///
/// Nothing ends the trying for ever once there was a registration: a refusal is followed by a longer pause and, where a
/// token was refused, by asking the owner for another one. Only a first registration that is refused stays so, until
/// there are other credentials or `start` is called: then somebody is there to read the reason.
///
/// A bearer token goes out with the first request. The owner hands over tokens only if the transport may carry
/// them (TLS or loopback). Printing the machine shows no secret.
public struct RegistrationMachine: Sendable {
    /// What the machine waits for beyond a timer.
    enum Hold: Sendable {
        case none
        case credentials
        /// The registrar refused us for good.
        case refusal
    }

    /// A binding is refreshed at least that often.
    static let longestUnrefreshed = Duration.seconds(86_400)

    let configuration: RegistrationConfiguration
    var random: RandomSource
    var authenticator: Authenticator
    let callID: String
    let fromTag: String
    var sequence: UInt32 = 0
    var actions = FIFO<Action>()

    /// Where the registration stands.
    public internal(set) var state = State.idle
    /// When the binding lapses unless it is refreshed; nil while there is none.
    public internal(set) var bindingExpiry: MonotonicTime?
    /// When the next REGISTER is due; nil while none is planned.
    public internal(set) var nextAttempt: MonotonicTime?
    /// The last failure since the last success.
    public internal(set) var lastFailure: RegistrationFailure?
    /// What the registrar said with its last 200.
    public internal(set) var terms = RegistrarTerms()

    /// The REGISTER under way.
    var pending: SIPMessage?
    var hold = Hold.none
    var failures = 0
    var expires: Int
    var hasHonouredMinExpires = false
    var usesOutbound: Bool
    var refreshesAfterResponse = false
    var hasAcceptedToken = false
    /// Whether there was a binding since `start`, so that a refusal is probably a passing trouble.
    var hasBeenRegistered = false
    var refusals = 0
    var unregisterDeadline: MonotonicTime?

    /// Creates a machine at rest.
    public init(configuration: RegistrationConfiguration, random: RandomSource = .system) {
        self.configuration = configuration
        var random = random
        callID = configuration.callID ?? random.hexadecimal(bits: 128)
        fromTag = random.hexadecimal(bits: 64)
        expires = configuration.requestedExpires.wholeSeconds
        usesOutbound = configuration.registrationID > 0
        var source = RandomSource.system
        if case .seeded = random { source = .seeded(random.next()) }
        authenticator = Authenticator(credentials: [], random: source)
        self.random = random
    }

    /// When ``timeout(at:)`` is due; nil while nothing is planned.
    public var nextTimeout: MonotonicTime? {
        [nextAttempt, bindingExpiry, unregisterDeadline].compactMap(\.self).min()
    }

    /// The next thing to do; nil when there is nothing. Take all of them after every call.
    public mutating func nextAction() -> Action? {
        actions.next()
    }

    /// The authenticator with what it has learnt, for requests to the same domain.
    public var currentAuthenticator: Authenticator { authenticator }
}

// MARK: - Orders

extension RegistrationMachine {
    /// Registers now: for the first time, again, or in the midst of a pause.
    public mutating func start(at now: MonotonicTime) {
        guard pending == nil, state != .unregistering else { return }
        hold = .none
        failures = 0
        refusals = 0
        hasHonouredMinExpires = false
        if configuration.asksForCredentialsFirst, !authenticator.hasCredentials {
            awaitCredentials(nil)
            return
        }
        sendRegister()
    }

    /// Takes new credentials. A machine that waits for some, or was refused, tries again now; a registered one
    /// registers again in place; one that pauses after another failure keeps its pause.
    public mutating func credentialsChanged(_ credentials: [Credential], at now: MonotonicTime) {
        authenticator.replaceCredentials(credentials)
        hasAcceptedToken = false
        if let pending {
            refreshesAfterResponse = !authenticator.carriesCurrentToken(pending)
            return
        }
        let isPausing = nextAttempt != nil && lastFailure != nil
        guard hold != .none || (state == .registered && !isPausing) else { return }
        hold = .none
        failures = 0
        sendRegister()
    }

    /// Removes the binding. Ends with ``Action/unregistered``, at the latest after the configured time.
    public mutating func unregister(at now: MonotonicTime) {
        guard state != .unregistering else { return }
        nextAttempt = nil
        hold = .none
        guard bindingExpiry != nil || pending != nil else {
            end()
            return
        }
        state = .unregistering
        unregisterDeadline = now + configuration.unregisterTimeout
        // One REGISTER at a time (section 10.2): the one under way is answered first.
        if pending == nil { sendRegister() }
    }

    /// The time has come for whatever ``nextTimeout`` was about.
    public mutating func timeout(at now: MonotonicTime) {
        if let unregisterDeadline, unregisterDeadline <= now {
            end()
            return
        }
        if let bindingExpiry, bindingExpiry <= now { lapse() }
        if let nextAttempt, nextAttempt <= now, pending == nil {
            hasHonouredMinExpires = false
            // The same token would be refused again: there may be a new one.
            if hold == .refusal, authenticator.hasToken { return awaitCredentials(nil) }
            sendRegister()
        }
    }
}

// MARK: - Reports

extension RegistrationMachine {
    /// A response to a REGISTER of this machine; those to older ones are ignored.
    public mutating func receive(_ response: SIPMessage, at now: MonotonicTime) {
        guard let sent = pending, let status = response.status, status >= 200, response.callID == callID,
            response.cseq == sent.cseq
        else { return }
        pending = nil
        if state == .unregistering, sent.expires != 0 {
            // The answer to what was under way when the order came.
            if status < 300 || bindingExpiry != nil {
                sendRegister()
            } else {
                end()
            }
            return
        }
        switch status {
        case 200..<300: succeed(response, to: sent, at: now)
        case 401, 407: challenged(response, sent, at: now)
        case 423: tooBrief(response, at: now)
        case 439 where usesOutbound:
            // The first hop does not support outbound (RFC 5626 section 4.2.1): register without it.
            usesOutbound = false
            sendRegister()
        default:
            fail(status: status, response.reason ?? "", response, at: now)
        }
    }

    /// The client transaction of the REGISTER failed.
    public mutating func requestFailed(_ failure: TransactionFailure, at now: MonotonicTime) {
        guard pending != nil else { return }
        pending = nil
        let kind: RegistrationFailure.Kind
        switch failure {
        case .timeout, .ackTimeout: kind = .timeout
        case .transport: kind = .unreachable
        }
        let reason = kind == .timeout ? "the registrar does not answer" : failure.description
        retryLater(RegistrationFailure(reason: reason, kind: kind), at: now)
    }

    /// Registers now over another flow, to another server or from another address, whatever was under way.
    public mutating func flowReplaced(at now: MonotonicTime) {
        guard state != .unregistering, state != .ended, state != .idle else { return }
        pending = nil
        if hold == .none { start(at: now) }
    }

    /// The connection that the binding depends on is gone: calls no longer arrive, so the binding counts as lost.
    public mutating func flowFailed(
        reason: String = "the connection to the registrar was lost", at now: MonotonicTime
    ) {
        switch state {
        case .idle, .ended: return
        case .unregistering:
            end()
            return
        case .registering, .registered, .waiting: break
        }
        guard bindingExpiry != nil || pending != nil else { return }
        pending = nil
        bindingExpiry = nil
        let failure = RegistrationFailure(reason: reason, kind: .unreachable)
        let isPausing = nextAttempt != nil && lastFailure != nil
        if hold == .none, !isPausing {
            retryLater(failure, at: now)
        } else if isPausing {
            // An attempt failed already: this is the same trouble, no further one, and the planned attempt stands.
            state = .waiting
            lastFailure = failure
            actions.append(.failed(failure, retryAt: nextAttempt))
        } else {
            state = .waiting
            lastFailure = failure
            actions.append(.failed(failure, retryAt: nextAttempt))
        }
    }

    private mutating func succeed(_ response: SIPMessage, to sent: SIPMessage, at now: MonotonicTime) {
        guard state != .unregistering else { return end() }
        guard authenticator.confirm(sent, by: response) != .wrong else {
            let reason =
                "the registrar accepted the request but does not know the password itself (rspauth is wrong): "
                + "it is not the one it claims to be"
            retryLater(failure(status: response.status, reason, .refused), at: now)
            return
        }
        let granted = GrantedExpiry.seconds(
            in: response, contact: configuration.contact.uri, instanceURN: configuration.instanceURN,
            registrationID: configuration.registrationID, requested: expires)
        guard granted > 0 else {
            bindingExpiry = nil
            let reason = "the registrar accepted the request but keeps no binding (granted 0 s)"
            retryLater(RegistrationFailure(status: response.status, reason: reason, kind: .server), at: now)
            return
        }
        let isRefresh = bindingExpiry != nil
        failures = 0
        refusals = 0
        hasBeenRegistered = true
        lastFailure = nil
        hold = .none
        hasHonouredMinExpires = false
        if authenticator.carriesCurrentToken(sent) { hasAcceptedToken = true }
        terms = RegistrarTerms(
            response, instanceURN: configuration.instanceURN, registrationID: configuration.registrationID)
        state = .registered
        let lifetime = Duration.seconds(granted)
        bindingExpiry = now + lifetime
        let range = configuration.refreshFraction
        let fraction = range.lowerBound + (range.upperBound - range.lowerBound) * random.unitInterval()
        // A registrar that grants a year is asked every day all the same: it may lose its memory before.
        nextAttempt = now + min(lifetime, Self.longestUnrefreshed) * fraction
        actions.append(.registered(expires: lifetime, isRefresh: isRefresh))
        if refreshesAfterResponse { sendRegister() }
    }

    private mutating func challenged(_ response: SIPMessage, _ sent: SIPMessage, at now: MonotonicTime) {
        refreshesAfterResponse = false
        var request = sent
        switch authenticator.authorize(&request, after: response) {
        case .retry:
            transmit(request)
        case .needsToken(let challenge):
            guard state != .unregistering else { return end() }
            awaitCredentials(challenge)
        case .refused(let reason):
            guard state != .unregistering else { return end() }
            let challenges = Challenge.challenges(in: response)
            var failure = failure(status: response.status, reason, .refused)
            failure.date = response.headers["Date"]
            if authenticator.carriesCurrentToken(sent) {
                failure.tokenChallenge = challenges.first { $0.scheme == .bearer }
            }
            if !authenticator.hasCredentials, challenges.first?.scheme == .digest {
                awaitCredentials(challenges.first)
            } else if hasAcceptedToken {
                // This very token has worked before, so it has probably grown too old: there may be a new one.
                hasAcceptedToken = false
                lastFailure = failure
                awaitCredentials(challenges.first { $0.scheme == .bearer })
            } else {
                refuse(failure, at: now)
            }
        }
    }

    /// 423: the registrar's minimum is taken once.
    private mutating func tooBrief(_ response: SIPMessage, at now: MonotonicTime) {
        guard state != .unregistering else { return end() }
        let limit = configuration.maximumMinExpires.wholeSeconds
        guard let minimum = response.minExpires, minimum > expires, minimum <= limit, !hasHonouredMinExpires else {
            let reason =
                "the registrar finds \(expires) s too brief and its Min-Expires is of no use "
                + "(\(response.minExpires.map { "\($0) s" } ?? "missing"))"
            fail(status: 423, reason, response, at: now)
            return
        }
        hasHonouredMinExpires = true
        expires = minimum
        sendRegister()
    }

    private mutating func fail(status: Int, _ reason: String, _ response: SIPMessage, at now: MonotonicTime) {
        guard state != .unregistering else { return end() }
        var reason = reason
        if (300..<400).contains(status), let elsewhere = response.contacts.first?.uri.host {
            reason =
                "the registrar points to \(Challenge.readable(elsewhere)), where nothing is sent: "
                + "credentials are for the configured domain only"
        }
        var failure = failure(status: status, reason, RegistrationFailure.Kind(status: status))
        failure.date = response.headers["Date"]
        if status == 403 {
            refuse(failure, at: now)
        } else {
            retryLater(failure, after: response.retryAfter.map { .seconds(max(0, min($0, 1 << 31))) }, at: now)
        }
    }
}
