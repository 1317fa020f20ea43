/// Why bytes or text are not SIP.
public struct SIPParseError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of fault was met. New codes may be added.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's name, stable enough for logs and metrics.
        public var rawValue: String

        /// Creates a code by name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Nothing but line ends: a keep-alive, not a message.
        public static let empty = Code(rawValue: "empty")
        /// The first line is neither a request line nor a status line.
        public static let startLine = Code(rawValue: "startLine")
        /// The header section has no end, or lines that do not end with CRLF.
        public static let lineEnd = Code(rawValue: "lineEnd")
        /// A header line has no name or no colon.
        public static let headerLine = Code(rawValue: "headerLine")
        /// A header value breaks its grammar.
        public static let headerValue = Code(rawValue: "headerValue")
        /// A control byte that is allowed nowhere in a header section.
        public static let controlCharacter = Code(rawValue: "controlCharacter")
        /// A URI breaks its grammar.
        public static let uri = Code(rawValue: "uri")
        /// A stream message lacks a usable Content-Length.
        public static let contentLength = Code(rawValue: "contentLength")
        /// One of the limits in `SIPLimits` was exceeded.
        public static let limit = Code(rawValue: "limit")
    }

    /// The kind of fault.
    public var code: Code
    /// Where it was met, in bytes from the start of what was parsed.
    public var offset: Int
    /// What is wrong, in words, with the clause that says so.
    public var reason: String

    /// Creates an error.
    public init(_ code: Code, offset: Int, reason: String) {
        self.code = code
        self.offset = offset
        self.reason = reason
    }

    /// The fault in one line.
    public var description: String { "\(reason), at byte \(offset)" }
}

/// Why a message cannot be put on the wire as it is.
public struct SIPPrintError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The field at fault: `method`, `Request-URI`, `user`, `display name`, or a header's name.
    public var field: String
    /// What is wrong with it.
    public var reason: String

    /// Creates an error about one field.
    public init(field: String, reason: String) {
        self.field = field
        self.reason = reason
    }

    /// The fault in one line.
    public var description: String { "\(field): \(reason)" }
}

/// What a valid-looking message got wrong, and the response that tells its sender.
public struct SIPFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The status a server answers with; 0 means that the message is dropped without an answer.
    public var status: Int
    /// The reason, fit for the response's reason phrase.
    public var reason: String

    /// Creates a fault.
    public init(status: Int, reason: String) {
        self.status = status
        self.reason = reason
    }

    /// Status and reason in one line.
    public var description: String { status == 0 ? "dropped: \(reason)" : "\(status) \(reason)" }
}
