import MediaSession
import Network
import SIP

extension SinchError {
    /// The error for a registration that did not succeed.
    ///
    /// - Parameter cause: what the network said last.
    init(_ failure: RegistrationFailure, cause: NetworkError?) {
        let code: Code
        let hint: String
        switch failure.kind {
        case .unreachable where cause?.code == .tls(.truncated):
            code = .network
            hint = "check that the environment runs"
        case .unreachable where cause?.code == .nameNotFound:
            code = .nameNotFound
            hint = "check the environment's host name"
        case .unreachable where cause?.isTLSFailure == true:
            code = .tls
            hint = "check the environment's host, port and transport, the CA file and the clock of this machine"
        case .refused:
            code = .registrationRefused
            hint = "check that the token, or the secret or password, is for this user, and the clock of this machine"
        case .unreachable:
            code = .network
            hint = "check that the environment runs and that its host and port are right"
        case .timeout:
            code = .timeout
            hint = "check the environment's host, port and transport"
        case .server, .badRequest:
            code = .remote
            hint = "the platform itself reports a problem; try again later"
        }
        self.init(code, failure.reason, hint: hint, step: "registering", sipStatus: failure.status)
    }
}

extension MediaEngine.Scheduling {
    /// Words for status reports.
    var text: String {
        switch self {
        case .realTime(let priority): "real-time (SCHED_FIFO \(priority))"
        case .timeSharing: "time-sharing (real-time scheduling is not permitted here)"
        }
    }
}
