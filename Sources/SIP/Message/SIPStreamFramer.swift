/// Cuts a byte stream (TCP, TLS) into messages by Content-Length (RFC 3261 section 18.3) and finds keep-alives
/// (RFC 5626 section 3.5.1). It holds only what was received, whatever length a message claims.
public struct SIPStreamFramer: Sendable {
    /// What was cut out.
    public enum Frame: Sendable, Equatable {
        /// One whole message, ready for `SIPMessage.parse`.
        case message([UInt8])
        /// CRLFCRLF: the peer asks for a pong.
        case keepAlivePing
        /// CRLF: the peer answers a ping.
        case keepAlivePong
    }

    private let limits: SIPLimits
    private var buffer: [UInt8] = []
    /// Where the unread part of `buffer` begins.
    private var start = 0
    /// How far the search for the empty line has come.
    private var searched = 0
    /// The end of the message whose headers are complete.
    private var messageEnd: Int?
    private var error: SIPParseError?
    private var expectsPong = false
    /// The last thing seen was one CRLF, taken for a pong: it may prove to be the first half of a ping.
    private var mayBeHalfPing = false

    /// Creates a framer for one connection.
    public init(limits: SIPLimits = .default) {
        self.limits = limits
    }

    /// Whether no part of a message is pending, so that the connection may rest.
    public var isIdle: Bool { start == buffer.count }

    /// The bytes held back because the message they belong to is not complete.
    public var pendingBytes: Int { buffer.count - start }

    /// Says that a ping was sent: the next CRLF is its answer, even if another follows.
    public mutating func pingSent() {
        expectsPong = true
    }

    /// Takes what came from the connection; call `next()` until it gives nil.
    public mutating func receive(_ bytes: some Sequence<UInt8>) {
        if error == nil { buffer.append(contentsOf: bytes) }
    }

    /// The next frame, nil when more bytes are needed.
    /// - Throws: `SIPParseError` when the stream cannot be cut any more: the connection is of no further use. Every
    ///   later call throws the same.
    public mutating func next() throws(SIPParseError) -> Frame? {
        if let error { throw error }
        do throws(SIPParseError) {
            let frame = try cut()
            if frame == nil || start > 65_536 { discardRead() }
            return frame
        } catch {
            self.error = error
            buffer = []
            start = 0
            throw error
        }
    }

    private mutating func cut() throws(SIPParseError) -> Frame? {
        if let keepAlive = takeKeepAlive() { return keepAlive }
        guard start < buffer.count else { return nil }
        if messageEnd == nil {
            guard let headerEnd = try findHeaderEnd() else { return nil }
            messageEnd = headerEnd + (try bodyLength(headerEnd: headerEnd))
        }
        guard let end = messageEnd, end <= buffer.count else { return nil }
        let message = Array(buffer[start..<end])
        consume(end - start)
        return .message(message)
    }

    private mutating func takeKeepAlive() -> Frame? {
        guard byte(0) == 0x0D, byte(1) == 0x0A else {
            if start < buffer.count, byte(0) != 0x0D { mayBeHalfPing = false }
            return nil
        }
        if expectsPong {
            expectsPong = false
            consume(2)
            return .keepAlivePong
        }
        if mayBeHalfPing {
            mayBeHalfPing = false
            consume(2)
            return .keepAlivePing
        }
        if byte(2) == 0x0D, byte(3) == 0x0A {
            consume(4)
            return .keepAlivePing
        }
        consume(2)
        mayBeHalfPing = true
        return .keepAlivePong
    }

    private func byte(_ offset: Int) -> UInt8? {
        start + offset < buffer.count ? buffer[start + offset] : nil
    }

    /// Finds CRLFCRLF; never looks at a byte twice.
    private mutating func findHeaderEnd() throws(SIPParseError) -> Int? {
        var index = max(searched, start)
        let limit = start + limits.maxHeaderSectionBytes
        while index + 3 < buffer.count {
            if buffer[index] == 0x0D, buffer[index + 1] == 0x0A, buffer[index + 2] == 0x0D, buffer[index + 3] == 0x0A {
                guard index + 4 <= limit else { break }
                return index + 4
            }
            index += 1
        }
        searched = index
        if buffer.count > limit {
            throw SIPParseError(
                .limit, offset: limits.maxHeaderSectionBytes, reason: "the headers are longer than the limit")
        }
        return nil
    }

    private func bodyLength(headerEnd: Int) throws(SIPParseError) -> Int {
        var lines = HeaderLines(position: start, limits: limits)
        let bytes = buffer.span
        var declared = SIPHeaders.DeclaredContentLength.absent
        var isStartLine = true
        while let line = try lines.next(bytes, isStartLine: isStartLine) {
            isStartLine = false
            guard line.kind == .contentLength else { continue }
            let value = SIPHeaders.contentLength(line.value, bytes)
            if value == .malformed || (declared != .absent && declared != value) {
                throw SIPParseError(
                    .contentLength, offset: line.value.lowerBound - start,
                    reason: "Content-Length is not a number or contradicts another (RFC 3261 section 20.14)")
            }
            declared = value
        }
        guard case .length(let length) = declared else {
            throw SIPParseError(
                .contentLength, offset: headerEnd - start,
                reason: "Content-Length is missing, which a stream needs (RFC 3261 section 18.3)")
        }
        guard length <= limits.maxBodyBytes, length <= limits.maxMessageBytes - (headerEnd - start) else {
            throw SIPParseError(
                .limit, offset: headerEnd - start, reason: "Content-Length states more than the limit")
        }
        return length
    }

    private mutating func consume(_ count: Int) {
        start += count
        searched = start
        messageEnd = nil
    }

    /// Moves what is left to the front of the buffer.
    private mutating func discardRead() {
        guard start > 0 else { return }
        buffer.removeFirst(start)
        searched = max(0, searched - start)
        if let end = messageEnd { messageEnd = end - start }
        start = 0
    }
}
