import Primitives
import SIP

/// The stateful forking proxy (RFC 3261 section 16.6 to 16.10).
extension EnvironmentCore {
    /// Forwards a request outside of a dialog to all devices at once.
    mutating func fork(
        _ incoming: Incoming, _ request: SIPMessage, from sender: Binding, to devices: [[Binding]], key: RequestKey?
    ) {
        var outgoing = request
        let identity = SIPURI(user: sender.user.user, host: configuration.realm)
        Sanitising.clean(&outgoing, identity: identity)
        let isInvite = request.method == .invite
        var forwarding = Forwarding(
            request: incoming.request, outgoing: outgoing, source: incoming.flow, sender: sender,
            context: ResponseContext(isInvite: isInvite, ringTimeout: configuration.ringTimeout),
            loopMark: loopHash(of: request), key: key, started: incoming.now)
        if isInvite {
            forwarding.isCallInSetup = true
            callsBySource[incoming.flow, default: 0] += 1
            log(
                .callStarted(
                    call: request.callID ?? "", from: sender.user.user, to: loggable(request.requestURI?.user),
                    application: sender.user.application, devices: devices.count))
        }
        if let key { inProgress[key] = incoming.id }
        var steps: [ResponseContext.Step] = []
        for device in devices {
            steps += addBranch(to: device, of: &forwarding, incoming.id, at: incoming.now)
        }
        forwardings[incoming.id] = forwarding
        perform(steps, for: incoming.id, at: incoming.now)
        if forwarding.openBranches == 0 { answerUnreachable(incoming.id, at: incoming.now) }
    }

    /// Forwards a request within a dialog to the other side.
    mutating func relay(_ incoming: Incoming, _ request: SIPMessage, to flow: SIPFlow) {
        var outgoing = request
        Sanitising.clean(&outgoing, identity: nil)
        RecordRoute.respectStrictRouter(in: &outgoing)
        var forwarding = Forwarding(
            request: incoming.request, outgoing: outgoing, source: incoming.flow,
            context: ResponseContext(isInvite: request.method == .invite, ringTimeout: configuration.ringTimeout),
            loopMark: loopHash(of: request), started: incoming.now)
        let steps = sendBranch(outgoing, over: flow, of: &forwarding, incoming.id, at: incoming.now)
        forwardings[incoming.id] = forwarding
        perform(steps, for: incoming.id, at: incoming.now)
        if forwarding.openBranches == 0 { answerUnreachable(incoming.id, at: incoming.now) }
    }

    // MARK: Branches

    /// Sends a request to the first flow of a device that can be used, and remembers the others.
    private mutating func addBranch(
        to flows: [Binding], of forwarding: inout Forwarding, _ server: TransactionID, at now: MonotonicTime
    ) -> [ResponseContext.Step] {
        guard
            let index = flows.firstIndex(where: { isAlive($0.flow) && configuration.listen[$0.flow.transport] != nil })
        else { return [] }
        let binding = flows[index]
        var outgoing = forwarding.outgoing
        var target = binding.contact.uri
        target.headers = []
        outgoing.requestURI = target
        if outgoing.method == .invite, let sender = forwarding.sender {
            let token = DialogToken(
                caller: DialogToken.Side(binding: sender.id, flow: forwarding.source),
                callee: DialogToken.Side(binding: binding.id, flow: binding.flow),
                callerTag: outgoing.from?.tag ?? "")
            recordRoute.add(token, to: &outgoing)
        }
        let before = forwarding.openBranches
        let steps = sendBranch(outgoing, over: binding.flow, of: &forwarding, server, at: now)
        if forwarding.openBranches > before, let client = forwarding.lastBranch {
            forwarding.alternatives[client] = Array(flows[(index + 1)...])
            forwarding.contacts[client] = binding.contact.uri.description
        }
        return steps
    }

