import Audio
import FoundationEssentials
import MediaSession
import Signalling
import Synchronization

/// One call. Every method may be called on any thread, in any state.
public final class SinchCall: Sendable {
    /// The states of a call, in order.
    public enum State: Int, Sendable, Comparable {
        /// Started; nothing came back yet. An incoming call stays here until it is answered.
        case initiating
        /// The platform works on it (outgoing only).
        case progressing
        /// It rings (outgoing only).
        case ringing
        /// Answered; media is not up yet.
        case answered
        /// Both sides hear each other.
        case established
        /// Over.
        case ended

        /// Orders states by how far the call has come.
        public static func < (left: State, right: State) -> Bool { left.rawValue < right.rawValue }

        /// The state's name, as `status` and events show it.
        public var name: String {
            switch self {
            case .initiating: "initiating"
            case .progressing: "progressing"
            case .ringing: "ringing"
            case .answered: "answered"
            case .established: "established"
            case .ended: "ended"
            }
        }
    }

    /// Who placed the call.
    public enum Direction: Int, Sendable {
        /// The other side.
        case incoming
        /// We.
        case outgoing
    }

    private struct Mutable {
        var state = State.initiating
        var details = SinchCallDetails()
        var userInfo: (any Sendable)?
        var media = SinchCallMedia()
        var lastStatistics = MediaStatistics()
        var deviceError: AudioError?
        var wasPlaced = false
        var remoteHeaders: [String: String] = [:]
        var isOnHold = false
        var isHeldByRemote = false
    }

    /// Names the call; the SIP Call-ID.
    public let callId: String
    /// The other side's user id, number or address. For an incoming call, the one that the platform vouches for, where
    /// it does (P-Asserted-Identity, RFC 3325), else the one that the caller gave itself.
    public let remoteUserId: String
    /// The name that the caller gave itself; nil for outgoing calls.
    public let remoteDisplayName: String?
    /// The call of this client that this one follows: the other side of it was transferred to us, or we were transferred.
    /// That call ends by itself. Nil for a call of its own.
    public let previousCall: SinchCall?
    /// Who placed the call.
    public let direction: Direction
    /// Application headers: ours of an outgoing call, the caller's of an incoming one.
    public let headers: [String: String]

    private let mutable: Mutex<Mutable>
    private let delegateReference = DelegateReference<any SinchCallDelegate>()
    private let core: ClientCore

    init(
        callId: String, remoteUserId: String, remoteDisplayName: String? = nil, direction: Direction,
        headers: [String: String], previousCall: SinchCall? = nil, core: ClientCore
    ) {
        self.callId = callId
        self.previousCall = previousCall
        self.remoteUserId = remoteUserId
        self.remoteDisplayName = remoteDisplayName
        self.direction = direction
        self.headers = headers
        self.core = core
        var initial = Mutable()
        initial.details.startedTime = Date()
        mutable = Mutex(initial)
    }

    /// Who is told of the call's progress; held weakly.
    public var delegate: (any SinchCallDelegate)? {
        get { delegateReference.value }
        set { delegateReference.value = newValue }
    }

    /// Where the call stands.
    public var state: State { mutable.withLock { $0.state } }

    /// When the call passed its states and how it ended.
    public var details: SinchCallDetails { mutable.withLock { $0.details } }

    /// A place for the application's own data.
    public var userInfo: (any Sendable)? {
        get { mutable.withLock { $0.userInfo } }
        set { mutable.withLock { $0.userInfo = newValue } }
    }

    /// What the call does with sound; what is set after the answer has no effect.
    public var media: SinchCallMedia {
        get { mutable.withLock { $0.media } }
        set { mutable.withLock { $0.media = newValue } }
    }

    /// The statistics when the call ended; all zero before.
    public internal(set) var lastStatistics: MediaStatistics {
        get { mutable.withLock { $0.lastStatistics } }
        set { mutable.withLock { $0.lastStatistics = newValue } }
    }

    /// The audio device or file that could not be used, when that ended the call.
    public internal(set) var deviceError: AudioError? {
        get { mutable.withLock { $0.deviceError } }
        set { mutable.withLock { $0.deviceError = newValue } }
    }

    /// Whether anything of the call reached the wire.
    public internal(set) var wasPlaced: Bool {
        get { mutable.withLock { $0.wasPlaced } }
        set { mutable.withLock { $0.wasPlaced = newValue } }
    }

    /// Application headers of the other side: the caller's as in `headers`, or those that the callee sent with its answer.
    public var remoteHeaders: [String: String] {
        direction == .incoming ? headers : mutable.withLock { $0.remoteHeaders }
    }

    /// Whether this side put the call on hold: nothing is sent or heard.
    public var isOnHold: Bool { mutable.withLock { $0.isOnHold } }

