import Primitives
import SIP

/// One request on its way through the proxy: whose it is, and what became of it so far.
struct Forwarding: Sendable {
    /// As received; without its body once it was answered.
    var request: SIPMessage
    /// As it goes to each device, but for the request URI and Record-Route.
    var outgoing: SIPMessage
    /// Where it came from.
    var source: SIPFlow
    /// The device that sent it; nil within a dialog.
    var sender: Binding?
    var context: ResponseContext
    /// The other flows to a branch's device, to be tried when its own fails.
    var alternatives: [TransactionID: [Binding]] = [:]
    /// The device of each branch, for the log.
    var contacts: [TransactionID: String] = [:]
    /// The branch sent last.
    var lastBranch: TransactionID?
    /// What marks the request should it come back (see `loopHash`).
    var loopMark: String
    /// What it is listed under in `inProgress`.
    var key: RequestKey?
    var started: MonotonicTime
    /// Client transactions that still exist.
    var openBranches = 0
    var isServerEnded = false
    /// Whether it counts as a call that its source is setting up.
    var isCallInSetup = false
}

/// What goes upstream, and the bookkeeping of what is on its way.
extension EnvironmentCore {
    /// Does what a response context decided.
    mutating func perform(_ steps: [ResponseContext.Step], for server: TransactionID, at now: MonotonicTime) {
        for step in steps {
            switch step {
            case .forward(let response): answer(server, with: response, at: now)
            case .answer(let status, let reason):
                guard let request = forwardings[server]?.request else { continue }
                answer(server, with: request.response(status: status, reason: reason), at: now)
            case .cancel(let client, let reason): transactions.cancel(client, reason: reason, at: now)
            case .watch(let client, let deadline):
                ringing.push(client, at: deadline)
                let branches = branchOwners
                ringing.prune(live: branches.count) { branches[$0] != nil }
            }
        }
    }

    /// Sends a response to where the request came from.
    private mutating func answer(_ server: TransactionID, with response: SIPMessage, at now: MonotonicTime) {
        guard let forwarding = forwardings[server], let status = response.status, !response.vias.isEmpty else { return }
        let isSent = transactions.respond(response, in: server, at: now)
        guard status >= 200 else { return }
        if !isSent, status < 300, forwarding.context.isInvite, isAlive(forwarding.source) {
            // A second device answered after the transaction had its end: the caller must still hear of it (16.7 step 5).
            transactions.sendStateless(response, over: forwarding.source)
        }
        if forwarding.isCallInSetup && status >= 300 {
            log(.callFailed(call: forwarding.request.callID ?? "", status: status, reason: response.reason ?? ""))
        }
        endSetup(of: server)
        // Nothing is sent anew from here on.
        forwardings[server]?.request.body = []
        forwardings[server]?.outgoing.body = []
        forwardings[server]?.alternatives = [:]
    }

    /// The first device that answers a call.
    mutating func logAnswer(of client: TransactionID, in server: TransactionID, at now: MonotonicTime) {
        guard let forwarding = forwardings[server], forwarding.isCallInSetup else { return }
        log(
            .callAnswered(
                call: forwarding.request.callID ?? "", contact: forwarding.contacts[client] ?? "",
                afterRinging: now - forwarding.started))
    }

    /// The call is no longer being set up: it was answered, or failed.
    private mutating func endSetup(of server: TransactionID) {
        guard let forwarding = forwardings[server], forwarding.isCallInSetup else { return }
        forwardings[server]?.isCallInSetup = false
        let left = callsBySource[forwarding.source, default: 1] - 1
        callsBySource[forwarding.source] = left > 0 ? left : nil
    }

    /// A transaction has ended; the forwarding it belongs to is forgotten with its last one.
    mutating func forget(_ id: TransactionID) {
        let server: TransactionID
        switch id.role {
        case .client:
            guard let owner = branchOwners.removeValue(forKey: id) else { return }
            server = owner
            forwardings[server]?.openBranches -= 1
        case .server:
            server = id
            endSetup(of: server)
            forwardings[server]?.isServerEnded = true
            if let key = forwardings[server]?.key, inProgress[key] == server { inProgress[key] = nil }
        }
        if let forwarding = forwardings[server], forwarding.isServerEnded, forwarding.openBranches <= 0 {
            forwardings[server] = nil
        }
    }
}
