/// The sequence number of a request within its dialog, and its method (RFC 3261 section 20.16).
public struct SIPCSeq: Hashable, Sendable, CustomStringConvertible {
    /// Below 2^31 on the wire (RFC 3261 section 8.1.1.5).
    public var number: UInt32
    /// The request's method.
    public var method: SIPMethod

    /// Creates a CSeq.
    public init(number: UInt32, method: SIPMethod) {
        self.number = number
        self.method = method
    }

    /// The value as it stands in the header.
    public var description: String { "\(number) \(method.rawValue)" }

    /// Reads a value; nil when it breaks the grammar or the number is 2^31 or more.
    init?(_ scanner: inout ByteScanner) {
        scanner.skipBlanks()
        guard let number = scanner.takeNumber(maximum: 0x7FFF_FFFF), scanner.peek?.isBlank == true else { return nil }
        scanner.skipBlanks()
        let name = scanner.take(.token)
        scanner.skipBlanks()
        guard !name.isEmpty, scanner.isAtEnd else { return nil }
        self.number = UInt32(truncatingIfNeeded: number)
        self.method = SIPMethod(rawValue: scanner.text(name))
    }
}
