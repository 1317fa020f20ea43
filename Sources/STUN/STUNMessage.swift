/// A STUN message (RFC 8489): a header, and attributes that are kept as they came.
public struct STUNMessage: Hashable, Sendable {
    /// What the message is within its transaction.
    public enum Class: UInt16, Hashable, Sendable {
        /// Wants an answer.
        case request = 0
        /// Wants none.
        case indication = 1
        /// The answer to a request that was done.
        case success = 2
        /// The answer to a request that was not.
        case error = 3
    }

    /// The method of connectivity checks and keep-alives.
    public static let bindingMethod: UInt16 = 0x001
    /// What tells STUN from everything else at the same port.
    static let magicCookie: UInt32 = 0x2112_A442
    static let headerBytes = 20

    /// Request, indication or answer.
    public var messageClass: Class
    /// The method, 12 bits: `bindingMethod`.
    public var method: UInt16
    /// Ties an answer to its request.
    public var transaction: STUNTransactionID
    /// The attributes in the order in which they stand, without FINGERPRINT, which is checked and made on the way.
    public var attributes: [STUNAttribute]

    /// Creates a message.
    public init(
        _ messageClass: Class, method: UInt16 = STUNMessage.bindingMethod, transaction: STUNTransactionID,
        attributes: [STUNAttribute] = []
    ) {
        self.messageClass = messageClass
        self.method = method & 0xFFF
        self.transaction = transaction
        self.attributes = attributes
    }

    /// Whether a datagram is STUN and not SIP or RTP: two zero bits and the magic cookie (RFC 8489, section 5).
    public static func looksLikeSTUN(_ bytes: [UInt8]) -> Bool {
        bytes.count >= headerBytes && bytes[0] < 0x40 && bytes.bigEndian32(at: 4) == magicCookie
    }

    /// The first attribute of a type; later ones of the same type do not count (RFC 8489, section 14).
    public func first(_ type: STUNAttribute.Kind) -> STUNAttribute? {
        attributes.first { $0.kind == type }
    }

    /// The sender's address as the other side sees it: XOR-MAPPED-ADDRESS, or MAPPED-ADDRESS from old servers.
    public var mappedAddress: STUNAddress? {
        if let attribute = first(.xorMappedAddress) {
            return STUNAddress(attribute.value, transaction: transaction)
        }
        return first(.mappedAddress).flatMap { STUNAddress($0.value, transaction: nil) }
    }

    /// An address attribute of any kind.
    public func address(_ kind: STUNAttribute.Kind) -> STUNAddress? {
        first(kind).flatMap { STUNAddress($0.value, transaction: transaction) }
    }

    /// The number in ERROR-CODE, 300…699; nil when there is none that is one (RFC 8489, section 14.8).
    public var errorCode: Int? {
        guard let value = first(.errorCode)?.value, value.count >= 4 else { return nil }
        let (hundreds, rest) = (Int(value[2] & 7), Int(value[3]))
        return (3...6).contains(hundreds) && rest < 100 ? hundreds * 100 + rest : nil
    }

    /// Class and method in the 14 bits where they are interleaved (RFC 8489, section 5).
    var typeField: UInt16 {
        let (code, method) = (messageClass.rawValue, method)
        return (method & 0xF80) << 2 | (method & 0x70) << 1 | method & 0xF | (code & 2) << 7 | (code & 1) << 4
    }

    static func take(typeField field: UInt16) -> (Class, UInt16)? {
        guard let messageClass = Class(rawValue: (field & 0x100) >> 7 | (field & 0x10) >> 4) else { return nil }
        return (messageClass, (field & 0x3E00) >> 2 | (field & 0xE0) >> 1 | field & 0xF)
    }
}

/// 96 random bits that tie an answer to its request.
public struct STUNTransactionID: Hashable, Sendable {
    /// The twelve bytes.
    public let bytes: [UInt8]

    /// Takes twelve bytes; nil for any other number.
    public init?(bytes: [UInt8]) {
        guard bytes.count == 12 else { return nil }
        self.bytes = bytes
    }

    /// Draws one that nobody can guess, when the source is the system.
    public init(using random: inout some RandomNumberGenerator) {
        bytes = (0..<12).map { _ in UInt8.random(in: 0...255, using: &random) }
    }
}

extension [UInt8] {
    /// Two bytes in network order; the caller has checked the length.
    func bigEndian16(at offset: Int) -> UInt16 {
        UInt16(self[offset]) << 8 | UInt16(self[offset + 1])
    }

    /// Four bytes in network order; the caller has checked the length.
    func bigEndian32(at offset: Int) -> UInt32 {
        UInt32(bigEndian16(at: offset)) << 16 | UInt32(bigEndian16(at: offset + 2))
    }

    mutating func appendBigEndian(_ value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }

    mutating func appendBigEndian(_ value: UInt32) {
        appendBigEndian(UInt16(truncatingIfNeeded: value >> 16))
        appendBigEndian(UInt16(truncatingIfNeeded: value))
    }
}
