import CCurl
import Glibc

/// One HTTP exchange to be made.
public struct HTTPRequest: Sendable {
    /// `https://…`, or `http://…` on this machine: the caller checks that.
    public var url: String
    /// The body of a POST; nil makes it a GET.
    public var body: [UInt8]?
    /// More headers.
    public var headers: [(name: String, value: String)] = []
    /// Certificate authorities beside the system's, a PEM file.
    public var caFile: String?
    /// How long connecting, including TLS, may take.
    public var connectTimeout: Duration = .seconds(10)
    /// How long everything may take.
    public var timeout: Duration = .seconds(20)
    /// The most bytes of a body that are taken.
    public var limit = 65_536

    /// Creates a GET, or with a body a POST.
    public init(url: String, body: [UInt8]? = nil) {
        self.url = url
        self.body = body
    }
}

/// What a server answered, whatever the status.
public struct HTTPResponse: Sendable {
    /// The HTTP status.
    public var status: Int
    /// The body.
    public var body: [UInt8]
    /// Where a redirect points to. Redirects are never followed: what was meant for one server is not for another.
    public var redirect: String?
}

/// Why there was no answer.
public struct HTTPFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Kind: Sendable, Hashable {
        /// libcurl is not installed.
        case libraryMissing
        /// The host's name is not known.
        case nameNotFound
        /// The host cannot be reached.
        case unreachable
        /// It took too long.
        case timedOut
        /// TLS failed: the certificate is not good, or there is no common version.
        case tls
        /// The body is larger than the limit.
        case tooLarge
        /// Anything else.
        case other
    }

    /// The kind of failure.
    public var kind: Kind
    /// What happened; no part of the URL but its host.
    public var message: String
    /// The message.
    public var description: String { message }
}

/// HTTP and HTTPS through libcurl, which is loaded at the first request. Certificates are always verified against the
/// system's authorities, names included; TLS 1.2 at least.
public enum HTTPClient {
    /// Makes the exchange on a thread of its own, since libcurl's simple interface blocks; from any asynchronous code.
    public static func send(_ request: HTTPRequest) async throws(HTTPFailure) -> HTTPResponse {
        let result = await withCheckedContinuation { continuation in
            do throws(NetworkError) {
                try SystemThread.start(name: "http") { continuation.resume(returning: perform(request)) }
            } catch {
                continuation.resume(returning: .failure(HTTPFailure(kind: .other, message: error.message)))
            }
        }
        return try result.get()
    }

    /// Blocks until the exchange is over.
    private static func perform(_ request: HTTPRequest) -> Result<HTTPResponse, HTTPFailure> {
        let lines = request.headers.map { "\($0.name): \($0.value)" }
        guard
            !([request.url, request.caFile ?? ""] + lines).contains(where: { text in
                text.utf8.contains { $0 < 0x20 || $0 == 0x7F }
            })
        else {
            return .failure(HTTPFailure(kind: .other, message: "the request holds control characters"))
        }
        // Copies for the time of the call: the C side keeps nothing.
        var allocated: [UnsafeMutablePointer<CChar>?] = []
        func copy(_ text: String) -> UnsafePointer<CChar>? {
            let pointer = strdup(text)
            allocated.append(pointer)
            return UnsafePointer(pointer)
        }
        defer { for pointer in allocated { free(pointer) } }
        let headers = lines.map { copy($0) } + [nil]
        var description = ccurl_request()
        description.url = copy(request.url)
        description.ca_file = request.caFile.flatMap { copy($0) }
        description.user_agent = copy("SinchRTC")
        description.connect_timeout_ms = milliseconds(request.connectTimeout)
        description.timeout_ms = milliseconds(request.timeout)
        description.limit = max(0, request.limit)
        var response = ccurl_response()
        headers.withUnsafeBufferPointer { headers in
            description.headers = headers.baseAddress
            // An empty array may have no address, and a null pointer stands for GET.
            (request.body ?? []).withUnsafeBytes { body in
                var nothing: UInt8 = 0
                withUnsafePointer(to: &nothing) { empty in
                    if request.body != nil { description.body = body.baseAddress ?? UnsafeRawPointer(empty) }
                    description.body_length = body.count
                    ccurl_perform(&description, &response)
                }
            }
        }
        defer { ccurl_release(&response) }
        let kind: HTTPFailure.Kind
        switch UInt32(bitPattern: ccurl_kind(&response)) {
        case CCURL_OK.rawValue:
            let body = UnsafeBufferPointer(start: response.body, count: response.body_length)
            return .success(
                HTTPResponse(
                    status: response.status, body: Array(body), redirect: response.redirect.map { String(cString: $0) })
            )
        case CCURL_LIBRARY.rawValue: kind = .libraryMissing
        case CCURL_NAME.rawValue: kind = .nameNotFound
        case CCURL_CONNECT.rawValue: kind = .unreachable
        case CCURL_TIMEOUT.rawValue: kind = .timedOut
        case CCURL_TLS.rawValue: kind = .tls
        case CCURL_TOO_LARGE.rawValue:
            return .failure(HTTPFailure(kind: .tooLarge, message: "the answer has more than \(request.limit) bytes"))
        default: kind = .other
        }
        let text = withUnsafeBytes(of: &response.error) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return .failure(HTTPFailure(kind: kind, message: text))
    }

    private static func milliseconds(_ duration: Duration) -> Int {
        let parts = duration.components
        return Int(max(1, min(parts.seconds, 86_400) * 1_000 + parts.attoseconds / 1_000_000_000_000_000))
    }
}
