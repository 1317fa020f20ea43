import Configuration
import FoundationEssentials
import MediaSession
import Signalling
import SinchRTC

/// All that is known of one call, as `calls`, `events` and the end of `call` show it.
public struct CallReport: Codable, Sendable {
    /// The call's id.
    public var id: String
    /// `incoming` or `outgoing`.
    public var direction: String
    /// The other side.
    public var remote: String
    /// The name the caller gave itself.
    public var remoteName: String?
    /// `initiating` … `ended`.
    public var state: String
    /// Present and true while this side holds the call.
    public var onHold: Bool?
    /// Present and true while the other side holds the call.
    public var heldByRemote: Bool?
    /// The call that this one follows after a transfer.
    public var previous: String?
    /// When the call passed each state; RFC 3339.
    public var times: [String: String]
    /// Milliseconds from the start of the call to each state.
    public var delays: [String: Double]
    /// Seconds from answer to end (or to now).
    public var duration: Double?
    /// How it ended.
    public var end: End?
    /// Media statistics: current ones while the call lives, final ones afterwards.
    public var media: MediaStatistics?
    /// The stereo recording.
    public var recording: String?
    /// Application headers of the caller.
    public var headers: [String: String]?
    /// Application headers that the callee sent with its answer.
    public var answerHeaders: [String: String]?

    /// How a call ended.
    public struct End: Codable, Sendable {
        /// The SDK's end cause: `hungUp`, `denied`, `noAnswer`, …
        public var cause: String
        /// Whether this side ended it.
        public var isLocal: Bool
        /// The exit code for it.
        public var exitCode: Int32
        /// The exit code's name.
        public var code: String
        /// The SIP status behind it.
        public var sipStatus: Int?
        /// In which step the call was.
        public var step: String
        /// What happened, in words.
        public var message: String
        /// What to do about it.
        public var hint: String?
    }

    /// Describes a call as it is now.
    public init(_ call: SinchCall, media: MediaStatistics? = nil) {
        let details = call.details
        id = call.callId
        direction = call.direction == .incoming ? "incoming" : "outgoing"
        remote = call.remoteUserId
        remoteName = call.remoteDisplayName
        state = call.state.name
        onHold = call.isOnHold ? true : nil
        heldByRemote = call.isHeldByRemote ? true : nil
        previous = call.previousCall?.callId
        headers = call.headers.isEmpty ? nil : call.headers
        let answered = call.direction == .outgoing ? call.remoteHeaders : [:]
        answerHeaders = answered.isEmpty ? nil : answered
        recording = call.media.recording
        self.media = media ?? (call.state == .ended && call.lastStatistics.packetsSent > 0 ? call.lastStatistics : nil)
        let passed: [(String, Date?)] = [
            ("started", details.startedTime), ("progressing", details.progressedTime), ("ringing", details.rungTime),
            ("answered", details.answeredTime), ("established", details.establishedTime), ("ended", details.endedTime),
        ]
        times = [:]
        delays = [:]
        for (name, time) in passed {
            guard let time else { continue }
            times[name] = Timestamps.text(time)
            if let start = details.startedTime, name != "started" {
                delays[name] = (time.timeIntervalSince(start) * 10_000).rounded() / 10
            }
        }
        if let answered = details.answeredTime {
            duration = ((details.endedTime ?? Date()).timeIntervalSince(answered) * 1_000).rounded() / 1_000
        }
        if let termination = details.termination {
            let failure = CallOutcome.failure(of: call, termination: termination)
            let exit = failure?.exit ?? .ok
            end = End(
                cause: details.endCause.rawValue, isLocal: termination.isLocal, exitCode: exit.rawValue,
                code: exit.name, sipStatus: termination.sipStatus, step: details.reachedStep,
                message: failure?.message ?? termination.phrase, hint: failure?.hint)
        }
    }

    /// The failure that the call's end is for a script; nil when it was established and ended normally.
    public var failure: CommandFailure? {
        guard let end, let exit = ExitCode(rawValue: end.exitCode), exit != .ok else { return nil }
        return CommandFailure(
            exit: exit, step: end.step, sipStatus: end.sipStatus, message: end.message, hint: end.hint)
    }
}

/// Times as reports show them.
public enum Timestamps {
    /// RFC 3339 in UTC with milliseconds.
    public static func text(_ date: Date) -> String {
        date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}

/// What the end of a call means for a script: the one table from end reasons to exit codes.
enum CallOutcome {
    static func failure(of call: SinchCall, termination: CallTermination) -> CommandFailure? {
        let remote = call.remoteUserId
        let step = call.details.reachedStep
        func failure(_ exit: ExitCode, _ message: String, _ hint: String? = nil) -> CommandFailure {
            CommandFailure(exit: exit, step: step, sipStatus: termination.sipStatus, message: message, hint: hint)
        }
        switch termination.reason {
        case .hungUp:
            if call.details.establishedTime != nil || call.direction == .incoming { return nil }
            return failure(
                .mediaFailed, "the call to \(remote) ended before media came up",
                "check that the other side's audio works")
        case .canceled:
            return failure(.canceled, "the call was canceled before it was answered")
        case .otherDeviceAnswered:
            return failure(.canceled, "another device answered the call")
        case .declined:
            return failure(.declined, "\(remote) declined the call", nil)
        case .busy:
            return failure(.busy, "\(remote) is busy", "try again later")
        case .noAnswer:
            if termination.sipStatus == 480 {
                return failure(
                    .noAnswer, "\(remote) is not reachable now: no device is registered",
                    "start one: sinchctl start --user \(remote)")
            }
            return failure(
                .noAnswer, "\(remote) did not answer", "give it more time with --ring-timeout, or try later")
        case .timeout:
            return failure(
                .noAnswer, "nothing rang: \(termination.phrase)", "check that the environment routes to \(remote)")
        case .noSuchUser:
            return failure(
                .noSuchUser, "there is no user '\(remote)'",
                "check the name; a user exists once it has registered: sinchctl start --user NAME")
        case .forbidden:
            return failure(.forbidden, "this call is not allowed: \(termination.phrase)")
        case .network:
            return failure(
                .network, "the connection to the environment failed: \(termination.phrase)",
                "check it with: sinchctl status")
        case .media:
            if let error = call.deviceError {
                return CommandFailure(
                    exit: ExitCode(error), step: "media", message: error.message, hint: error.hint)
            }
            return failure(.mediaFailed, "media failed: \(termination.phrase)")
        case .inactive:
            return failure(.mediaFailed, "the call died: \(termination.phrase)", "check the network to the other side")
        case .failed:
            if !call.wasPlaced {
                return failure(.unreachable, "the call could not be placed: \(termination.phrase)")
            }
            return failure(
                .network, "the call failed: \(termination.sipStatus.map { "\($0) " } ?? "")\(termination.phrase)")
        }
    }
}
