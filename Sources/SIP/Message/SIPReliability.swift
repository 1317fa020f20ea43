/// What a PRACK acknowledges: the value of RAck (RFC 3262 section 7.2).
public struct SIPRAck: Hashable, Sendable, CustomStringConvertible {
    /// The RSeq of the provisional response.
    public var responseNumber: UInt32
    /// The CSeq of the provisional response: number and method of its request.
    public var cseq: SIPCSeq

    /// Creates a value.
    public init(responseNumber: UInt32, cseq: SIPCSeq) {
        self.responseNumber = responseNumber
        self.cseq = cseq
    }

    /// The value as it stands in the header.
    public var description: String { "\(responseNumber) \(cseq)" }

    /// Reads a value; nil when it breaks the grammar or a number is out of its range.
    init?(_ scanner: inout ByteScanner) {
        scanner.skipBlanks()
        guard let number = scanner.takeNumber(maximum: UInt64(UInt32.max)), scanner.peek?.isBlank == true,
            let cseq = SIPCSeq(&scanner)
        else { return nil }
        responseNumber = UInt32(truncatingIfNeeded: number)
        self.cseq = cseq
    }
}

extension SIPMessage {
    /// The number of a reliable provisional response (RFC 3262 section 7.1); nil when absent or out of range.
    public var rseq: UInt32? {
        get {
            number(.rseq, maximum: UInt64(UInt32.max)).flatMap(UInt32.init(exactly:)).flatMap { $0 == 0 ? nil : $0 }
        }
        set { headers.set(.rseq, newValue.map { String($0) }) }
    }

    /// What a PRACK acknowledges.
    public var rack: SIPRAck? {
        get {
            guard var scanner = headers.scanner(.rack) else { return nil }
            return SIPRAck(&scanner)
        }
        set { headers.set(.rack, newValue?.description) }
    }

    /// Whether a list of option tags, such as Supported or Require, names this one (RFC 3261 section 19.2).
    public func hasOption(_ tag: String, in header: String) -> Bool {
        headers.values(header).contains { $0.lowercased() == tag }
    }
}
