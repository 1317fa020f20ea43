import Crypto

/// Why bytes are no STUN message.
public enum STUNParseError: Error, Hashable, Sendable {
    /// Too short, or without the magic cookie.
    case notSTUN
    /// A length that does not fit what came.
    case length
    /// FINGERPRINT does not fit the message, or is not its last attribute: this is another protocol.
    case fingerprint
}

extension STUNMessage {
    /// Reads a datagram. FINGERPRINT is checked where it stands and left out of the attributes.
    public static func parse(_ bytes: [UInt8]) throws(STUNParseError) -> STUNMessage {
        guard looksLikeSTUN(bytes), let (messageClass, method) = take(typeField: bytes.bigEndian16(at: 0)),
            let transaction = STUNTransactionID(bytes: Array(bytes[8..<headerBytes]))
        else { throw .notSTUN }
        let length = Int(bytes.bigEndian16(at: 2))
        guard length % 4 == 0, bytes.count == headerBytes + length else { throw .length }
        var message = STUNMessage(messageClass, method: method, transaction: transaction)
        var position = headerBytes
        while position < bytes.count {
            // All lengths are multiples of four, so that a header is whole when it begins.
            let kind = STUNAttribute.Kind(rawValue: bytes.bigEndian16(at: position))
            let size = Int(bytes.bigEndian16(at: position + 2))
            let start = position + 4
            let end = start + (size + 3) / 4 * 4
            guard end <= bytes.count else { throw .length }
            if kind == .fingerprint {
                guard size == 4, end == bytes.count,
                    bytes.bigEndian32(at: start) == fingerprint(of: bytes[..<position])
                else { throw .fingerprint }
            } else {
                message.attributes.append(STUNAttribute(kind, Array(bytes[start..<(start + size)])))
            }
            position = end
        }
        return message
    }

    /// The message as it goes over the wire.
    ///
    /// - Parameters:
    ///   - key: adds MESSAGE-INTEGRITY made with it: the password in short-term, a hash in long-term credentials.
    ///   - fingerprint: whether FINGERPRINT is added, for ports that other protocols use, too.
    public func encoded(key: [UInt8]? = nil, fingerprint: Bool = true) -> [UInt8] {
        var body: [UInt8] = []
        for attribute in attributes {
            let value = attribute.value.prefix(65_535)
            body.appendBigEndian(attribute.kind.rawValue)
            body.appendBigEndian(UInt16(truncatingIfNeeded: value.count))
            body += value
            body += [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
        }
        func message(length: Int) -> [UInt8] {
            var bytes: [UInt8] = []
            bytes.appendBigEndian(typeField)
            bytes.appendBigEndian(UInt16(truncatingIfNeeded: length))
            bytes.appendBigEndian(Self.magicCookie)
            return bytes + transaction.bytes + body
        }
        if let key {
            // Made over a header whose length includes itself, but not FINGERPRINT (RFC 8489, section 14.5).
            let code = hmacSHA1(key: key, message(length: body.count + Self.integrityBytes))
            body.appendBigEndian(STUNAttribute.Kind.messageIntegrity.rawValue)
            body.appendBigEndian(UInt16(truncatingIfNeeded: code.count))
            body += code
        }
        var bytes = message(length: body.count + (fingerprint ? 8 : 0))
        if fingerprint {
            let value = Self.fingerprint(of: bytes[...])
            bytes.appendBigEndian(STUNAttribute.Kind.fingerprint.rawValue)
            bytes.appendBigEndian(UInt16(4))
            bytes.appendBigEndian(value)
        }
        return bytes
    }

    /// MESSAGE-INTEGRITY with its header.
    static let integrityBytes = 24

    /// Whether a received datagram carries a MESSAGE-INTEGRITY made with this key; false when it carries none.
    ///
    /// What stands behind that attribute is not covered by it: ``protected`` leaves it out.
    public static func hasIntegrity(_ bytes: [UInt8], key: [UInt8]) -> Bool {
        guard let position = integrityPosition(bytes) else { return false }
        var covered = Array(bytes[..<position])
        let length = UInt16(truncatingIfNeeded: position - headerBytes + integrityBytes)
        covered[2] = UInt8(truncatingIfNeeded: length >> 8)
        covered[3] = UInt8(truncatingIfNeeded: length)
        return constantTimeEqual(hmacSHA1(key: key, covered), Array(bytes[(position + 4)..<(position + 24)]))
    }

    /// The message without the attributes that its MESSAGE-INTEGRITY does not cover, so that nobody on the way adds any.
    public var protected: STUNMessage {
        guard let index = attributes.firstIndex(where: { $0.kind == .messageIntegrity }) else { return self }
        var message = self
        message.attributes = Array(attributes[...index])
        return message
    }

    /// Where MESSAGE-INTEGRITY begins.
    private static func integrityPosition(_ bytes: [UInt8]) -> Int? {
        var position = headerBytes
        while position + 4 <= bytes.count {
            let size = Int(bytes.bigEndian16(at: position + 2))
            if bytes.bigEndian16(at: position) == STUNAttribute.Kind.messageIntegrity.rawValue {
                return size == 20 && position + integrityBytes <= bytes.count ? position : nil
            }
            position += 4 + (size + 3) / 4 * 4
        }
        return nil
    }

    /// CRC-32 of what stands before the attribute, with "STUN" laid over it (RFC 8489, section 14.7).
    private static func fingerprint(of bytes: ArraySlice<UInt8>) -> UInt32 {
        var remainder = UInt32.max
        for byte in bytes {
            remainder ^= UInt32(byte)
            for _ in 0..<8 { remainder = remainder >> 1 ^ (remainder & 1 == 0 ? 0 : 0xEDB8_8320) }
        }
        return ~remainder ^ 0x5354_554E
    }
}
