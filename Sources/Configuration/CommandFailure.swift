/// Why a command failed: the one error that the command line prints and the agent sends.
///
/// As text it is `what failed: why; what to do`; as JSON (it is Codable) the object under `"error"`.
public struct CommandFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// The exit status, and with its name the JSON error's code.
    public var exit: ExitCode
    /// The step that failed, such as `registering`, `ringing`, `media`.
    public var step: String?
    /// The SIP status that the other side sent.
    public var sipStatus: Int?
    /// What failed and why.
    public var message: String
    /// What to do about it.
    public var hint: String?

    /// Creates a failure.
    public init(
        exit: ExitCode, step: String? = nil, sipStatus: Int? = nil, message: String, hint: String? = nil
    ) {
        self.exit = exit
        self.step = step
        self.sipStatus = sipStatus
        self.message = message
        self.hint = hint
    }

    /// One line for people: the message, and the hint after a semicolon.
    public var description: String {
        guard let hint, !hint.isEmpty else { return message }
        return "\(message); \(hint)"
    }
}

extension CommandFailure: Codable {
    private enum CodingKeys: String, CodingKey {
        case code, exitCode, step, sipStatus, message, hint
    }

    /// Reads the object under `"error"` of a JSON answer. `exitCode` decides; a number this version does not know, sent
    /// by a newer peer, is an internal error.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let number = try container.decode(Int32.self, forKey: .exitCode)
        exit = ExitCode(rawValue: number) ?? .internalError
        step = try container.decodeIfPresent(String.self, forKey: .step)
        sipStatus = try container.decodeIfPresent(Int.self, forKey: .sipStatus)
        message = try container.decode(String.self, forKey: .message)
        hint = try container.decodeIfPresent(String.self, forKey: .hint)
    }

    /// Writes the object under `"error"` of a JSON answer: `code`, `exitCode`, `step`, `sipStatus`, `message`, `hint`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(exit.name, forKey: .code)
        try container.encode(exit.rawValue, forKey: .exitCode)
        try container.encodeIfPresent(step, forKey: .step)
        try container.encodeIfPresent(sipStatus, forKey: .sipStatus)
        try container.encode(message, forKey: .message)
        try container.encodeIfPresent(hint, forKey: .hint)
    }
}
