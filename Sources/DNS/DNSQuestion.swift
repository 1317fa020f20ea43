/// One question to the domain name system: a name and the kind of record that is wanted.
public struct DNSQuestion: Hashable, Sendable, CustomStringConvertible {
    /// The kinds of record that locating a SIP server needs, with their numbers on the wire.
    public enum RecordType: UInt16, Hashable, Sendable, CaseIterable {
        /// An IPv4 address (RFC 1035).
        case a = 1
        /// An IPv6 address (RFC 3596).
        case aaaa = 28
        /// A server of a service (RFC 2782).
        case srv = 33
        /// A rule that names the services of a domain (RFC 3403).
        case naptr = 35
    }

    /// The name in lower case. With a dot at its end it is complete; without one the system's search list may apply to
    /// address questions.
    public let name: String
    /// What is wanted.
    public let type: RecordType

    /// Creates a question; the name is not checked, see `hasValidName`.
    public init(_ name: String, _ type: RecordType) {
        self.name = DNSName.lowercased(name)
        self.type = type
    }

    /// Whether the name can be asked for at all.
    public var hasValidName: Bool { DNSName.isValid(name) }

    /// For logs and errors, such as `SRV _sip._tcp.example.com`.
    public var description: String { "\(type) \(name)" }
}

extension DNSQuestion.RecordType: CustomStringConvertible {
    /// The name in a zone file.
    public var description: String {
        switch self {
        case .a: "A"
        case .aaaa: "AAAA"
        case .srv: "SRV"
        case .naptr: "NAPTR"
        }
    }
}
