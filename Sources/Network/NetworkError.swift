import Glibc
import WebSocket

/// Why something on the network, a local socket or a child process failed.
public struct NetworkError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure, for programs.
    public enum Code: Sendable, Hashable {
        /// Nobody listens at the address (ECONNREFUSED, ICMP port unreachable).
        case connectionRefused
        /// The time limit ran out.
        case timedOut
        /// No route to the address, or a router said that it cannot be reached.
        case unreachable
        /// The peer ended the connection abruptly.
        case reset
        /// The connection or loop was closed already.
        case closed
        /// The address, or the socket's path, is in use.
        case addressInUse
        /// The system, or the peer check, does not allow it.
        case notPermitted
        /// The host name does not exist.
        case nameNotFound
        /// No name server gave an answer; trying again later may help.
        case nameServerFailed
        /// The address or path is not valid for this use.
        case invalidAddress
        /// The datagram or line is longer than what can be carried.
        case tooLarge
        /// A secret would go over a transport that anyone on the way can read.
        case insecureTransport
        /// The peer does not read what is sent: the send queue's limit was passed.
        case sendQueueFull
        /// A limit on connections, look-ups or descriptors was reached.
        case limitReached
        /// The lock is held by another process, with its id where that is known.
        case alreadyHeld(Int32?)
        /// A child process ended with this status before it was ready, or failed.
        case exited(Int32)
        /// A child process was ended by this signal.
        case signalled(Int32)
        /// TLS failed, or the certificate is not to be trusted.
        case tls(TLSFailure)
        /// The peer does not speak WebSocket, broke its rules, or ended it with a code that says why.
        case webSocket(WebSocketFailure)
        /// Another system error, with its errno.
        case other(Int32)
    }

    /// The kind of failure.
    public var code: Code
    /// What failed, why and, where something can be done, what to do.
    public var message: String

    /// Creates an error.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Creates an error from a system call's errno (positive); `action` says what was tried: "connect to 127.0.0.1:1".
    public init(errno number: Int32, _ action: String, hint: String? = nil) {
        code = Code(errno: number)
        message = "cannot \(action): \(Self.text(number))" + (hint.map { "; \($0)" } ?? "")
    }

    /// The message.
    public var description: String { message }

    /// The system's words for an errno.
    static func text(_ number: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let start = buffer.baseAddress else { return "error \(number)" }
            start.initialize(repeating: 0, count: buffer.count)
            guard strerror_r(number, start, buffer.count) == 0 else { return "error \(number)" }
            return String(cString: start)
        }
    }

    /// Turns a result of the C layer (a value, or -errno) into a value or an error.
    @discardableResult
    static func check<Value: SignedInteger & FixedWidthInteger>(
        _ result: Value, _ action: @autoclosure () -> String, hint: String? = nil
    ) throws(NetworkError) -> Value {
        if result >= 0 { return result }
        throw NetworkError(errno: errorNumber(result), action(), hint: hint)
    }

    /// The errno in a negative result of the C layer.
    static func errorNumber<Value: SignedInteger & FixedWidthInteger>(_ result: Value) -> Int32 {
        Int32(truncatingIfNeeded: 0 &- result)
    }
}

extension NetworkError.Code {
    /// The kind that an errno stands for.
    public init(errno number: Int32) {
        switch number {
        case ECONNREFUSED: self = .connectionRefused
        case ETIMEDOUT: self = .timedOut
        case EHOSTUNREACH, ENETUNREACH, ENETDOWN, EHOSTDOWN: self = .unreachable
        case ECONNRESET, EPIPE, ECONNABORTED: self = .reset
        case EADDRINUSE: self = .addressInUse
        case EACCES, EPERM: self = .notPermitted
        case EADDRNOTAVAIL, EAFNOSUPPORT, EINVAL: self = .invalidAddress
        case EMSGSIZE: self = .tooLarge
        case EMFILE, ENFILE: self = .limitReached
        default: self = .other(number)
        }
    }
}