    private mutating func sendBranch(
        _ outgoing: SIPMessage, over flow: SIPFlow, of forwarding: inout Forwarding, _ server: TransactionID,
        at now: MonotonicTime
    ) -> [ResponseContext.Step] {
        guard var via = recordRoute.via(for: flow.transport) else { return [] }
        via.parameters[Self.loopParameter] = forwarding.loopMark
        let client = transactions.send(outgoing, over: flow, sentBy: via, at: now)
        branchOwners[client] = server
        forwarding.openBranches += 1
        forwarding.lastBranch = client
        return forwarding.context.add(client, at: now)
    }

    /// No device could even be tried.
    private mutating func answerUnreachable(_ server: TransactionID, at now: MonotonicTime) {
        perform([.answer(status: 480, reason: "Device Unreachable")], for: server, at: now)
    }

    // MARK: What comes back

    /// A response of a device (section 16.7).
    mutating func relay(_ response: SIPMessage, of client: TransactionID, at now: MonotonicTime) {
        guard let server = branchOwners[client], let vias = forwardings[server]?.request.vias else { return }
        var upstream = response
        upstream.removeTopVia()
        // The way back is ours to say: a device that lost the other Vias would leave the caller without an answer.
        if upstream.vias != vias { upstream.vias = vias }
        Sanitising.clean(&upstream)
        let status = response.status ?? 0
        if (200..<300).contains(status) { logAnswer(of: client, in: server, at: now) }
        let steps = forwardings[server]?.context.receive(upstream, from: client, at: now) ?? []
        perform(steps, for: server, at: now)
    }

    /// A transaction failed: a device did not answer or cannot be reached, or the caller is gone.
    mutating func fail(_ id: TransactionID, _ failure: TransactionFailure, at now: MonotonicTime) {
        guard id.role == .client else {
            if case .transport = failure { cancelCall(id, reason: Self.callerGone, at: now) }
            return
        }
        guard let server = branchOwners[id] else { return }
        switch failure {
        case .timeout, .ackTimeout:
            // A request other than INVITE is not answered with 408: its sender gave up at the same time (RFC 4320).
            guard forwardings[server]?.context.isInvite == true else { return }
            perform(forwardings[server]?.context.giveUp(id) ?? [], for: server, at: now)
        case .transport(let reason):
            tryAlternative(to: id, of: server, at: now)
            perform(forwardings[server]?.context.fail(id, reason: reason) ?? [], for: server, at: now)
        }
    }

    /// Another flow to the device whose flow failed (RFC 5626 section 5.3).
    private mutating func tryAlternative(to client: TransactionID, of server: TransactionID, at now: MonotonicTime) {
        guard var forwarding = forwardings[server], forwarding.context.acceptsBranches,
            let alternatives = forwarding.alternatives[client], !alternatives.isEmpty
        else { return }
        let steps = addBranch(to: alternatives, of: &forwarding, server, at: now)
        forwardings[server] = forwarding
        perform(steps, for: server, at: now)
    }

    /// The caller sent a CANCEL (section 16.10); its Reason goes along.
    mutating func cancelCall(_ server: TransactionID, by cancel: SIPMessage, at now: MonotonicTime) {
        cancelCall(server, reason: cancel.headers["Reason"], at: now)
    }

    private static let callerGone = "SIP;cause=408;text=\"Caller unreachable\""

    private mutating func cancelCall(_ server: TransactionID, reason: String?, at now: MonotonicTime) {
        let steps = forwardings[server]?.context.cancel(reason: reason) ?? []
        perform(steps, for: server, at: now)
    }

    /// Cancels the calls that a client was setting up when it vanished.
    mutating func abandonCalls(from flow: SIPFlow, at now: MonotonicTime) {
        guard callsBySource[flow] != nil else { return }
        let abandoned = forwardings.filter { $0.value.source == flow && $0.value.isCallInSetup }.keys
        for server in abandoned { cancelCall(server, reason: Self.callerGone, at: now) }
    }

    /// Timer C of a branch may have come.
    mutating func stopRinging(_ client: TransactionID, at now: MonotonicTime) {
        guard let server = branchOwners[client] else { return }
        perform(forwardings[server]?.context.timeout(client, at: now) ?? [], for: server, at: now)
    }
}
