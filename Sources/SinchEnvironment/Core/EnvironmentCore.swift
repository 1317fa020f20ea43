import Primitives
import SIP

/// The embedded environment without its sockets: registrar with token check, location service and stateful forking proxy.
///
/// A state machine like the layers below: the owner passes in what arrives and the time, takes ``nextAction()`` until it
/// is nil after every call, and calls ``timeout(at:)`` no later than ``nextTimeout``. Not safe for concurrent use.
///
/// Each application is a name space of its own. A client proves who it is by the token of its REGISTER; from then on its
/// requests are recognised by the flow that they come over, together with their From. A request whose From is not
/// registered over its flow is refused, so that no identity can be forged.
public struct EnvironmentCore: Sendable {
    /// What the owner has to do, in order.
    public enum Action: Sendable {
        /// Send the message over the flow.
        case send(SIPMessage, SIPFlow)
        /// Tell the log.
        case log(EnvironmentEvent)
    }

    let configuration: EnvironmentConfiguration
    let domain: Domain
    let registrar: Registrar
    let recordRoute: RecordRoute
    var transactions: TransactionLayer
    var location: LocationService
    var limiter: SourceLimiter
    /// Requests being forwarded, by their server transaction.
    var forwardings: [TransactionID: Forwarding] = [:]
    /// Which forwarding a client transaction is a branch of.
    var branchOwners: [TransactionID: TransactionID] = [:]
    /// Requests outside of dialogs that are in progress, to recognise a second copy on another path.
    var inProgress: [RequestKey: TransactionID] = [:]
    /// Calls that each source is setting up.
    var callsBySource: [SIPFlow: Int] = [:]
    /// Timer C of the branches.
    var ringing = DeadlineQueue<TransactionID>()
    /// Stream connections that brought something and did not close since.
    var connections: Set<SIPFlow> = []

    private var actions: [Action] = []
    private var firstAction = 0

    /// Creates an environment.
    ///
    /// - Parameter random: where tags, branches and the key of the dialogs' tokens come from.
    public init(configuration: EnvironmentConfiguration, random: RandomSource = .system) {
        var random = random
        let sealer = DialogTokenSealer(random: &random)
        self.configuration = configuration
        domain = Domain(configuration)
        registrar = Registrar(configuration)
        recordRoute = RecordRoute(configuration, sealer: sealer)
        let limits = configuration.limits
        let wait = min(max(0, limits.retryAfter), 3_600)
        // The layer's own test for merged requests would refuse a spiral, which a proxy must let pass.
        transactions = TransactionLayer(
            timers: configuration.timers, random: random,
            limits: TransactionLimits(
                clientTransactions: limits.maxTransactions, serverTransactions: limits.maxTransactions,
                retryAfter: wait...(2 * wait), rejectsMergedRequests: false))
        location = LocationService(
            maxBindings: limits.maxRegistrations, maxPerUser: limits.maxContactsPerUser, maxUsers: limits.maxKnownUsers)
        limiter = SourceLimiter(
            messages: limits.messagesPerSource, calls: limits.callsPerSource, refusals: limits.refusalsPerSource,
            maxSources: limits.maxSources)
    }

    /// How many devices are registered.
    public var registrationCount: Int { location.count }

    /// How many requests are being forwarded.
    public var forwardingCount: Int { forwardings.count }

    /// How many transactions are kept, of both roles.
    public var transactionCount: Int { transactions.clientTransactionCount + transactions.serverTransactionCount }

    /// When ``timeout(at:)`` is due; nil while nothing is pending.
    public var nextTimeout: MonotonicTime? {
        [transactions.nextTimeout, location.nextExpiry, ringing.next].compactMap(\.self).min()
    }

    /// The next thing to do; nil when there is nothing. Take all of them after every call.
    public mutating func nextAction() -> Action? {
        guard firstAction < actions.count else {
            actions.removeAll(keepingCapacity: actions.count < 256)
            firstAction = 0
            return nil
        }
        defer { firstAction += 1 }
        return actions[firstAction]
    }

