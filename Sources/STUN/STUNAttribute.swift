/// One attribute of a STUN message: a type and bytes.
public struct STUNAttribute: Hashable, Sendable {
    /// What an attribute is about. Those below 0x8000 must be understood by whoever gets them (RFC 8489, section 14).
    public struct Kind: RawRepresentable, Hashable, Sendable {
        /// The number on the wire.
        public var rawValue: UInt16
        /// Creates a type from its number.
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// The address as old servers write it.
        public static let mappedAddress = Kind(rawValue: 0x0001)
        /// A name for the credentials.
        public static let username = Kind(rawValue: 0x0006)
        /// An HMAC over what stands before it.
        public static let messageIntegrity = Kind(rawValue: 0x0008)
        /// Why a request was not done.
        public static let errorCode = Kind(rawValue: 0x0009)
        /// Which attributes were not understood.
        public static let unknownAttributes = Kind(rawValue: 0x000A)
        /// The address, disguised from meddling NATs.
        public static let xorMappedAddress = Kind(rawValue: 0x0020)
        /// The domain of long-term credentials.
        public static let realm = Kind(rawValue: 0x0014)
        /// What the server wants to see again in authenticated requests.
        public static let nonce = Kind(rawValue: 0x0015)
        /// TURN: the channel to be bound.
        public static let channelNumber = Kind(rawValue: 0x000C)
        /// TURN: for how long, in seconds.
        public static let lifetime = Kind(rawValue: 0x000D)
        /// TURN: the other end of what is relayed.
        public static let xorPeerAddress = Kind(rawValue: 0x0012)
        /// TURN: what is relayed.
        public static let data = Kind(rawValue: 0x0013)
        /// TURN: where others reach the client.
        public static let xorRelayedAddress = Kind(rawValue: 0x0016)
        /// TURN: IPv4 or IPv6.
        public static let requestedAddressFamily = Kind(rawValue: 0x0017)
        /// TURN: the transport between the server and the peer.
        public static let requestedTransport = Kind(rawValue: 0x0019)
        /// ICE: the priority of a peer-reflexive candidate that the check may find.
        public static let priority = Kind(rawValue: 0x0024)
        /// ICE: the pair is the one to be used.
        public static let useCandidate = Kind(rawValue: 0x0025)
        /// ICE: the sender is controlled; a number settles conflicts.
        public static let iceControlled = Kind(rawValue: 0x8029)
        /// ICE: the sender is controlling; a number settles conflicts.
        public static let iceControlling = Kind(rawValue: 0x802A)
        /// Another server to go to.
        public static let alternateServer = Kind(rawValue: 0x8023)
        /// What program sent this.
        public static let software = Kind(rawValue: 0x8022)
        /// A checksum of the message, which tells STUN from other protocols.
        public static let fingerprint = Kind(rawValue: 0x8028)

        /// Whether a receiver that does not know the type must refuse the message.
        public var mustBeUnderstood: Bool { rawValue < 0x8000 }
    }

    /// What it is about.
    public var kind: Kind
    /// The value, without padding; at most 65,535 bytes.
    public var value: [UInt8]

    /// Creates an attribute.
    public init(_ kind: Kind, _ value: [UInt8]) {
        self.kind = kind
        self.value = value
    }

    /// XOR-MAPPED-ADDRESS of an address in an answer to `transaction`.
    public static func xorMappedAddress(_ address: STUNAddress, transaction: STUNTransactionID) -> STUNAttribute {
        STUNAttribute(.xorMappedAddress, address.encoded(transaction: transaction))
    }

    /// An address attribute of another kind, disguised as XOR-MAPPED-ADDRESS is.
    public static func address(
        _ kind: Kind, _ address: STUNAddress, transaction: STUNTransactionID
    ) -> STUNAttribute {
        STUNAttribute(kind, address.encoded(transaction: transaction))
    }

    /// A number of four bytes: PRIORITY, LIFETIME.
    public static func number(_ kind: Kind, _ value: UInt32) -> STUNAttribute {
        var bytes: [UInt8] = []
        bytes.appendBigEndian(value)
        return STUNAttribute(kind, bytes)
    }

    /// A number of eight bytes: the tie-breaker of ICE.
    public static func longNumber(_ kind: Kind, _ value: UInt64) -> STUNAttribute {
        STUNAttribute(kind, (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) })
    }

    /// The value as a number of four bytes; nil for another length.
    public var number: UInt32? { value.count == 4 ? value.bigEndian32(at: 0) : nil }

    /// The value as a number of eight bytes; nil for another length.
    public var longNumber: UInt64? {
        value.count == 8 ? value.reduce(0) { $0 << 8 | UInt64($1) } : nil
    }

    /// ERROR-CODE with a reason of at most 127 bytes (RFC 8489, section 14.8).
    public static func errorCode(_ code: Int, _ reason: String) -> STUNAttribute {
        let bounded = min(max(code, 300), 699)
        return STUNAttribute(
            .errorCode, [0, 0, UInt8(bounded / 100), UInt8(bounded % 100)] + Array(reason.utf8.prefix(127)))
    }
}

/// An address in a STUN attribute: four bytes or sixteen, and a port.
public struct STUNAddress: Hashable, Sendable {
    /// The address in network order: 4 bytes are IPv4, 16 are IPv6.
    public let bytes: [UInt8]
    /// The port.
    public let port: UInt16

    /// Takes an address; nil when it has neither 4 nor 16 bytes.
    public init?(bytes: [UInt8], port: UInt16) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = bytes
        self.port = port
    }

    /// Reads an attribute's value (RFC 8489, section 14.1 and 14.2).
    ///
    /// - Parameter transaction: of the message, when the address is disguised.
    init?(_ value: [UInt8], transaction: STUNTransactionID?) {
        guard value.count == 8 && value[1] == 1 || value.count == 20 && value[1] == 2 else { return nil }
        let mask = Self.mask(transaction)
        bytes = zip(value.dropFirst(4), mask).map { $0 ^ $1 }
        port = value.bigEndian16(at: 2) ^ mask.bigEndian16(at: 0)
    }

    func encoded(transaction: STUNTransactionID?) -> [UInt8] {
        let mask = Self.mask(transaction)
        var value: [UInt8] = [0, bytes.count == 4 ? 1 : 2]
        value.appendBigEndian(port ^ mask.bigEndian16(at: 0))
        return value + zip(bytes, mask).map { $0 ^ $1 }
    }

    /// Cookie and transaction, or nothing but zeros.
    private static func mask(_ transaction: STUNTransactionID?) -> [UInt8] {
        guard let transaction else { return [UInt8](repeating: 0, count: 16) }
        var mask: [UInt8] = []
        mask.appendBigEndian(STUNMessage.magicCookie)
        return mask + transaction.bytes
    }
}
