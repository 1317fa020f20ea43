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
/// A bearer token goes out with the first request. The owner hands over tokens only if the transport may carry
/// them (TLS or loopback). Printing the machine shows no secret.
public struct RegistrationMachine: Sendable {
    /// What the machine waits for beyond a timer.
    private enum Hold: Sendable {
        case none
        case credentials
        /// The registrar refused us for good.
        case refusal
    }

    let configuration: RegistrationConfiguration
    private var random: RandomSource
    private var authenticator: Authenticator
    private let callID: String
    private let fromTag: String
    private var sequence: UInt32 = 0
    private var actions = FIFO<Action>()

    /// Where the registration stands.
    public private(set) var state = State.idle
    /// When the binding lapses unless it is refreshed; nil while there is none.
    public private(set) var bindingExpiry: MonotonicTime?
    /// When the next REGISTER is due; nil while none is planned.
    public private(set) var nextAttempt: MonotonicTime?
    /// The last failure since the last success.
    public private(set) var lastFailure: RegistrationFailure?
    /// What the registrar said with its last 200.
    public private(set) var terms = RegistrarTerms()

    /// The REGISTER under way.
    private var pending: SIPMessage?
    private var hold = Hold.none
    private var failures = 0
    private var expires: Int
    private var hasHonouredMinExpires = false
    private var usesOutbound: Bool
    private var refreshesAfterResponse = false
    private var hasAcceptedToken = false
    private var unregisterDeadline: MonotonicTime?

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
            actions.append(.failed(failure, retryAt: nil))
        }
    }

    private mutating func succeed(_ response: SIPMessage, to sent: SIPMessage, at now: MonotonicTime) {
        guard state != .unregistering else { return end() }
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
        nextAttempt = now + lifetime * fraction
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
            let challenge = Challenge.challenges(in: response).first
            if !authenticator.hasCredentials, challenge?.scheme == .digest {
                awaitCredentials(challenge)
            } else if hasAcceptedToken {
                // This very token has worked before, so it has probably grown too old: there may be a new one.
                hasAcceptedToken = false
                lastFailure = failure(status: response.status, reason, .refused)
                awaitCredentials(Challenge.challenges(in: response).first { $0.scheme == .bearer })
            } else {
                refuse(failure(status: response.status, reason, .refused))
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
        let failure = failure(status: status, reason, RegistrationFailure.Kind(status: status))
        if status == 403 {
            refuse(failure)
        } else {
            retryLater(failure, after: response.retryAfter.map { .seconds(max(0, min($0, 1 << 31))) }, at: now)
        }
    }
}

// MARK: - Moves

extension RegistrationMachine {
    private func failure(
        status: Int?, _ reason: String, _ kind: RegistrationFailure.Kind
    ) -> RegistrationFailure {
        RegistrationFailure(status: status, reason: reason, kind: kind, isBindingAlive: bindingExpiry != nil)
    }

    private mutating func awaitCredentials(_ challenge: Challenge?) {
        hold = .credentials
        nextAttempt = nil
        if bindingExpiry == nil { state = .waiting }
        actions.append(.needsCredentials(challenge))
    }

    private mutating func refuse(_ failure: RegistrationFailure) {
        hold = .refusal
        nextAttempt = nil
        if bindingExpiry == nil { state = .waiting }
        lastFailure = failure
        actions.append(.failed(failure, retryAt: nil))
    }

    /// Plans the next attempt: what the registrar asked for, or 1 s doubling up to 5 min, never in step with others.
    private mutating func retryLater(
        _ failure: RegistrationFailure, after wish: Duration? = nil, at now: MonotonicTime
    ) {
        guard state != .unregistering else { return end() }
        var failure = failure
        failure.isBindingAlive = bindingExpiry != nil
        if failure.reason.isEmpty { failure.reason = "the registrar gave no reason" }
        let (first, last) = (configuration.backoff.lowerBound, configuration.backoff.upperBound)
        let ceiling = min(first * (1 << min(failures, 20)), last)
        var pause = ceiling * (0.5 + 0.5 * random.unitInterval())
        if let wish {
            let bounded = min(wish, configuration.maximumRetryAfter)
            pause = max(pause, bounded + bounded * (0.1 * random.unitInterval()))
        }
        failures += 1
        lastFailure = failure
        refreshesAfterResponse = false
        if bindingExpiry == nil { state = .waiting }
        nextAttempt = now + pause
        actions.append(.failed(failure, retryAt: nextAttempt))
    }

    /// The binding has run out without a refresh.
    private mutating func lapse() {
        bindingExpiry = nil
        guard state == .registered else { return }
        state = pending == nil ? .waiting : .registering
        guard pending == nil else { return }  // its outcome will be reported
        var failure =
            lastFailure
            ?? RegistrationFailure(reason: "the registration lapsed without new credentials", kind: .refused)
        failure.isBindingAlive = false
        lastFailure = failure
        actions.append(.failed(failure, retryAt: nextAttempt))
    }

    private mutating func end() {
        pending = nil
        bindingExpiry = nil
        nextAttempt = nil
        unregisterDeadline = nil
        lastFailure = nil
        refreshesAfterResponse = false
        state = .ended
        actions.append(.unregistered)
    }

    private mutating func sendRegister() {
        nextAttempt = nil
        refreshesAfterResponse = false
        let isRemoval = state == .unregistering
        if !isRemoval, bindingExpiry == nil { state = .registering }
        var from = configuration.addressOfRecord
        from.tag = fromTag
        var to = configuration.addressOfRecord
        to.tag = nil
        var contact = configuration.contact
        contact.parameters["+sip.instance"] = "\"<\(configuration.instanceURN)>\""
        if usesOutbound { contact.parameters["reg-id"] = String(configuration.registrationID) }
        var request = SIPMessage(request: .register, uri: configuration.registrar)
        request.maxForwards = 70
        if !configuration.route.isEmpty { request.routes = configuration.route }
        request.from = from
        request.to = to
        request.callID = callID
        request.cseq = SIPCSeq(number: sequence + 1, method: .register)
        request.contacts = [contact]
        request.expires = isRemoval ? 0 : expires
        request.headers["Supported"] = usesOutbound ? "path, gruu, outbound" : "path, gruu"
        for header in configuration.headers { request.headers.append(header.name, header.value) }
        authenticator.preauthorize(&request)
        transmit(request)
    }

    private mutating func transmit(_ request: SIPMessage) {
        var request = request
        sequence = min(sequence, UInt32(Int32.max) - 1) + 1
        request.cseq = SIPCSeq(number: sequence, method: .register)
        pending = request
        actions.append(.send(request))
    }
}
