/// What arrived over an open connection.
public enum WebSocketEvent: Hashable, Sendable {
    /// A whole message; text when `isText`, and then valid UTF-8.
    case message([UInt8], isText: Bool)
    /// To be answered with a pong of the same payload.
    case ping([UInt8])
    /// The answer to a ping with this payload, or unasked.
    case pong([UInt8])
    /// The peer's last frame. To be answered with one of ours, unless ours was sent. Nothing follows.
    case close(WebSocketCloseCode, reason: String)
}

/// Turns the bytes of one direction into messages, however they are cut (RFC 6455, section 5).
///
/// Strict: what a peer may not send is a violation, after which the receiver is of no more use. Memory is taken as bytes
/// arrive and never by a claim; what is kept is one message of limited size.
public struct WebSocketReceiver: Sendable {
    private struct Header {
        var isFinal: Bool
        var opcode: WebSocketOpcode
        var mask: WebSocketMask?
        var length: Int
        /// How much of the payload was taken.
        var taken = 0
    }

    private let role: WebSocketRole
    private let limits: WebSocketLimits
    private var input: [UInt8] = []
    private var position = 0
    private var header: Header?
    /// The payload of the control frame that is being received.
    private var control: [UInt8] = []
    /// The message that is being received.
    private var message: [UInt8] = []
    /// Its kind; nil between messages.
    private var messageKind: WebSocketOpcode?
    private var isOver = false

    /// A receiver at the side of that role.
    public init(role: WebSocketRole, limits: WebSocketLimits = WebSocketLimits()) {
        self.role = role
        self.limits = limits
    }

    /// Takes what arrived. Call `next` until it returns nil before more is given.
    public mutating func append(_ bytes: [UInt8]) {
        guard !isOver else { return }
        if position >= input.count {
            input = bytes
        } else {
            input.removeFirst(position)
            input.append(contentsOf: bytes)
        }
        position = 0
    }

    /// The next event, nil when more bytes are needed. Throws `.violation`.
    public mutating func next() throws(WebSocketFailure) -> WebSocketEvent? {
        while !isOver {
            if header == nil { header = try readHeader() }
            guard let current = header else { return nil }
            guard let complete = takePayload(of: current) else { return nil }
            header = nil
            if let event = try finish(complete) { return event }
        }
        return nil
    }

    // MARK: The header

    private mutating func readHeader() throws(WebSocketFailure) -> Header? {
        let available = input.count - position
        guard available >= 2 else {
            // The first byte alone may show the fault, but the second is never far.
            return nil
        }
        let (first, second) = (input[position], input[position + 1])
        guard first & 0x70 == 0 else { throw Self.broken("a reserved bit is set") }
        guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else {
            throw Self.broken("opcode \(first & 0x0F) does not exist")
        }
        let isFinal = first & 0x80 != 0
        let isMasked = second & 0x80 != 0
        guard isMasked == (role == .server) else {
            throw Self.broken(isMasked ? "a server's frame is masked" : "a client's frame is not masked")
        }
        let code = second & 0x7F
        if opcode.isControl {
            guard isFinal else { throw Self.broken("a control frame is fragmented") }
            guard code <= 125 else { throw Self.broken("a control frame has more than 125 bytes") }
        }
        let lengthBytes = code == 127 ? 8 : code == 126 ? 2 : 0
        let size = 2 + lengthBytes + (isMasked ? 4 : 0)
        guard available >= size else { return nil }
        let length = lengthBytes == 0 ? UInt64(code) : number(at: position + 2, bytes: lengthBytes)
        if lengthBytes > 0 {
            guard length >> 63 == 0, length > (lengthBytes == 2 ? 125 : 0xFFFF) else {
                throw Self.broken("a frame's length is not in its shortest form")
            }
        }
        let mask =
            isMasked
            ? WebSocketMask(key: UInt32(truncatingIfNeeded: number(at: position + 2 + lengthBytes, bytes: 4))) : nil
        position += size
        return try begin(opcode, isFinal: isFinal, mask: mask, length: length)
    }

    private func number(at start: Int, bytes count: Int) -> UInt64 {
        input[start..<start + count].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Checks that such a frame may come now.
    private mutating func begin(
        _ opcode: WebSocketOpcode, isFinal: Bool, mask: WebSocketMask?, length: UInt64
    ) throws(WebSocketFailure) -> Header {
        switch opcode {
        case .continuation:
            guard messageKind != nil else { throw Self.broken("a continuation continues nothing") }
        case .text, .binary:
            guard messageKind == nil else { throw Self.broken("a message begins within another") }
        case .close, .ping, .pong:
            break
        }
        guard length <= UInt64(limits.maximumFrame) else {
            throw .violation("a frame has more than \(limits.maximumFrame) bytes", code: .tooLarge)
        }
        if !opcode.isControl {
            guard length <= UInt64(limits.maximumMessage - message.count) else {
                throw .violation("a message has more than \(limits.maximumMessage) bytes", code: .tooLarge)
            }
            if opcode != .continuation { messageKind = opcode }
        }
        return Header(isFinal: isFinal, opcode: opcode, mask: mask, length: Int(length))
    }

    // MARK: The payload

    /// Moves what is there of the payload to where it belongs. The header when the frame is complete.
    private mutating func takePayload(of current: Header) -> Header? {
        let count = min(current.length - current.taken, input.count - position)
        let part = input[position..<position + count]
        if current.opcode.isControl {
            Self.append(part, to: &control, current)
        } else {
            Self.append(part, to: &message, current)
        }
        position += count
        var progress = current
        progress.taken += count
        guard progress.taken == progress.length else {
            header = progress
            return nil
        }
        return progress
    }

    private static func append(_ part: ArraySlice<UInt8>, to target: inout [UInt8], _ header: Header) {
        let start = target.count
        target.append(contentsOf: part)
        header.mask?.apply(to: &target, from: start, offset: header.taken)
    }

    /// What a complete frame means; nil when the message goes on.
    private mutating func finish(_ frame: Header) throws(WebSocketFailure) -> WebSocketEvent? {
        if frame.opcode.isControl {
            let payload = control
            control = []
            switch frame.opcode {
            case .ping: return .ping(payload)
            case .pong: return .pong(payload)
            default: return try close(payload)
            }
        }
        guard frame.isFinal else { return nil }
        let isText = messageKind == .text
        let whole = message
        message = []
        messageKind = nil
        guard !isText || isValidUTF8(whole) else { throw .violation("a text is not UTF-8", code: .invalidText) }
        return .message(whole, isText: isText)
    }

    private mutating func close(_ payload: [UInt8]) throws(WebSocketFailure) -> WebSocketEvent {
        isOver = true
        (input, position, message) = ([], 0, [])
        guard !payload.isEmpty else { return .close(.none, reason: "") }
        guard payload.count >= 2 else { throw Self.broken("a close frame has half a code") }
        let code = WebSocketCloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.maySend else {
            throw Self.broken("a close frame has the code \(code.rawValue), which is never sent")
        }
        let reason = Array(payload.dropFirst(2))
        guard isValidUTF8(reason) else { throw .violation("the reason to close is not UTF-8", code: .invalidText) }
        return .close(code, reason: printable(String(decoding: reason, as: UTF8.self)))
    }

    private static func broken(_ words: String) -> WebSocketFailure {
        .violation(words, code: .protocolError)
    }
}
