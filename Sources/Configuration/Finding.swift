/// Something that `config check` has to say about the configuration.
public struct Finding: Equatable, Sendable, CustomStringConvertible {
    /// How bad it is.
    public enum Severity: String, Sendable {
        /// Commands refuse to work with this.
        case error
        /// Probably not what was meant.
        case warning
    }

    /// How bad it is.
    public var severity: Severity
    /// The kind of trouble.
    public var code: ConfigurationError.Code
    /// What is wrong, where and why.
    public var message: String
    /// What to do about it.
    public var hint: String?

    /// Creates a finding.
    public init(_ severity: Severity, _ code: ConfigurationError.Code, _ message: String, hint: String? = nil) {
        self.severity = severity
        self.code = code
        self.message = message
        self.hint = hint
    }

    /// The finding of an error that was thrown.
    public init(_ error: ConfigurationError) {
        self.init(.error, error.code, error.message, hint: error.hint)
    }

    /// The same as an error.
    public var error: ConfigurationError { ConfigurationError(code, message, hint: hint) }

    /// `error: message; hint`.
    public var description: String { "\(severity.rawValue): \(message)" + (hint.map { "; \($0)" } ?? "") }
}
