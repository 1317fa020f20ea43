import Primitives

/// The transactions of one SIP element: RFC 3261 section 17 with RFC 6026, and the matching of section 9 and 18.
///
/// A state machine without sockets or clock. The owner passes in what arrives and the time, and after every call
/// takes ``nextAction()`` until it is nil; it calls ``timeout(at:)`` no later than ``nextTimeout``. Not safe for
/// concurrent use: keep it in one actor.
///
/// Requests are checked with `SIPMessage.validate()` here: a faulty one is answered (without a transaction) as the
/// fault says or dropped, a faulty response is dropped, so that users see valid messages only.
///
/// An INVITE server transaction waits for its user's final response without limit; every other state ends by
/// itself. The repetition of 2xx responses until the ACK, and of 1xx each minute, is the user's (sections
/// 13.3.1.4 and 13.3.1.1).
public struct TransactionLayer: Sendable {
    let timers: SIPTimerSettings
    let limits: TransactionLimits
    var random: RandomSource
    var clients = TransactionTable<ClientTransaction>()
    var servers = TransactionTable<ServerTransaction>()
    /// Requests outside dialogs that are being served, to notice the same one on another path.
    var merging: [MergeKey: TransactionID] = [:]
    /// INVITEs answered with 2xx, by what their ACK will carry.
    var acknowledgements: [AcknowledgementKey: TransactionID] = [:]
    var actions = FIFO<Action>()

    /// Creates an empty layer.
    public init(
        timers: SIPTimerSettings = .init(), random: RandomSource = .system, limits: TransactionLimits = .init()
    ) {
        self.timers = timers
        self.random = random
        self.limits = limits
    }

    /// How many client transactions there are.
    public var clientTransactionCount: Int { clients.count }

    /// How many server transactions there are.
    public var serverTransactionCount: Int { servers.count }

    /// When ``timeout(at:)`` is due; nil while nothing is pending.
    public var nextTimeout: MonotonicTime? {
        switch (clients.nextDeadline, servers.nextDeadline) {
        case (let client?, let server?): min(client, server)
        case (let client, let server): client ?? server
        }
    }

    /// The next thing to do; nil when there is nothing. Take all of them after every call.
    public mutating func nextAction() -> Action? {
        actions.next()
    }

    /// Does what the timers ask for. Early and late calls are harmless.
    public mutating func timeout(at now: MonotonicTime) {
        while let id = clients.due(at: now) {
            let demand = clients.update(id, &actions) { $0.timeout(at: now, into: &$1) }
            fulfil(demand, of: id, at: now)
        }
        while let id = servers.due(at: now) {
            changeServer(id) { $0.timeout(at: now, into: &$1) }
        }
    }

    /// A flow is broken: its client transactions fail now instead of timing out. When it was a connection, the
    /// server transactions on it end too, since nobody can be answered; those without a final response fail.
    public mutating func transportFailed(flow: SIPFlow, reason: String, at now: MonotonicTime) {
        for id in clients.ids where clients[id]?.flow == flow {
            clients.update(id, &actions) { $0.fail(.transport(reason), &$1) }
        }
        guard flow.transport.isReliable else { return }
        for id in servers.ids where servers[id]?.source == flow {
            changeServer(id) { $0.fail(reason, into: &$1) }
        }
    }

    /// A request of ours could not be sent, while its flow goes on.
    public mutating func transportFailed(request: SIPMessage, reason: String, at now: MonotonicTime) {
        guard let branch = request.topVia?.branch, let method = request.method else { return }
        clients.update(TransactionID(clientBranch: branch, method: method), &actions) {
            $0.fail(.transport(reason), &$1)
        }
    }

    /// A message from the network.
    public mutating func receive(_ message: SIPMessage, from flow: SIPFlow, at now: MonotonicTime) {
        if message.isRequest {
            receiveRequest(message, from: flow, at: now)
        } else {
            receiveResponse(message, from: flow, at: now)
        }
    }

    /// A branch that no other element makes: the magic cookie and 128 random bits.
    public mutating func makeBranch() -> String {
        // Two draws: the kernel's generator costs a system call each, `hexadecimal` one for each digit.
        let digits = [random.next(), random.next()].map { half in
            let text = String(half, radix: 16)
            return String(repeating: "0", count: 16 - text.utf8.count) + text
        }
        return TransactionID.magicCookie + digits.joined()
    }
}
