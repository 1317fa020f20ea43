import Primitives
import SIP

/// The path to the platform: it comes, breaks, and comes again, while calls go on.
///
/// An established call does not depend on the path that it was set up over: its requests go over the path that there
/// is, and the platform finds both sides by their registrations (RFC 5626, section 5). What is still being set up ends with
/// its path, since nobody could say how it went on.
extension UserAgent {
    /// The flow that `openFlow` or `openStream` asked for is there.
    public mutating func flowOpened(_ path: RegisteredFlow, at now: MonotonicTime) {
        take(path)
        if let register = pendingRegister {
            pendingRegister = nil
            sendRegister(register, at: now)
        }
        settle(at: now)
    }

    /// The flow that `openFlow` or `openStream` asked for cannot be had; the client tries again after a pause.
    public mutating func flowNotOpened(reason: String, at now: MonotonicTime) {
        isOpeningFlow = false
        guard pendingRegister != nil else { return }
        pendingRegister = nil
        registration?.requestFailed(.transport(reason), at: now)
        settle(at: now)
    }

    /// There is a flow to another server, which is to be used instead of the present one: registers there at once. What
    /// is being set up over the old one fails.
    public mutating func flowReplaced(by path: RegisteredFlow, at now: MonotonicTime) {
        let reason = "the client changed to another server"
        if let old = self.path {
            registrationTransaction = nil
            endEarlyCalls(CallTermination(.network, phrase: reason), at: now)
            transactions.transportFailed(flow: old.flow, reason: reason, at: now)
            settle(at: now)
        }
        take(path)
        pendingRegister = nil
        registration?.flowReplaced(at: now)
        settle(at: now)
    }

    private mutating func take(_ path: RegisteredFlow) {
        isOpeningFlow = false
        if let old = self.path?.flow, old != path.flow { emit(.closeFlow(old)) }
        self.path = path
        isPathRegistered = false
        keepAlive = nil
    }

    /// The path broke, or a datagram came back by ICMP: everything on it fails now instead of after its timers, and the
    /// client registers again after a pause.
    public mutating func flowFailed(reason: String, at now: MonotonicTime) {
        // A UDP socket outlives an ICMP error; a stream connection does not.
        breakPath(isLost: path?.flow.transport.isReliable ?? false, reason: reason, at: now)
        settle(at: now)
    }

    /// The path is dead, although nothing said so: another one is needed.
    mutating func flowLost(reason: String, at now: MonotonicTime) {
        breakPath(isLost: true, reason: reason, at: now)
    }

    private mutating func breakPath(isLost: Bool, reason: String, at now: MonotonicTime) {
        guard let path else { return }
        let isRegistering = registrationTransaction != nil
        if isLost { self.path = nil }
        isPathRegistered = false
        // It begins again with the next registration, whose attempts ask often enough until then.
        keepAlive = nil
        endEarlyCalls(CallTermination(.network, phrase: reason), at: now)
        transactions.transportFailed(flow: path.flow, reason: reason, at: now)
        // Whoever answers by ICMP has lost our binding, too. A REGISTER under way says so itself, and better.
        if isLost || !isRegistering { registration?.flowFailed(reason: reason, at: now) }
    }

    /// A request could not be sent, while the path goes on: it was too long for it.
    public mutating func requestNotSent(_ request: SIPMessage, reason: String, at now: MonotonicTime) {
        transactions.transportFailed(request: request, reason: reason, at: now)
        settle(at: now)
    }

    /// Whether a message came from the platform: over the path or, as a response, over the connection beside it that
    /// carries what is too long for datagrams. Requests come over the path that is registered, and nowhere else.
    func isFromPlatform(_ message: SIPMessage, over flow: SIPFlow) -> Bool {
        guard let path else { return false }
        if flow == path.flow { return true }
        let isBesidePath = path.flow.transport == .udp && flow.transport == .tcp && flow.remote == path.flow.remote
        return isBesidePath && !message.isRequest
    }

    /// Our Contact in dialogs: the device's address that works from everywhere (RFC 5627) where the registrar gave one;
    /// else the path's, marked with `ob` where the edge proxy keeps dialogs on their flow (RFC 5626, section 4.3).
    func dialogContact(over path: RegisteredFlow) -> SIPAddress {
        guard isPathRegistered, let terms = registration?.terms else { return path.contact(user: configuration.user) }
        if let gruu = terms.publicGRUU { return SIPAddress(uri: gruu) }
        var contact = path.contact(user: configuration.user)
        if terms.supportsOutbound { contact.uri.parameters.setFlag("ob") }
        return contact
    }

    private mutating func endEarlyCalls(_ termination: CallTermination, at now: MonotonicTime) {
        for handle in handles {
            guard let call = calls[handle], call.phase == .early else { continue }
            if call.direction == .incoming {
                // Without a final response its transaction would wait for ever; a datagram may even arrive.
                transactions.respond(
                    ownResponse(to: call.invite, status: 480, localTag: call.localTag), in: call.inviteTransaction,
                    at: now)
            }
            end(handle, termination)
        }
    }

    /// The registrar confirmed the binding: requests over this path are recognised from now on.
    mutating func pathRegistered(at now: MonotonicTime) {
        isPathRegistered = path != nil
        lastRegistered = now
        startKeepAlive(at: now)
        for handle in handles where calls[handle]?.needsBye ?? false {
            transmitBye(handle, at: now)
        }
    }

    /// The platform does not know us any more, although our binding should stand: it has started anew. Registers now
    /// instead of with the next refresh. A binding confirmed just now is believed, so that refusals for other reasons
    /// do not make a flood of registrations.
    ///
    /// - Returns: whether a new registration is on its way.
    @discardableResult
    mutating func registerAnew(at now: MonotonicTime) -> Bool {
        guard registrationState == .registered, let lastRegistered, now - lastRegistered > .seconds(10) else {
            return false
        }
        self.lastRegistered = now
        registration?.start(at: now)
        return true
    }
}
