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
        guard let syntax = scanner.read({ cursor, bytes in CSeqSyntax(&cursor, bytes) }) else { return nil }
        self.init(number: syntax.number, method: SIPMethod(rawValue: Text.plain(scanner.bytes, syntax.method)))
    }
}

/// A CSeq value taken apart.
struct CSeqSyntax {
    var number: UInt32
    var method: Range<Int>

    /// Reads the whole value; nil when it breaks the grammar or the number is 2^31 or more.
    init?(_ cursor: inout ByteCursor, _ bytes: Span<UInt8>) {
        cursor.skipBlanks(bytes)
        guard let number = cursor.takeNumber(maximum: 0x7FFF_FFFF, bytes), cursor.peek(bytes)?.isBlank == true
        else { return nil }
        cursor.skipBlanks(bytes)
        method = cursor.take(.token, bytes)
        cursor.skipBlanks(bytes)
        guard !method.isEmpty, cursor.isAtEnd else { return nil }
        self.number = UInt32(truncatingIfNeeded: number)
    }
}