    /// A message from the network.
    ///
    /// - Parameter unixTime: the wall clock in Unix seconds, for tokens and the Date header.
    public mutating func receive(
        _ message: SIPMessage, from flow: SIPFlow, at now: MonotonicTime, unixTime: Int64
    ) {
        noteConnection(flow)
        expireRegistrations(at: now)
        guard isWithinLimits(message, from: flow, at: now) else { return }
        transactions.receive(message, from: flow, at: now)
        drain(at: now, unixTime: unixTime)
    }

    /// A message that could not be read: a request among them is answered with 400 where enough of it is there.
    public mutating func receiveMalformed(
        _ bytes: [UInt8], error: SIPParseError, from flow: SIPFlow, at now: MonotonicTime
    ) {
        noteConnection(flow)
        switch limiter.count(.message, from: flow, at: now) {
        case .drop: return
        case .refuse(let first):
            if first { log(.rateLimited(flow: flow)) }
            return
        case .accept: break
        }
        log(.malformed(flow: flow, reason: error.reason))
        if let response = MalformedRequest.answer(to: bytes, reason: error.reason) { send(response, over: flow) }
    }

    /// Does what the timers ask for. Early and late calls are harmless.
    public mutating func timeout(at now: MonotonicTime) {
        expireRegistrations(at: now)
        transactions.timeout(at: now)
        drain(at: now, unixTime: nil)
        while let client = ringing.popDue(at: now) {
            stopRinging(client, at: now)
        }
        drain(at: now, unixTime: nil)
    }

    /// A connection closed, or a datagram could not be delivered (an ICMP error): the devices behind it are gone, what
    /// waits for their answers fails at once, and calls that they were setting up are cancelled.
    public mutating func flowFailed(_ flow: SIPFlow, reason: String, at now: MonotonicTime) {
        connections.remove(flow)
        if flow.transport.isReliable { limiter.forget(flow) }
        for binding in location.removeAll(over: flow) {
            logDeparture(of: binding, .flowFailed(reason), at: now)
        }
        abandonCalls(from: flow, at: now)
        transactions.transportFailed(flow: flow, reason: reason, at: now)
        drain(at: now, unixTime: nil)
    }

    // MARK: For the extensions

    mutating func send(_ message: SIPMessage, over flow: SIPFlow) {
        actions.append(.send(message, flow))
    }

    mutating func log(_ event: EnvironmentEvent) {
        actions.append(.log(event))
    }

    /// Whether messages can still be sent over a flow: a closed connection never opens again.
    func isAlive(_ flow: SIPFlow) -> Bool {
        !flow.transport.isReliable || connections.contains(flow)
    }

    // MARK: Work

    private mutating func noteConnection(_ flow: SIPFlow) {
        if flow.transport.isReliable { connections.insert(flow) }
    }

    /// Does what the transaction layer asks for, and what follows from that.
    private mutating func drain(at now: MonotonicTime, unixTime: Int64?) {
        while let action = transactions.nextAction() {
            switch action {
            case .transmit(let message, let flow): send(message, over: flow)
            case .request(let request, let id, let flow):
                // Requests come out of `receive` only, which knows the wall clock.
                if let unixTime {
                    dispatch(Incoming(request: request, id: id, flow: flow, now: now, unixTime: unixTime))
                }
            case .response(let response, let id, _): relay(response, of: id, at: now)
            case .cancelled(let invite, let cancel): cancelCall(invite, by: cancel, at: now)
            case .ack(let ack, _, let flow): relayAcknowledgement(ack, from: flow, at: now)
            case .strayResponse(let response, let flow): relayStray(response, from: flow, at: now)
            case .failed(let id, _, let failure): fail(id, failure, at: now)
            case .terminated(let id): forget(id)
            }
        }
    }

    private mutating func expireRegistrations(at now: MonotonicTime) {
        for binding in location.expire(at: now) { logDeparture(of: binding, .expired, at: now) }
    }

    private mutating func logDeparture(
        of binding: Binding, _ reason: EnvironmentEvent.DepartureReason, at now: MonotonicTime
    ) {
        log(
            .unregistered(
                user: binding.user.user, application: binding.user.application,
                contact: binding.contact.uri.description, reason: reason,
                devicesLeft: location.bindings(of: binding.user, at: now).count))
    }
}
