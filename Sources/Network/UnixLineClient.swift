import CSys
import Glibc
import Primitives

/// A blocking client for a line protocol on a Unix socket, without event loop or thread: what a short-lived command
/// uses, as it costs microseconds to set up. One thread at a time.
public final class UnixLineClient {
    /// The longest line that is taken, in bytes.
    public static let longestLine = 16 << 20

    /// The process that listens.
    public let credentials: PeerCredentials

    private let path: String
    private let timeout: Duration
    private let descriptor: FileDescriptor
    private var buffer: [UInt8] = []
    /// Where the next line starts in the buffer, and up to where no line end was found.
    private var start = 0
    private var searched = 0
    private var sawEnd = false

    /// Connects.
    ///
    /// Throws `.connectionRefused` when nobody serves the path, `.other(ENOENT)` when there is no such socket,
    /// `.notPermitted` when another user's process listens, `.timedOut`.
    ///
    /// - Parameter timeout: for connecting, and for each `send`.
    public init(
        path: String, timeout: Duration = .seconds(5), trustedUserIDs: Set<UInt32> = [geteuid()]
    ) throws(NetworkError) {
        self.path = path
        self.timeout = timeout
        let address = try UnixAddress(path: path)
        let descriptor = try FileDescriptor(
            csys_socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), "open a Unix socket")
        let deadline = Self.deadline(after: timeout)
        while true {
            let result = address.withSystemAddress { csys_connect(descriptor.number, $0, $1) }
            if result >= 0 { break }
            let number = NetworkError.errorNumber(result)
            // The listener's backlog is full, and a Unix socket offers nothing to wait on.
            guard number == EAGAIN || number == EINTR else { throw NetworkError(errno: number, "connect to \(path)") }
            guard csys_monotonic_now() < deadline else {
                throw NetworkError(.timedOut, "cannot connect to \(path): too many connections wait there")
            }
            _ = csys_sleep_until(csys_monotonic_now() + 2_000_000)
        }
        self.descriptor = descriptor
        credentials = try PeerCredentials(of: descriptor)
        guard trustedUserIDs.contains(credentials.userID) else {
            throw NetworkError(
                .notPermitted,
                "refused the server at \(path): it runs as user \(credentials.userID); check who made the socket")
        }
    }

    /// The descriptor, for a caller that waits on several; stays the client's.
    public var fileDescriptor: Int32 { descriptor.number }

    /// Sends the line with a line feed behind it. Throws `.timedOut` or `.reset`.
    public func send(_ line: [UInt8]) throws(NetworkError) {
        let bytes = line + [UInt8(ascii: "\n")]
        let deadline = Self.deadline(after: timeout)
        var sent = 0
        while sent < bytes.count {
            let result = bytes.withUnsafeBytes { all in
                let rest = UnsafeRawBufferPointer(rebasing: all[sent...])
                return csys_send(descriptor.number, rest.baseAddress, rest.count)
            }
            if result >= 0 {
                sent += result
                continue
            }
            let number = NetworkError.errorNumber(result)
            if number == EINTR { continue }
            guard number == EAGAIN else { throw NetworkError(errno: number, "send to \(path)") }
            try wait(for: Int16(POLLOUT), until: deadline, "send to \(path)")
        }
    }

    /// Sends text as a line.
    public func send(_ line: String) throws(NetworkError) {
        try send(Array(line.utf8))
    }

    /// The next line without its line end (LF or CRLF); nil when the peer has ended the connection after a whole line.
    ///
    /// Throws `.timedOut` (nothing is lost: call again), `.tooLarge`, `.reset`, or `.closed` for half a line at the end.
    ///
    /// - Parameter timeout: for the whole line; nil waits for ever.
    public func receiveLine(timeout: Duration?) throws(NetworkError) -> [UInt8]? {
        let deadline = Self.deadline(after: timeout)
        while true {
            if let line = takeLine() { return line }
            if sawEnd {
                guard start < buffer.count else { return nil }
                throw NetworkError(.closed, "\(path) closed the connection in the middle of a line")
            }
            guard buffer.count - start <= Self.longestLine else {
                throw NetworkError(.tooLarge, "a line from \(path) is longer than \(Self.longestLine) bytes")
            }
            try receive(until: deadline)
        }
    }

    /// Closes the connection; so does letting go of the object.
    public func close() {
        descriptor.close()
    }

    private func takeLine() -> [UInt8]? {
        // memchr: a line may have megabytes.
        let found = buffer.withUnsafeBytes { bytes -> Int? in
            guard let base = bytes.baseAddress, searched < bytes.count else { return nil }
            guard let hit = memchr(base + searched, 10, bytes.count - searched) else { return nil }
            return UnsafeRawPointer(hit) - base
        }
        guard let end = found else {
            searched = buffer.count
            return nil
        }
        var line = buffer[start..<end]
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        let taken = Array(line)
        start = end + 1
        searched = start
        if start == buffer.count {
            buffer.removeAll(keepingCapacity: buffer.capacity <= 1 << 18)
            (start, searched) = (0, 0)
        }
        return taken
    }

    private func receive(until deadline: Int64) throws(NetworkError) {
        if start > 1 << 18 {
            buffer.removeFirst(start)
            (start, searched) = (0, searched - start)
        }
        let result = withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { chunk in
            let count = csys_recv(descriptor.number, chunk.baseAddress, chunk.count)
            if count > 0 { buffer.append(contentsOf: UnsafeRawBufferPointer(rebasing: chunk[..<count])) }
            return count
        }
        if result > 0 { return }
        if result == 0 {
            sawEnd = true
            return
        }
        let number = NetworkError.errorNumber(result)
        if number == EINTR { return }
        guard number == EAGAIN else { throw NetworkError(errno: number, "read from \(path)") }
        try wait(for: Int16(POLLIN), until: deadline, "read from \(path)")
    }

    private func wait(for events: Int16, until deadline: Int64, _ action: String) throws(NetworkError) {
        guard try Poll.wait([(descriptor.number, events)], until: deadline) != nil else {
            throw NetworkError(.timedOut, "cannot \(action): no answer in time; is the agent busy or stopped?")
        }
    }

    private static func deadline(after timeout: Duration?) -> Int64 { Poll.deadline(after: timeout) }
}

/// poll(2) with deadlines, for the blocking helpers.
enum Poll {
    /// A point on CLOCK_MONOTONIC; "never" for nil.
    static func deadline(after timeout: Duration?) -> Int64 {
        guard let timeout else { return .max }
        return (MonotonicTime(nanoseconds: csys_monotonic_now()) + timeout).nanoseconds
    }

    /// Waits until one of the descriptors is ready, closed or in error, and returns its index; nil after the deadline.
    static func wait(
        _ descriptors: [(number: Int32, events: Int16)], until deadline: Int64
    ) throws(NetworkError) -> Int? {
        var set = descriptors.map { pollfd(fd: $0.number, events: $0.events, revents: 0) }
        while true {
            var milliseconds: Int32 = -1
            if deadline != .max {
                let rest = max(
                    .zero, MonotonicTime(nanoseconds: deadline) - MonotonicTime(nanoseconds: csys_monotonic_now()))
                milliseconds = Int32(clamping: (rest.wholeNanoseconds &+ 999_999) / 1_000_000)
            }
            let count = poll(&set, nfds_t(set.count), milliseconds)
            if count > 0 { return set.firstIndex { $0.revents != 0 } }
            if count < 0 {
                let number = errno
                guard number == EINTR else { throw NetworkError(errno: number, "wait with poll") }
            }
            if deadline != .max, csys_monotonic_now() >= deadline { return nil }
        }
    }
}
