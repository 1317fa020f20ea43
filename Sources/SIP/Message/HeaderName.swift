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
    static let single: UInt128 =
        [
            HeaderName.callID, .contentDisposition, .contentType, .cseq, .event, .expires, .from, .maxForwards,
            .minExpires, .minSE, .rack, .referTo, .replaces, .rseq, .sessionExpires, .subscriptionState, .to,
        ].reduce(0) { $0 | $1.bit }

    /// Headers that every message has (RFC 3261 section 8.1.1; Max-Forwards, too, but RFC 2543 did not know it).
    static let mandatory: UInt128 = [HeaderName.callID, .cseq, .from, .to, .via].reduce(0) { $0 | $1.bit }

    /// A bit per header.
    var bit: UInt128 { 1 &<< UInt128(rawValue) }

    /// Finds the header by name in any case, long or compact.
    init(_ name: String) {
        let bytes = Array(name.utf8)
        self = Self.find(bytes.span, 0..<bytes.count)
    }

    /// Finds the header named by a range of bytes.
    static func find(_ bytes: Span<UInt8>, _ range: Range<Int>) -> HeaderName {
        guard range.count <= Table.longest else { return .other }
        var key = Key()
        for index in range { key.append(bytes[index].asciiLowercased) }
        return table.find(key)
    }

    /// A name in lower case, packed so that comparing is three words; a name has up to 24 bytes.
    private struct Key: Equatable, Sendable {
        private(set) var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
        private var count: UInt64 = 0

        @inline(__always)
        mutating func append(_ byte: UInt8) {
            let place = (count & 7) &* 8
            let shifted = UInt64(byte) &<< place
            if count < 8 {
                words.0 |= shifted
            } else if count < 16 {
                words.1 |= shifted
            } else {
                words.2 |= shifted
            }
            count &+= 1
        }

        /// Spreads the names over a table.
        @inline(__always)
        var hash: Int {
            let mixed = (words.0 ^ words.1 &* 31 ^ words.2 &* 131 ^ count) &* 0x9E37_79B9_7F4A_7C15
            return Int(truncatingIfNeeded: mixed &>> 55)
        }

        @inline(__always)
        static func == (left: Key, right: Key) -> Bool { left.words == right.words }
    }

    /// The known names by hash; a slot that is taken passes on to the next.
    private struct Table: Sendable {
        static let longest = 24
        private var slots: [(key: Key, name: HeaderName)] = Array(repeating: (Key(), .other), count: 512)

        init() {
            for name in HeaderName.allCases where name != .other {
                for text in [name.names.long, name.names.compact].compactMap({ $0 }) {
                    var key = Key()
                    for byte in text.utf8.prefix(Self.longest) { key.append(byte.asciiLowercased) }
                    var slot = key.hash
                    while slots[slot].name != .other { slot = (slot &+ 1) & 511 }
                    slots[slot] = (key, name)
                }
            }
        }

        @inline(__always)
        func find(_ key: Key) -> HeaderName {
            var slot = key.hash
            while true {
                let entry = slots[slot]
                if entry.name == .other || entry.key == key { return entry.name }
                slot = (slot &+ 1) & 511
            }
        }
    }

    private static let table = Table()
}
