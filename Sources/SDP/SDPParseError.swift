/// Why a session description could not be read.
public struct SDPParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Code: String, Sendable {
        /// More bytes, lines, attributes, media or formats than the limits allow.
        case tooLarge
        /// A byte that no line may hold: NUL, or a carriage return inside a line.
        case invalidCharacter
        /// A mandatory line is missing.
        case missingLine
        /// A line stands where it must not, or twice.
        case misplacedLine
        /// A line does not have the form its type asks for.
        case malformedLine
    }

    /// The kind of failure.
    public var code: Code
    /// The line it was found in, counted from 1; 0 when no single line is to blame.
    public var line: Int
    /// What is wrong, and which clause says so.
    public var reason: String

    /// Creates an error.
    public init(code: Code, line: Int, reason: String) {
        self.code = code
        self.line = line
        self.reason = reason
    }

    /// One line for people.
    public var description: String {
        line > 0 ? "SDP line \(line): \(reason)" : "SDP: \(reason)"
    }
}

/// How much of a peer's session description is read; beyond it the whole description is refused.
public struct SDPLimits: Sendable {
    /// Bytes of the whole description.
    public var maxBytes = 65_536
    /// Bytes of one line without its end.
    public var maxLineBytes = 8_192
    /// Attributes (`a=`) of the session and all its media together.
    public var maxAttributes = 10_000
    /// Media descriptions (`m=`).
    public var maxMedia = 100
    /// Formats on one `m=` line: a payload type has 7 bits.
    public var maxFormats = 128

    /// The limits used when none are given.
    public static let `default` = SDPLimits()

    /// Creates the default limits.
    public init() {}
}
