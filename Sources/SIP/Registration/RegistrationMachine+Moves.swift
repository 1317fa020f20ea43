import Primitives

/// What the machine does by itself when an answer, or none, has come: wait, try again, give up, send.
extension RegistrationMachine {
    func failure(
        status: Int?, _ reason: String, _ kind: RegistrationFailure.Kind
    ) -> RegistrationFailure {
        RegistrationFailure(status: status, reason: reason, kind: kind, isBindingAlive: bindingExpiry != nil)
    }

    mutating func awaitCredentials(_ challenge: Challenge?) {
        hold = .credentials
        nextAttempt = nil
        if bindingExpiry == nil { state = .waiting }
        actions.append(.needsCredentials(challenge))
    }

    mutating func refuse(_ failure: RegistrationFailure, at now: MonotonicTime) {
        hold = .refusal
        nextAttempt = nil
        if hasBeenRegistered {
            let (first, last) = (configuration.refusalBackoff.lowerBound, configuration.refusalBackoff.upperBound)
            let ceiling = min(first * (1 << min(refusals, 20)), last)
            refusals += 1
            nextAttempt = now + ceiling * (0.5 + 0.5 * random.unitInterval())
        }
        if bindingExpiry == nil { state = .waiting }
        lastFailure = failure
        actions.append(.failed(failure, retryAt: nextAttempt))
    }

    /// Plans the next attempt: what the registrar asked for, or 1 s doubling up to 5 min, never in step with others.
    mutating func retryLater(
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
    mutating func lapse() {
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

    mutating func end() {
        pending = nil
        bindingExpiry = nil
        nextAttempt = nil
        unregisterDeadline = nil
        hasBeenRegistered = false
        lastFailure = nil
        refreshesAfterResponse = false
        state = .ended
        actions.append(.unregistered)
    }

    mutating func sendRegister() {
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

    mutating func transmit(_ request: SIPMessage) {
        var request = request
        sequence = min(sequence, UInt32(Int32.max) - 1) + 1
        request.cseq = SIPCSeq(number: sequence, method: .register)
        pending = request
        actions.append(.send(request))
    }
}
