import Primitives
import STUN

/// Finds a path for one call's media through NATs and firewalls (RFC 8445, with trickle ICE of RFC 8838).
///
/// One component: RTP and RTCP share it. A value without sockets or clock: the owner calls an input with the time,
/// then drains ``nextAction()``, and calls ``timeout(at:)`` no later than ``nextTimeout``.
///
/// Pairs are not frozen: with one component there is nothing to be learned from another one's success.
public struct ICEAgent: Sendable {
    /// What the owner has to do.
    public enum Action: Sendable {
        /// Send bytes from that socket.
        case send([UInt8], socket: Int, to: STUNAddress)
        /// A candidate was found: tell the peer.
        case candidate(ICECandidate)
        /// No further candidates follow.
        case gathered
        /// Media goes over this path from now on.
        case selected(ICEPath)
        /// No path was found, or the one there was is lost: nothing may be sent any more.
        case failed(ICEFailure)
    }

    /// What an arriving datagram was.
    public enum Reception: Sendable, Equatable {
        /// STUN, TURN or rubbish.
        case consumed
        /// Somebody's payload: media, DTLS. The address is the peer's, also when a relay brought it.
        case payload([UInt8], from: STUNAddress)
    }

    /// What became of it all, for statistics.
    public struct Counters: Sendable, Equatable {
        /// Checks sent, repetitions included.
        public var checksSent = 0
        /// Checks of the peer answered.
        public var checksAnswered = 0
        /// STUN messages that did not authenticate, or came from where they should not.
        public var rejected = 0
    }

    /// How this side proves itself; changes with ``restart(at:)``.
    public private(set) var localCredentials: ICECredentials
    /// The path in use.
    public internal(set) var path: ICEPath?
    /// What happened so far.
    public internal(set) var counters = Counters()
    /// Candidates found so far, the best first.
    public var localCandidates: [ICECandidate] { locals.sorted { $0.priority > $1.priority } }
    /// Whether no further local candidates follow.
    public internal(set) var isGathered = false

    let configuration: ICEConfiguration
    var random: RandomSource
    var sockets: [ICESocket] = []
    var locals: [ICECandidate] = []
    var relays: [Relay] = []
    var probes: [STUNTransactionID: Probe] = [:]
    var gatheringDeadline: MonotonicTime?

    var remoteCredentials: ICECredentials?
    var remotes: [ICECandidate] = []
    var isRemoteComplete = false
    var isControlling = false
    let tieBreaker: UInt64
    var pairs: [CheckPair] = []
    /// Pairs to be checked before all others, first come first served (RFC 8445, section 6.1.4.1).
    var triggered: [Int] = []
    var checks: [STUNTransactionID: Check] = [:]
    var nextCheck: MonotonicTime?
    var nominationDeadline: MonotonicTime?
    var checkDeadline: MonotonicTime?
    /// The pair that media goes over.
    var selectedPair: Int?
    /// The pair that waits for its channel at the relay.
    var bindingPair: Int?
    /// When that was chosen.
    var selectionTime = MonotonicTime.zero
    var nextConsent: MonotonicTime?
    var consentUntil: MonotonicTime?
    var hasFailed = false

    private var actions: [Action] = []
    private var drained = 0

    /// Creates an agent that does nothing yet.
    public init(configuration: ICEConfiguration = .init(), random: RandomSource = .system) {
        var random = random
        localCredentials = ICECredentials(using: &random)
        tieBreaker = random.next()
        self.configuration = configuration
        self.random = random
    }

    // MARK: Inputs

    /// The peer's side as its description says, and who is in control: the side that offered, or the full one when the
    /// other is `ice-lite` (RFC 8445, section 6.1.1). Checks begin.
    public mutating func start(
        remote credentials: ICECredentials, candidates: [ICECandidate], isControlling: Bool, at now: MonotonicTime
    ) {
        guard remoteCredentials == nil else { return }
        remoteCredentials = credentials
        self.isControlling = isControlling
        checkDeadline = now + configuration.checkLimit
        nextCheck = nextCheck ?? now
        // Those whose checks came before their description are to be checked, too.
        for index in pairs.indices { triggered.append(index) }
        for candidate in candidates { add(candidate, at: now) }
        settle(at: now)
    }

    /// A further candidate of the peer (trickle ICE).
    public mutating func addRemote(_ candidate: ICECandidate, at now: MonotonicTime) {
        add(candidate, at: now)
        settle(at: now)
    }

