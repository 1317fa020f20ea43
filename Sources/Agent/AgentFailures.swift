import Audio
import Configuration
import SinchRTC
import Token

extension ExitCode {
    /// The exit code for a device or file that cannot be used.
    public init(_ error: AudioError) {
        self =
            switch error.code {
            case .missing: .inputMissing
            case .unusable: .dataUnusable
            case .cannotCreate: .cannotCreate
            case .invalidName: .usage
            case .writeFailed: .ioError
            case .noDevice, .busy, .deviceLost: .mediaFailed
            case .internal: .internalError
            }
    }

    /// The exit code for a failure of the library.
    public init(_ error: SinchError) {
        self =
            switch error.code {
            case .invalidArgument: .usage
            case .unsupportedEnvironment: .configuration
            case .notStarted: .unreachable
            case .registrationRefused, .unknownApplication, .noCredentials: .registrationRefused
            case .network, .nameNotFound, .remote: .network
            case .timeout: .network
            case .tls: .tls
            case .busy: .busy
            case .declined: .declined
            case .noAnswer: .noAnswer
            case .noSuchUser: .noSuchUser
            case .forbidden: .forbidden
            case .media: .mediaFailed
            case .audioDevice: .mediaFailed
            case .internal: .internalError
            }
    }
}

extension CommandFailure {
    /// The failure for an error of the library.
    public init(_ error: SinchError) {
        self.init(
            exit: ExitCode(error), step: error.step, sipStatus: error.sipStatus, message: error.message,
            hint: error.hint)
    }

    /// The failure for a device or file that cannot be used.
    public init(_ error: AudioError) {
        self.init(exit: ExitCode(error), message: error.message, hint: error.hint)
    }

    /// The failure for a token that cannot be used.
    public init(_ error: TokenError) {
        self.init(exit: .dataUnusable, step: "token", message: error.message, hint: error.hint)
    }
}
