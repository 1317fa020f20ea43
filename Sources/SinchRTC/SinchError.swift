import Signalling

/// Why something failed: a code for programs, and for people what failed, why and what to do.
public struct SinchError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The classes of failure.
    public enum Code: String, Sendable, Codable {
        /// An argument breaks a documented rule.
        case invalidArgument
        /// The environment host belongs to the vendor's own cloud.
        case unsupportedEnvironment
        /// The client is not started, or was terminated.
        case notStarted
        /// The platform refused the token or the user.
        case registrationRefused
        /// The platform does not know the application that issued the token.
        case unknownApplication
        /// No token was supplied.
        case noCredentials
        /// The platform cannot be reached.
        case network
        /// A name could not be resolved.
        case nameNotFound
        /// TLS failed, or a token would have gone over an unprotected transport.
        case tls
        /// No answer in time.
        case timeout
        /// The callee is busy.
        case busy
        /// The other side, or a new callee, refused.
        case declined
        /// A new callee did not answer.
        case noAnswer
        /// There is no such user.
        case noSuchUser
        /// This caller may not make this call.
        case forbidden
        /// Media could not be set up, or never came.
        case media
        /// An audio device or file cannot be used.
        case audioDevice
        /// The other side or the platform failed.
        case remote
        /// A fault of this library.
        case `internal`
    }

    /// The class of the failure.
    public var code: Code
    /// What failed and why.
    public var message: String
    /// What to do about it, where that is known.
    public var hint: String?
    /// In which step it failed: `registering`, `calling`, `ringing`, `media`, …
    public var step: String?
    /// The SIP status that caused it, where one did.
    public var sipStatus: Int?

    /// Creates an error.
    public init(
        _ code: Code, _ message: String, hint: String? = nil, step: String? = nil, sipStatus: Int? = nil
    ) {
        self.code = code
        self.message = message
        self.hint = hint
        self.step = step
        self.sipStatus = sipStatus
    }

    /// What failed, why and what to do, in one line.
    public var description: String {
        hint.map { "\(message); \($0)" } ?? message
    }
}