    /// The peer has no further candidates.
    public mutating func endRemoteCandidates(at now: MonotonicTime) {
        isRemoteComplete = true
        settle(at: now)
    }

    /// A datagram arrived at a socket of ours.
    public mutating func receive(
        _ bytes: [UInt8], on socket: Int, from source: STUNAddress, at now: MonotonicTime
    ) -> Reception {
        defer { settle(at: now) }
        if let index = relays.firstIndex(where: { $0.socket == socket && $0.server == source }) {
            relays[index].client.receive(bytes, at: now)
            return drainRelay(index, at: now)
        }
        return receive(bytes, over: .socket(socket), from: source, at: now)
    }

    /// Time passed.
    public mutating func timeout(at now: MonotonicTime) {
        gatheringTimeout(at: now)
        checkTimeout(at: now)
        settle(at: now)
    }

    /// Begins anew with other credentials, over the sockets given (RFC 8445, section 9): the network changed, or the
    /// peer asked for it. The path that there is stays in use until a better one is found.
    public mutating func restart(sockets: [ICESocket], servers: [ICEServerAddress], at now: MonotonicTime) {
        let fresh = ICEAgent(configuration: configuration, random: random)
        var next = fresh
        next.random = RandomSource(continuing: &random)
        next.path = path
        next.counters = counters
        for index in relays.indices { relays[index].client.release(at: now) }
        for index in relays.indices { _ = drainRelay(index, at: now) }
        next.actions = Array(actions[drained...])
        self = next
        gather(sockets: sockets, servers: servers, at: now)
    }

    /// The call is over: relays are given back.
    public mutating func close(at now: MonotonicTime) {
        for index in relays.indices {
            relays[index].client.release(at: now)
            _ = drainRelay(index, at: now)
        }
        hasFailed = true
    }

    // MARK: Outputs

    /// When ``timeout(at:)`` is to be called; nil when nothing is awaited.
    public var nextTimeout: MonotonicTime? {
        guard !hasFailed else { return nil }
        var times = [gatheringDeadline, nextConsent, consentUntil, nominationDeadline].compactMap(\.self)
        if path == nil, let checkDeadline { times.append(checkDeadline) }
        if let nextCheck, hasCheckToSend { times.append(nextCheck) }
        times += probes.values.map(\.retransmission.next)
        times += checks.values.compactMap(\.retransmission?.next)
        times += relays.compactMap(\.client.nextTimeout)
        return times.min()
    }

    /// The next thing to do; nil when all is done.
    public mutating func nextAction() -> Action? {
        guard drained < actions.count else {
            actions.removeAll(keepingCapacity: true)
            drained = 0
            return nil
        }
        defer { drained += 1 }
        return actions[drained]
    }

    mutating func emit(_ action: Action) {
        actions.append(action)
    }

    /// Sends over a socket or through a relay.
    mutating func send(_ bytes: [UInt8], over base: Base, to address: STUNAddress) {
        switch base {
        case .socket(let id): emit(.send(bytes, socket: id, to: address))
        case .relay(let index):
            guard relays.indices.contains(index) else { return }
            let wrapped = relays[index].client.wrap(bytes, to: address)
            emit(.send(wrapped, socket: relays[index].socket, to: relays[index].server))
        }
    }
}

/// Where media goes.
public struct ICEPath: Hashable, Sendable {
    /// The socket to send from.
    public var socket: Int
    /// Where to send to: the peer, or the relay.
    public var destination: STUNAddress
    /// The channel at the relay whose 4-byte header each packet gets; nil when there is none on the way.
    public var channel: UInt16?
    /// The peer's address as checks know it.
    public var remote: STUNAddress
    /// How our side's address was found.
    public var localKind: ICECandidate.Kind
    /// How the peer's was.
    public var remoteKind: ICECandidate.Kind
}

/// Why there is no path.
public enum ICEFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// No pair of addresses works.
    case noPath
    /// The peer stopped answering (RFC 7675).
    case consentLost

    /// What happened, in one line.
    public var description: String {
        switch self {
        case .noPath:
            "no path to the other side's media was found: both may be behind NATs that need a TURN server"
        case .consentLost: "the other side no longer answers at its media address"
        }
    }
}

extension RandomSource {
    /// A source that goes on independently of another one.
    init(continuing other: inout RandomSource) {
        switch other {
        case .system: self = .system
        case .seeded: self = .seeded(other.next())
        }
    }
}