    /// Whether the other side put the call on hold: it does not listen.
    public var isHeldByRemote: Bool { mutable.withLock { $0.isHeldByRemote } }

    /// Answers an incoming call; does nothing in any other state.
    public func answer() {
        core.perform { $0.answer(self) }
    }

    /// Answers an incoming call, with application headers that the caller can read.
    ///
    /// - Throws: `SinchError` with code `invalidArgument` for headers that break the rules of call headers.
    public func answer(headers: [String: String]) throws {
        try Identifiers.checkHeaders(headers)
        core.perform { $0.answer(self, headers: headers) }
    }

    /// Ends the call in whatever state: hangs up, cancels, or declines an unanswered incoming call.
    public func hangup() {
        core.perform { $0.hangUp(self, status: 603) }
    }

    /// Why the local side ends a call, for reports and the Reason header.
    public enum HangUpReason: Sendable {
        /// The user wants it.
        case user
        /// Nobody answered in the time given.
        case noAnswer
    }

    /// Ends the call for a reason: `noAnswer` gives up an unanswered call with that end cause.
    public func hangup(reason: HangUpReason) {
        core.perform { core in
            switch reason {
            case .user: core.hangUp(self, status: 603)
            case .noAnswer: core.giveUpRinging(self)
            }
        }
    }

    /// Refuses an unanswered incoming call as busy (the caller's devices all stop); else hangs up.
    public func hangupBusy() {
        core.perform { $0.hangUp(self, status: 486) }
    }

    /// Reads the call's media statistics; the last ones once it has ended.
    ///
    /// - Parameter completion: called once on the callback queue.
    public func statistics(completion: @escaping @Sendable (MediaStatistics) -> Void) {
        core.perform { $0.statistics(of: self, completion: completion) }
    }

    /// Mutes or unmutes this call's microphone alone, also before the answer.
    public func setMuted(_ muted: Bool) {
        core.perform { $0.setMuted(muted, call: self) }
    }

    // MARK: From the core

    /// Runs work on the core.
    func perform(_ work: @escaping @Sendable (isolated ClientCore) -> Void) {
        core.perform(work)
    }

    /// The domain of the client's users.
    var domain: String { core.domain }

    /// Tells the delegate something on the callback queue.
    func tell(_ work: @escaping @Sendable (any SinchCallDelegate) -> Void) {
        callBack { [self] in
            if let delegate { work(delegate) }
        }
    }

    func setRemoteHeaders(_ headers: [String: String]) {
        mutable.withLock { $0.remoteHeaders = headers }
    }

    /// Notes who holds the call, and tells the delegate what has changed.
    func setHold(local: Bool, remote: Bool) {
        let before = mutable.withLock { mutable -> (local: Bool, remote: Bool) in
            defer {
                mutable.isOnHold = local
                mutable.isHeldByRemote = remote
            }
            return (mutable.isOnHold, mutable.isHeldByRemote)
        }
        if before.local != local {
            log(.info, "call", "\(callId) \(local ? "on hold" : "resumed")")
            tell { [self] delegate in local ? delegate.callDidHold(self) : delegate.callDidResume(self) }
        }
        if before.remote != remote {
            log(.info, "call", "\(callId) \(remote ? "held" : "resumed") by the other side")
            tell { [self] delegate in
                remote ? delegate.callDidGetHeld(self) : delegate.callDidGetResumed(self)
            }
        }
    }

    /// Moves the state forward, notes the time, and tells the delegate. Backward moves are ignored.
    ///
    /// - Parameter error: what `details` report; nil: what follows from the termination.
    func advance(to state: State, termination: CallTermination? = nil, error: SinchError? = nil) {
        let moved = mutable.withLock { mutable -> Bool in
            guard state > mutable.state else { return false }
            mutable.state = state
            let now = Date()
            switch state {
            case .initiating: break
            case .progressing: mutable.details.progressedTime = now
            case .ringing: mutable.details.rungTime = now
            case .answered: mutable.details.answeredTime = now
            case .established: mutable.details.establishedTime = now
            case .ended:
                mutable.details.end(
                    termination ?? CallTermination(.failed, isLocal: true, phrase: "ended without a reason"), at: now)
                if let error { mutable.details.error = error }
            }
            return true
        }
        guard moved else { return }
        log(.info, "call", "\(callId) \(state.name)")
        callBack { [self] in
            guard let delegate else { return }
            switch state {
            case .initiating: break
            case .progressing: delegate.callDidProgress(self)
            case .ringing: delegate.callDidRing(self)
            case .answered: delegate.callDidAnswer(self)
            case .established: delegate.callDidEstablish(self)
            case .ended: delegate.callDidEnd(self)
            }
        }
    }
}
