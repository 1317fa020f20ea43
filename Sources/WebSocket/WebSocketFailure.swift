/// Why a WebSocket connection was not made, or ended.
public enum WebSocketFailure: Error, Hashable, Sendable {
    /// The server answered the opening handshake with this HTTP status instead of 101.
    case refused(status: Int)
    /// What the peer sent as its opening handshake is none, or what it was asked for cannot be asked; in words.
    case handshake(String)
    /// The handshake did not end in time.
    case timedOut
    /// The peer ended the connection within the handshake.
    case closedInHandshake
    /// The peer broke a rule of the protocol, or a limit; the connection is closed with the code.
    case violation(String, code: WebSocketCloseCode)
    /// The peer closed the connection with a code that means trouble.
    case closed(code: WebSocketCloseCode, reason: String)
    /// The connection ended without a close frame.
    case truncated

    /// What failed and what to do, for people: a clause without a full stop.
    public var explanation: String {
        switch self {
        case .refused(let status): Self.words(status)
        case .handshake(let words): words
        case .timedOut: "no answer to the WebSocket handshake in time; check port, path and transport"
        case .closedInHandshake:
            "the other side ended the connection within the WebSocket handshake; check port and transport"
        case .violation(let words, let code):
            "the other side broke the WebSocket protocol: \(words) (closed with \(code))"
        case .closed(let code, let reason):
            "the other side closed the connection with \(code)" + (reason.isEmpty ? "" : ": \(reason)")
        case .truncated: "the connection ended without a WebSocket close frame"
        }
    }

    private static func words(_ status: Int) -> String {
        let advice =
            switch status {
            case 300...399: "a redirect, which is not followed; configure the address that it leads to"
            case 400: "the server does not take this handshake; check that it speaks SIP over WebSocket at this path"
            case 401, 403, 407: "not allowed; the server wants credentials for the handshake itself, or another origin"
            case 404, 410: "nothing is at this path; check the path"
            case 426: "the server wants another version of the protocol, or TLS"
            case 502...504: "a proxy does not reach the server behind it; try again later"
            case 500...599: "the server itself reports a problem; try again later"
            default: "a WebSocket server answers 101; check port and path"
            }
        return "HTTP status \(status): \(advice)"
    }
}
