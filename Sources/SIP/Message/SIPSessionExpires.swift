/// How long a session lives without a refresh, and who refreshes it: the value of Session-Expires (RFC 4028 section 4).
public struct SIPSessionExpires: Hashable, Sendable, CustomStringConvertible {
    /// Who sends the refreshes: a role in the transaction that carries the header.
    public enum Refresher: String, Sendable {
        /// Who sent the request.
        case uac
        /// Who answered it.
        case uas
    }

    /// Seconds; 0 to 2^32 - 1 on the wire, where less than 90 is not allowed.
    public var seconds: Int
    /// Who refreshes; nil leaves it to the answering side.
    public var refresher: Refresher?

    /// Creates a value.
    public init(seconds: Int, refresher: Refresher? = nil) {
        self.seconds = seconds
        self.refresher = refresher
    }

    /// The value as it stands in the header.
    public var description: String {
        refresher.map { "\(seconds);refresher=\($0.rawValue)" } ?? "\(seconds)"
    }
}

extension SIPMessage {
    /// The session interval; nil when the header is absent or malformed.
    public var sessionExpires: SIPSessionExpires? {
        get {
            let parts = (headers.text(.sessionExpires) ?? "").split(separator: ";", omittingEmptySubsequences: false)
                .map { $0.filter { !$0.isWhitespace }.lowercased() }
            guard let first = parts.first, let seconds = Self.seconds(first) else { return nil }
            let refresher = parts.dropFirst().first { $0.hasPrefix("refresher=") }?.dropFirst("refresher=".count)
            return SIPSessionExpires(
                seconds: seconds, refresher: refresher.flatMap { SIPSessionExpires.Refresher(rawValue: String($0)) })
        }
        set { headers.set(.sessionExpires, newValue?.description) }
    }

    /// The smallest session interval, in seconds, that everybody on the path takes (RFC 4028 section 5).
    public var minSE: Int? {
        get {
            let first = (headers.text(.minSE) ?? "").split(separator: ";", omittingEmptySubsequences: false).first
            return first.flatMap { Self.seconds($0.filter { !$0.isWhitespace }) }
        }
        set { headers.set(.minSE, newValue.map { String($0) }) }
    }

    private static func seconds(_ text: String) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        return UInt32(text).map(Int.init)
    }
}
