/// One record of an answer, reduced to what locating a SIP server needs.
public enum DNSRecord: Hashable, Sendable {
    /// A numeric IPv4 or IPv6 address in its textual form.
    case address(String)
    /// A server of a service.
    case service(SRVRecord)
    /// A rule that names a service.
    case rule(NAPTRRecord)
}

/// A server of a service (RFC 2782).
public struct SRVRecord: Hashable, Sendable {
    /// Lower values are tried first.
    public var priority: UInt16
    /// The share of the load among servers of one priority.
    public var weight: UInt16
    /// The server's port.
    public var port: UInt16
    /// The server's name without a dot at its end; empty when the service is decidedly not offered (`.` in a zone file).
    public var target: String

    /// Creates a record.
    public init(priority: UInt16, weight: UInt16, port: UInt16, target: String) {
        self.priority = priority
        self.weight = weight
        self.port = port
        self.target = target
    }
}

/// A rule that names a service of a domain (RFC 3403; RFC 3263 for SIP).
public struct NAPTRRecord: Hashable, Sendable {
    /// Lower values are looked at first.
    public var order: UInt16
    /// Lower values are preferred among rules of one order.
    public var preference: UInt16
    /// What to ask for next: `s` for SRV, `a` for addresses; in lower case.
    public var flags: String
    /// The service and how it is reached, such as `sips+d2t`; in lower case.
    public var service: String
    /// A substitution; SIP uses none, rules that have one are of no use here.
    public var regexp: String
    /// The name to ask for next, without a dot at its end.
    public var replacement: String

    /// Creates a record.
    public init(
        order: UInt16, preference: UInt16, flags: String, service: String, regexp: String = "", replacement: String
    ) {
        self.order = order
        self.preference = preference
        self.flags = flags
        self.service = service
        self.regexp = regexp
        self.replacement = replacement
    }
}

/// What became of a question.
public enum DNSAnswer: Hashable, Sendable {
    /// Records of the wanted kind; at least one.
    case records([DNSRecord])
    /// The name does not exist.
    case noSuchName
    /// The name exists, or may, but has no record of this kind.
    case noData
    /// Nobody gave a usable answer; asking again later may help.
    case failed(DNSFailure)
}

/// Why a question got no usable answer.
public enum DNSFailure: Hashable, Sendable, CustomStringConvertible {
    /// No name server answered in time.
    case timedOut
    /// No name server could be reached, or each said that it cannot or will not answer.
    case noServer(String)
    /// What came is no valid answer.
    case malformed(String)
    /// The name has bytes or a length that no host name has.
    case invalidName
    /// Too many questions are waiting for their answers.
    case tooManyQuestions
    /// The client was closed.
    case closed

    /// For errors.
    public var description: String {
        switch self {
        case .timedOut: "no name server answered in time"
        case .noServer(let reason): "no name server can answer: \(reason)"
        case .malformed(let reason): "the name server's answer is malformed: \(reason)"
        case .invalidName: "this is no host name; internationalised names must be written in their xn-- form"
        case .tooManyQuestions: "too many name look-ups are running"
        case .closed: "the look-up was cancelled"
        }
    }
}

/// An answer and how long it may be kept.
public struct DNSReply: Hashable, Sendable {
    /// The answer.
    public var answer: DNSAnswer
    /// For how long it holds; zero for "only now".
    public var lifetime: Duration

    /// Creates a reply.
    public init(_ answer: DNSAnswer, lifetime: Duration = .zero) {
        self.answer = answer
        self.lifetime = lifetime
    }
}
