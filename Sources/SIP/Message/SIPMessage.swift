/// A request or response (RFC 3261 section 7). Headers are kept as bytes and read when asked for: what is malformed
/// is found by `validate()`, not by parsing, so that its sender can be told.
public struct SIPMessage: Sendable, Equatable {
    /// The first line.
    public enum StartLine: Sendable, Equatable {
        /// A request.
        case request(method: SIPMethod, uri: SIPURI)
        /// A response; `status` is 100 to 699.
        case response(status: Int, reason: String)
    }

    /// The first line.
    public var startLine: StartLine {
        didSet { receivedFault = nil }
    }
    /// The headers. Content-Length is kept as received here; the printer writes its own.
    public var headers: SIPHeaders
    /// The body. Setting it also corrects a Content-Length header.
    public var body: [UInt8] {
        didSet {
            if headers.first(.contentLength) != nil { headers.set(.contentLength, String(body.count)) }
        }
    }

    /// What parsing met that only `validate()` reports, so that the request can still be answered.
    var receivedFault: SIPFault?

    /// Creates a request without headers.
    public init(request method: SIPMethod, uri: SIPURI) {
        self.init(startLine: .request(method: method, uri: uri), headers: SIPHeaders(), body: [])
    }

    /// Creates a response without headers; without a reason it gets the standard phrase.
    public init(status: Int, reason: String? = nil) {
        self.init(
            startLine: .response(status: status, reason: reason ?? SIPReasonPhrase.standard(for: status)),
            headers: SIPHeaders(), body: [])
    }

    init(startLine: StartLine, headers: SIPHeaders, body: [UInt8], receivedFault: SIPFault? = nil) {
        self.startLine = startLine
        self.headers = headers
        self.body = body
        self.receivedFault = receivedFault
    }

    /// Whether this is a request.
    public var isRequest: Bool {
        if case .request = startLine { true } else { false }
    }

    /// The method of a request; nil for a response, whose CSeq has it.
    public var method: SIPMethod? {
        if case .request(let method, _) = startLine { method } else { nil }
    }

    /// The Request-URI; nil for a response. Setting it on a response, or to nil, does nothing.
    public var requestURI: SIPURI? {
        get {
            if case .request(_, let uri) = startLine { uri } else { nil }
        }
        set {
            if case .request(let method, _) = startLine, let newValue {
                startLine = .request(method: method, uri: newValue)
            }
        }
    }

    /// The status of a response; nil for a request.
    public var status: Int? {
        if case .response(let status, _) = startLine { status } else { nil }
    }

    /// The reason phrase of a response; nil for a request.
    public var reason: String? {
        if case .response(_, let reason) = startLine { reason } else { nil }
    }
}
