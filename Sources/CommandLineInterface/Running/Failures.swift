import Configuration
import Token

extension CommandFailure {
    /// The failure of a command that was given a token: the token is unusable.
    init(reading error: TokenError) {
        self.init(
            exit: error.code == .cryptography ? .internalError : .dataUnusable, message: "token: \(error.message)",
            hint: error.hint)
    }

    /// The failure of a command that makes a token: the fault is in what was asked for, or in the settings.
    init(signing error: TokenError) {
        let exit: ExitCode =
            switch error.code {
            case .cryptography: .internalError
            case .applicationKey, .secret: .configuration
            default: .usage
            }
        self.init(exit: exit, message: "jwt sign: \(error.message)", hint: error.hint)
    }
}
