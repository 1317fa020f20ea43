/// The piece of a response that tells how a transfer goes, as the body `message/sipfrag` of a NOTIFY (RFC 3420, and
/// RFC 3515 section 2.4.5): its status line. What follows that line is not read.
public struct SIPStatusFragment: Hashable, Sendable {
    /// The media type of the body.
    public static let contentType = "message/sipfrag;version=2.0"

    /// 100 to 699.
    public var status: Int
    /// The reason phrase.
    public var reason: String

    /// Creates a fragment; without a reason, the standard one.
    public init(status: Int, reason: String? = nil) {
        self.status = status
        self.reason = reason ?? SIPReasonPhrase.standard(for: status)
    }

    /// Reads a body; nil when it does not begin with a status line.
    public init?(parsing body: [UInt8]) {
        // A longer line is no reason phrase that anyone would show.
        let start = body.prefix(256)
        guard
            let line = start.split(omittingEmptySubsequences: false, whereSeparator: { $0 == 0x0D || $0 == 0x0A }).first
        else { return nil }
        let bytes = Array(line)
        var scanner = ByteScanner(bytes, 0..<bytes.count)
        for expected in "SIP/2.0".utf8 {
            guard let byte = scanner.peek, byte == expected || byte == expected.asciiLowercased else { return nil }
            scanner.skip()
        }
        guard scanner.peek?.isBlank == true else { return nil }
        scanner.skipBlanks()
        guard let number = scanner.takeNumber(maximum: 699), number >= 100 else { return nil }
        guard scanner.isAtEnd || scanner.peek?.isBlank == true else { return nil }
        scanner.skipBlanks()
        status = Int(truncatingIfNeeded: number)
        reason = scanner.text(scanner.position..<scanner.end)
    }

    /// The body.
    public var encoded: [UInt8] {
        let text = String(decoding: reason.utf8.filter { $0 >= 0x20 && $0 != 0x7F }, as: UTF8.self)
        return Array("SIP/2.0 \(status) \(text)\r\n".utf8)
    }
}
