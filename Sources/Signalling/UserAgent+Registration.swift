import Primitives
import SIP

extension UserAgent {
    /// Registers with the platform and keeps the binding alive until `unregister` (RFC 3261, section 10). Called again,
    /// it registers now, be it in a pause after a failure or after `unregister`.
    public mutating func start(at now: MonotonicTime) {
        guard registration == nil else {
            registration?.start(at: now)
            settle(at: now)
            return
        }
        let registrar = SIPURI(user: nil, host: configuration.domain)
        var machine = RegistrationMachine(
            configuration: RegistrationConfiguration(
                registrar: registrar,
                addressOfRecord: SIPAddress(uri: configuration.addressOfRecord, displayName: configuration.displayName),
                contact: SIPAddress(uri: configuration.addressOfRecord),
                instanceID: configuration.instanceID,
                requestedExpires: configuration.registrationExpires),
            random: random)
        machine.start(at: now)
        registration = machine
        settle(at: now)
    }

    /// Hands over the token or password that `needsCredentials` asked for, or newer ones. Calls are not touched.
    public mutating func credentialsChanged(_ credentials: [Credential], at now: MonotonicTime) {
        // Only a digest may ever answer a challenge outside of REGISTER: a bearer token is for the registrar alone.
        let digests = credentials.filter { credential in
            if case .digest = credential { true } else { false }
        }
        authenticator = Authenticator(credentials: digests, random: random, realms: realms)
        registration?.credentialsChanged(credentials, at: now)
        settle(at: now)
    }

    /// Registers now instead of at the next refresh or retry; nothing when a REGISTER is under way.
    public mutating func renewRegistration(at now: MonotonicTime) {
        registration?.start(at: now)
        settle(at: now)
    }

    /// Removes the binding; `.registration(.unregistered)` follows, at the latest after the machine's bound.
    public mutating func unregister(at now: MonotonicTime) {
        registration?.unregister(at: now)
        settle(at: now)
    }

    /// Forgets the registration at once, without a word to the registrar: what `start` failed may be tried anew.
    public mutating func abandonRegistration() {
        registration = nil
        registrationTransaction = nil
        pendingRegister = nil
        isOpeningFlow = false
        keepAlive = nil
    }

    /// Where the registration stands, for status reports.
    public var registrationState: RegistrationMachine.State { registration?.state ?? .idle }

    /// When the next attempt of a failed registration will be made.
    public var nextRegistrationAttempt: MonotonicTime? { registration?.nextAttempt }

    mutating func handle(_ action: RegistrationMachine.Action, at now: MonotonicTime) {
        switch action {
        case .send(let register):
            if path == nil {
                pendingRegister = register
                if !isOpeningFlow {
                    isOpeningFlow = true
                    emit(.openFlow)
                }
            } else {
                sendRegister(register, at: now)
            }
        case .needsCredentials(let challenge):
            emit(.needsCredentials(challenge))
        case .registered(let expires, let isRefresh):
            emit(.registration(.registered(expires: expires, isRefresh: isRefresh)))
            pathRegistered(at: now)
        case .failed(let failure, let retryAt):
            emit(.registration(.failed(failure, retryAt: retryAt)))
        case .unregistered:
            emit(.registration(.unregistered))
        }
    }

    mutating func receiveRegistration(_ response: SIPMessage, at now: MonotonicTime) {
        if let status = response.status, status >= 200 { registrationTransaction = nil }
        let asking = Challenge.challenges(in: response).map(\.realm).filter { !realms.contains($0) }
        if !asking.isEmpty, realms.count < 16 {
            // Only the registrar's challenges say which protection spaces are the platform's.
            realms.formUnion(asking.prefix(4))
        }
        registration?.receive(response, at: now)
    }

    /// Sends a REGISTER whose contact names the flow it goes over: the machine does not know the flow's address.
    mutating func sendRegister(_ register: SIPMessage, at now: MonotonicTime) {
        guard let path else { return }
        var register = register
        let uri = path.contact(user: configuration.user).uri
        if !register.hasStarContact {
            register.contacts = register.contacts.map { contact in
                SIPAddress(uri: uri, displayName: contact.displayName, parameters: contact.parameters)
            }
        }
        register.headers["User-Agent"] = configuration.userAgent
        guard path.flow.transport != .udp || fitsDatagram(register) else {
            pendingRegister = register
            if !isOpeningFlow {
                isOpeningFlow = true
                emit(.openStream(path.flow))
            }
            return
        }
        registrationTransaction = transactions.send(register, over: path.flow, sentBy: path.via, at: now)
    }

    /// Whether a REGISTER, with the Via that it will get, may go out in a datagram. A longer one does not only travel over
    /// TCP as other requests do: the binding must name the flow that calls will come over.
    private func fitsDatagram(_ register: SIPMessage) -> Bool {
        var complete = register
        complete.prependVia(
            SIPVia(transport: "UDP", host: String(repeating: "x", count: 45), port: 65_535, branch: nil))
        let branchBytes = 60
        guard let bytes = try? complete.encoded() else { return true }
        return bytes.count + branchBytes <= configuration.maximumDatagramRequest
    }

    /// What the registrar said with its last 200, for status reports.
    public var registrarTerms: RegistrarTerms? { registration?.terms }
}
