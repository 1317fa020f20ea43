import Primitives
import SIP

/// The path to the platform: it comes, breaks, and comes again, while calls go on.
///
/// An established call does not depend on the path that it was set up over: its requests go over the path that there
/// is, and the platform finds both sides by their registrations (RFC 5626, section 5). What is still being set up ends with
/// its path, since nobody could say how it went on.
extension UserAgent {
    /// The flow that `openFlow` asked for is there.
    public mutating func flowOpened(_ path: RegisteredFlow, at now: MonotonicTime) {
        isOpeningFlow = false
        self.path = path
        isPathRegistered = false
        if let register = pendingRegister {
            pendingRegister = nil
            sendRegister(register, at: now)
        }
        settle(at: now)
    }

    /// The flow could not be opened, or broke, or a datagram came back by ICMP: everything on it fails now instead of
    /// after its timers, and the client registers again after a pause.
    public mutating func flowFailed(reason: String, at now: MonotonicTime) {
        isOpeningFlow = false
        let isRegistering = registrationTransaction != nil
        if let path {
            let isLost = path.flow.transport.isReliable
            // A UDP socket outlives an ICMP error; a stream connection does not.
            if isLost { self.path = nil }
            isPathRegistered = false
            endEarlyCalls(CallTermination(.network, phrase: reason), at: now)
            transactions.transportFailed(flow: path.flow, reason: reason, at: now)
            // Whoever answers by ICMP has lost our binding, too. A REGISTER under way says so itself, and better.
            if isLost || !isRegistering { registration?.flowFailed(at: now) }
        }
        if pendingRegister != nil {
            pendingRegister = nil
            registration?.requestFailed(.transport(reason), at: now)
        }
        settle(at: now)
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
        for handle in handles where calls[handle]?.needsBye ?? false {
            transmitBye(handle, at: now)
        }
        for handle in handles { proceed(handle, at: now) }
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
