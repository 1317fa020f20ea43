import Primitives
import SDP
import SIP

/// A SIP user agent for one user: registration, calls, and nothing that touches the machine.
///
/// It is a value without sockets, threads or a clock. Whoever drives it calls one of its inputs (`receive`, `timeout`,
/// `flowOpened`, `call`, …) with the time, and then drains `nextAction` until it returns nil; `nextTimeout` says when
/// to call `timeout` at the latest. So two user agents and a proxy make whole calls in simulated time (RFC 3261).
public struct UserAgent: Sendable {
    /// Who this is, and its limits.
    public let configuration: UserAgentConfiguration
    /// The path over which everything goes; nil while there is none.
    public internal(set) var path: RegisteredFlow?

    var transactions: TransactionLayer
    var registration: RegistrationMachine?
    /// The REGISTER that waits for its final response.
    var registrationTransaction: TransactionID?
    /// A REGISTER that waits for its flow.
    var pendingRegister: SIPMessage?
    var isOpeningFlow = false
    /// Whether the registrar has confirmed a binding over the current path, so that it knows requests from there.
    var isPathRegistered = false
    /// When the registrar last confirmed the binding.
    var lastRegistered: MonotonicTime?
    /// Keeps the path alive once it is registered.
    var keepAlive: KeepAlive?
    var authenticator: Authenticator
    /// The protection spaces of our own platform: a challenge for another one is never answered.
    var realms: Set<String>
    var calls: [CallHandle: Call] = [:]
    /// Which leg a client or server transaction belongs to.
    var legs: [TransactionID: CallHandle] = [:]
    /// INVITEs of ours that were answered, while further answers may come.
    var answeredInvites: [TransactionID: AnsweredInvite] = [:]
    var random: RandomSource
    private var nextHandle: UInt64 = 1
    private var actions: [UserAgentAction] = []
    private var drained = 0

    /// Creates a user agent that does nothing until `start`.
    public init(configuration: UserAgentConfiguration, random: RandomSource = .system) {
        self.configuration = configuration
        self.random = random
        transactions = TransactionLayer(timers: configuration.timers, random: random)
        realms = [configuration.domain]
        authenticator = Authenticator(credentials: [], random: random, realms: realms)
    }

    // MARK: Inputs

    /// A message arrived over a flow. Messages from elsewhere than the platform are dropped.
    public mutating func receive(_ message: SIPMessage, from flow: SIPFlow, at now: MonotonicTime) {
        guard isFromPlatform(message, over: flow) else { return }
        transactions.receive(message, from: flow, at: now)
        settle(at: now)
    }

    /// Time passed; call it when `nextTimeout` is reached.
    public mutating func timeout(at now: MonotonicTime) {
        transactions.timeout(at: now)
        keepAliveTimeout(at: now)
        if let due = registration?.nextTimeout, due <= now {
            registration?.timeout(at: now)
        }
        settle(at: now)
        for handle in handles where calls[handle]?.nextTimeout ?? .distantFuture <= now {
            callTimeout(handle, at: now)
        }
        settle(at: now)
    }

    /// When `timeout` must be called at the latest; nil when nothing is pending.
    public var nextTimeout: MonotonicTime? {
        var earliest = transactions.nextTimeout
        func consider(_ time: MonotonicTime?) {
            if let time, time < earliest ?? .distantFuture { earliest = time }
        }
        consider(registration?.nextTimeout)
        consider(keepAlive?.nextTimeout)
        for call in calls.values { consider(call.nextTimeout) }
        return earliest
    }

    /// The next thing to do, nil when all is done. Drain it after every input.
    public mutating func nextAction() -> UserAgentAction? {
        guard drained < actions.count else {
            actions.removeAll(keepingCapacity: true)
            drained = 0
            return nil
        }
        defer { drained += 1 }
        return actions[drained]
    }

    /// Whether the wire still needs something for a call, told ended or not: a BYE, CANCEL or ACK is under way.
    public var hasUnfinishedCalls: Bool { !calls.isEmpty }

    // MARK: Inside

    /// The calls from the oldest to the youngest, so that what is done for all of them has an order.
    var handles: [CallHandle] { calls.keys.sorted { $0.number < $1.number } }

    mutating func emit(_ action: UserAgentAction) {
        actions.append(action)
    }

    mutating func makeHandle() -> CallHandle {
        defer { nextHandle &+= 1 }
        return CallHandle(number: nextHandle)
    }

    /// Carries what the transaction layer and the registration have to say to whom it concerns, until both are silent.
    mutating func settle(at now: MonotonicTime) {
        var isSettled = false
        while !isSettled {
            isSettled = true
            while let action = transactions.nextAction() {
                isSettled = false
                handle(action, at: now)
            }
            while let action = registration?.nextAction() {
                isSettled = false
                handle(action, at: now)
            }
        }
    }

    private mutating func handle(_ action: TransactionLayer.Action, at now: MonotonicTime) {
        switch action {
        case .transmit(let message, let flow):
            emit(.transmit(message, flow))
        case .response(let response, let id, _):
            if id == registrationTransaction {
                receiveRegistration(response, at: now)
            } else if let handle = legs[id] {
                receiveResponse(response, in: id, of: handle, at: now)
            }
        case .request(let request, let id, let flow):
            receiveRequest(request, in: id, from: flow, at: now)
        case .cancelled(let invite, let cancel):
            if let handle = legs[invite] { receiveCancel(cancel, of: handle, at: now) }
        case .ack(let ack, _, _):
            receiveAck(ack, at: now)
        case .strayResponse(let response, _):
            receiveStray(response, at: now)
        case .failed(let id, let request, let failure):
            if id == registrationTransaction {
                registrationTransaction = nil
                registration?.requestFailed(failure, at: now)
            } else if let handle = legs[id] {
                transactionFailed(id, request: request, of: handle, failure: failure, at: now)
            }
        case .terminated(let id):
            legs[id] = nil
            answeredInvites[id] = nil
        }
    }
}
