import FoundationEssentials
import Signalling

/// What is known of one call: when it passed its states and how it ended.
public struct SinchCallDetails: Sendable {
    /// Why a call ended.
    public enum EndCause: String, Sendable, Codable {
        /// The call has not ended.
        case none
        /// It never rang.
        case timeout
        /// The callee, or the platform on its behalf, refused.
        case denied
        /// It rang and nobody answered.
        case noAnswer
        /// Something failed; `error` says what.
        case error
        /// One side hung up.
        case hungUp
        /// The caller gave up before the answer.
        case canceled
        /// Another device of the callee answered.
        case otherDeviceAnswered
        /// Media stopped coming.
        case inactive
        /// Kept for source compatibility; does not happen on Linux.
        case voipCallDetected
        /// Kept for source compatibility; does not happen on Linux.
        case gsmCallDetected
    }

    /// When the call was started.
    public internal(set) var startedTime: Date?
    /// When the platform began to work on it.
    public internal(set) var progressedTime: Date?
    /// When it began to ring.
    public internal(set) var rungTime: Date?
    /// When it was answered.
    public internal(set) var answeredTime: Date?
    /// When media came up.
    public internal(set) var establishedTime: Date?
    /// When it ended.
    public internal(set) var endedTime: Date?
    /// Why it ended.
    public internal(set) var endCause = EndCause.none
    /// What failed; non-nil only when `endCause` is `error`.
    public internal(set) var error: Error?
    /// Video has no meaning here: always false.
    public let isVideoOffered = false
    /// How it ended in SIP's terms, beyond what the SDK says; nil before the end.
    public internal(set) var termination: CallTermination?

    /// A line for logs.
    public var toString: String {
        "startedTime=\(Self.text(startedTime)) progressedTime=\(Self.text(progressedTime)) "
            + "rungTime=\(Self.text(rungTime)) answeredTime=\(Self.text(answeredTime)) "
            + "establishedTime=\(Self.text(establishedTime)) endedTime=\(Self.text(endedTime)) "
            + "endCause=\(endCause.rawValue) error=\(error.map { "\($0)" } ?? "nil")"
    }

    private static func text(_ date: Date?) -> String {
        date.map { $0.formatted(.iso8601) } ?? "nil"
    }

    /// Records the end: the one table from SIP's reasons to the SDK's causes.
    mutating func end(_ termination: CallTermination, at time: Date) {
        endedTime = time
        self.termination = termination
        endCause =
            switch termination.reason {
            case .hungUp: .hungUp
            case .canceled: .canceled
            case .declined, .busy: .denied
            case .noAnswer: .noAnswer
            case .timeout: .timeout
            case .otherDeviceAnswered: .otherDeviceAnswered
            case .inactive: .inactive
            case .noSuchUser, .forbidden, .network, .media, .failed: .error
            }
        if endCause == .error { error = SinchError(termination, step: reachedStep) }
    }

    /// How far the call came: `calling`, `ringing`, `media` (answered, but not heard yet) or `established`.
    public var reachedStep: String {
        if establishedTime != nil { return "established" }
        if answeredTime != nil { return "media" }
        if rungTime != nil { return "ringing" }
        return "calling"
    }
}

extension SinchError {
    /// The error for a call that ended with a failure.
    init(_ termination: CallTermination, step: String) {
        let code: Code
        var hint: String?
        switch termination.reason {
        case .noSuchUser:
            code = .noSuchUser
            hint = "check the name; a user exists once it has registered"
        case .forbidden: code = .forbidden
        case .network:
            code = .network
            hint = "check that the environment runs and can be reached"
        case .media, .inactive: code = .media
        case .busy: code = .busy
        case .timeout, .noAnswer: code = .timeout
        default: code = .remote
        }
        self.init(code, termination.phrase, hint: hint, step: step, sipStatus: termination.sipStatus)
    }
}
