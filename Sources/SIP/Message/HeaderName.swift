/// The headers that the library knows, recognised by their bytes so that parsing makes no strings. A name and its
/// compact form (RFC 3261 section 7.3.3 and later RFCs) are one case.
enum HeaderName: UInt8, CaseIterable, Sendable {
    case other
    case accept, acceptContact, acceptEncoding, acceptLanguage, alertInfo, allow, allowEvents, authenticationInfo
    case authorization, callID, callInfo, contact, contentDisposition, contentEncoding, contentLanguage
    case contentLength, contentType, cseq, date, errorInfo, event, expires, featureCaps, from, historyInfo, identity
    case inReplyTo, maxForwards, mimeVersion, minExpires, minSE, organization, pAssertedIdentity
    case pPreferredIdentity, path, priority, privacy, proxyAuthenticate, proxyAuthorization, proxyRequire, rack
    case reason, recordRoute, referTo, referredBy, rejectContact, replaces, replyTo, requestDisposition, require
    case retryAfter, route, rseq, server, serviceRoute, sessionExpires, subject, subscriptionState, supported
    case timestamp, to, unsupported, userAgent, via, warning, wwwAuthenticate

    /// The name as RFCs write it, and its compact form.
    var names: (long: String, compact: String?) {
        switch self {
        case .other: ("", nil)
        case .accept: ("Accept", nil)
        case .acceptContact: ("Accept-Contact", "a")
        case .acceptEncoding: ("Accept-Encoding", nil)
        case .acceptLanguage: ("Accept-Language", nil)
        case .alertInfo: ("Alert-Info", nil)
        case .allow: ("Allow", nil)
        case .allowEvents: ("Allow-Events", "u")
        case .authenticationInfo: ("Authentication-Info", nil)
        case .authorization: ("Authorization", nil)
        case .callID: ("Call-ID", "i")
        case .callInfo: ("Call-Info", nil)
        case .contact: ("Contact", "m")
        case .contentDisposition: ("Content-Disposition", nil)
        case .contentEncoding: ("Content-Encoding", "e")
        case .contentLanguage: ("Content-Language", nil)
        case .contentLength: ("Content-Length", "l")
        case .contentType: ("Content-Type", "c")
        case .cseq: ("CSeq", nil)
        case .date: ("Date", nil)
        case .errorInfo: ("Error-Info", nil)
        case .event: ("Event", "o")
        case .expires: ("Expires", nil)
        case .featureCaps: ("Feature-Caps", nil)
        case .from: ("From", "f")
        case .historyInfo: ("History-Info", nil)
        case .identity: ("Identity", "y")
        case .inReplyTo: ("In-Reply-To", nil)
        case .maxForwards: ("Max-Forwards", nil)
        case .mimeVersion: ("MIME-Version", nil)
        case .minExpires: ("Min-Expires", nil)
        case .minSE: ("Min-SE", nil)
        case .organization: ("Organization", nil)
        case .pAssertedIdentity: ("P-Asserted-Identity", nil)
        case .pPreferredIdentity: ("P-Preferred-Identity", nil)
        case .path: ("Path", nil)
        case .priority: ("Priority", nil)
        case .privacy: ("Privacy", nil)
        case .proxyAuthenticate: ("Proxy-Authenticate", nil)
        case .proxyAuthorization: ("Proxy-Authorization", nil)
        case .proxyRequire: ("Proxy-Require", nil)
        case .rack: ("RAck", nil)
        case .reason: ("Reason", nil)
        case .recordRoute: ("Record-Route", nil)
        case .referTo: ("Refer-To", "r")
        case .referredBy: ("Referred-By", "b")
        case .rejectContact: ("Reject-Contact", "j")
        case .replaces: ("Replaces", nil)
        case .replyTo: ("Reply-To", nil)
        case .requestDisposition: ("Request-Disposition", "d")
        case .require: ("Require", nil)
        case .retryAfter: ("Retry-After", nil)
        case .route: ("Route", nil)
        case .rseq: ("RSeq", nil)
        case .server: ("Server", nil)
        case .serviceRoute: ("Service-Route", nil)
        case .sessionExpires: ("Session-Expires", "x")
        case .subject: ("Subject", "s")
        case .subscriptionState: ("Subscription-State", nil)
        case .supported: ("Supported", "k")
        case .timestamp: ("Timestamp", nil)
        case .to: ("To", "t")
        case .unsupported: ("Unsupported", nil)
        case .userAgent: ("User-Agent", nil)
        case .via: ("Via", "v")
        case .warning: ("Warning", nil)
        case .wwwAuthenticate: ("WWW-Authenticate", nil)
        }
    }

    /// Headers that change what a message means and appear once at most: a second one makes it ambiguous (RFC 3261
    /// section 7.3.1). Not here: Content-Length, which may be repeated as long as all say the same, and what is only
    /// shown to people.
    static let single: UInt64 =
        [
            HeaderName.callID, .contentDisposition, .contentType, .cseq, .event, .expires, .from, .maxForwards,
            .minExpires, .minSE, .rack, .referTo, .replaces, .rseq, .sessionExpires, .subscriptionState, .to,
        ].reduce(0) { $0 | $1.bit }

    /// A bit per header, the first 64 of them.
    var bit: UInt64 { rawValue < 64 ? 1 &<< UInt64(rawValue) : 0 }

    /// Finds the header by name in any case, long or compact.
    init(_ name: String) {
        let bytes = Array(name.utf8)
        self = Self.find(bytes.span, 0..<bytes.count)
    }

    /// Finds the header named by a range of bytes.
    static func find(_ bytes: Span<UInt8>, _ range: Range<Int>) -> HeaderName {
        let table = Self.table
        guard range.count < table.count else { return .other }
        let key = Key(bytes, range)
        for entry in table[range.count] where entry.key == key { return entry.name }
        return .other
    }

    /// A name of up to 24 bytes in lower case, packed so that comparing is three words.
    private struct Key: Equatable, Sendable {
        var words: (UInt64, UInt64, UInt64) = (0, 0, 0)

        init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
            var word: UInt64 = 0
            for index in range {
                let offset = index &- range.lowerBound
                if offset == 8 {
                    words.0 = word
                    word = 0
                } else if offset == 16 {
                    words.1 = word
                    word = 0
                }
                word = word &<< 8 | UInt64(bytes[index].asciiLowercased)
            }
            words.2 = word
        }

        static func == (left: Key, right: Key) -> Bool { left.words == right.words }
    }

    private struct Entry: Sendable {
        var key: Key
        var name: HeaderName
    }

    /// Known names by length.
    private static let table: [[Entry]] = {
        var table = [[Entry]](repeating: [], count: 25)
        for name in allCases where name != .other {
            for text in [name.names.long, name.names.compact].compactMap({ $0 }) where text.utf8.count < table.count {
                let bytes = Array(text.utf8)
                table[bytes.count].append(Entry(key: Key(bytes.span, 0..<bytes.count), name: name))
            }
        }
        return table
    }()
}
