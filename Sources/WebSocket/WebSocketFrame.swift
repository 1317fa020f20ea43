/// Which side of a connection somebody is: clients mask what they send, servers do not (RFC 6455, section 5.1).
public enum WebSocketRole: Sendable {
    case client, server
}

/// What a frame is (RFC 6455, section 5.2).
public enum WebSocketOpcode: UInt8, Sendable {
    /// A further part of the message.
    case continuation = 0
    /// A message of UTF-8 text, or its first part.
    case text = 1
    /// A message of any bytes, or its first part.
    case binary = 2
    /// The last frame of its sender.
    case close = 8
    /// Asks for a pong.
    case ping = 9
    /// Answers a ping, or says unasked that its sender lives.
    case pong = 10

    /// Whether it may come between the parts of a message and must be short.
    public var isControl: Bool { rawValue >= 8 }
}

/// Four bytes that a client's payload is XORed with, so that no intermediary takes it for anything else.
public struct WebSocketMask: Hashable, Sendable {
    /// The key, its first byte the most significant.
    public var key: UInt32

    /// A mask of that key. A sender takes a fresh, unpredictable one for each frame.
    public init(key: UInt32) { self.key = key }

    /// XORs bytes; the first of them is the payload's byte number `offset`.
    func apply(to bytes: inout [UInt8], from start: Int, offset: Int) {
        var phase = offset
        for index in start..<bytes.count {
            bytes[index] ^= UInt8(truncatingIfNeeded: key &>> UInt32(24 &- 8 &* (phase & 3)))
            phase &+= 1
        }
    }
}

/// One frame, as bytes.
///
/// - Parameters:
///   - isFinal: whether it is the message's last.
///   - mask: for a client's frames only.
public func webSocketFrame(
    _ opcode: WebSocketOpcode, _ payload: [UInt8], isFinal: Bool = true, mask: WebSocketMask?
) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(payload.count + 14)
    bytes.append(opcode.rawValue | (isFinal ? 0x80 : 0))
    let maskBit: UInt8 = mask == nil ? 0 : 0x80
    let length = UInt64(payload.count)
    let lengthBytes: Int
    switch length {
    case 0...125:
        bytes.append(maskBit | UInt8(length))
        lengthBytes = 0
    case 126...0xFFFF:
        bytes.append(maskBit | 126)
        lengthBytes = 2
    default:
        bytes.append(maskBit | 127)
        lengthBytes = 8
    }
    for position in (0..<lengthBytes).reversed() {
        bytes.append(UInt8(truncatingIfNeeded: length >> UInt64(8 * position)))
    }
    if let mask {
        for position in (0..<4).reversed() { bytes.append(UInt8(truncatingIfNeeded: mask.key >> UInt32(8 * position))) }
    }
    let start = bytes.count
    bytes.append(contentsOf: payload)
    mask?.apply(to: &bytes, from: start, offset: 0)
    return bytes
}

/// The payload of a close frame: the code and a reason, cut to what a control frame can carry (at a character's end).
public func webSocketClosePayload(_ code: WebSocketCloseCode, reason: String = "") -> [UInt8] {
    guard code.maySend else { return [] }
    var bytes = [UInt8(truncatingIfNeeded: code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)]
    for character in reason {
        let encoded = character.utf8
        guard bytes.count + encoded.count <= 125 else { break }
        bytes.append(contentsOf: encoded)
    }
    return bytes
}

/// Whether bytes are UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
public func isValidUTF8(_ bytes: [UInt8]) -> Bool {
    (try? UTF8Span(validating: bytes.span)) != nil
}
