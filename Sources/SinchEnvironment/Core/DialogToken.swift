import Crypto
import Primitives
import SIP

/// The two sides of a dialog, as the Record-Route URI's user part carries them (RFC 5626 section 5.2: flow tokens).
///
/// The proxy keeps no dialogs. What it must know to relay a later request travels with the request: which device is on
/// which side, and over which flow it was reached. A keyed hash protects it, so that nobody can make up a route to a flow
/// that is not part of a dialog of theirs.
struct DialogToken: Sendable, Equatable {
    /// One side of the dialog.
    struct Side: Sendable, Equatable {
        /// The number of the device's binding; it outlives a change of flow.
        var binding: UInt64
        /// The flow the device had when the dialog began: used when its binding is gone, so that a client which
        /// unregisters can still end its calls.
        var flow: SIPFlow
    }

    /// The side that sent the INVITE.
    var caller: Side
    /// The side that it was sent to.
    var callee: Side
    /// A short hash of the caller's tag: which side a request comes from, also when both share one flow.
    var callerTag: UInt32

}

extension DialogToken {
    /// A token of the dialog that the caller began with this From tag.
    init(caller: Side, callee: Side, callerTag tag: String) {
        self.init(caller: caller, callee: callee, callerTag: Self.hash(tag))
    }

    /// Whether `tag` is the caller's.
    func isCaller(_ tag: String) -> Bool {
        Self.hash(tag) == callerTag
    }

    /// FNV-1a. A side that finds another tag with the same hash only confuses its own dialog.
    private static func hash(_ tag: String) -> UInt32 {
        tag.utf8.reduce(0x811C_9DC5) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
    }
}

/// Seals and opens dialog tokens with a key that lives as long as the environment.
struct DialogTokenSealer: Sendable {
    private static let version: UInt8 = 1
    /// 96 bits: too many to guess online, and the token must not bloat a datagram.
    private static let macLength = 12
    private static let transports: [SIPTransport] = [.udp, .tcp, .tls, .ws, .wss]

    private let key: [UInt8]

    init(random: inout RandomSource) {
        var key: [UInt8] = []
        for _ in 0..<4 {
            let word = random.next()
            for shift in stride(from: UInt64(0), to: 64, by: 8) { key.append(UInt8(truncatingIfNeeded: word >> shift)) }
        }
        self.key = key
    }

    /// The token as text of a URI's user part.
    func seal(_ token: DialogToken) -> String {
        var bytes: [UInt8] = [Self.version]
        for shift in stride(from: 0, to: 32, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: token.callerTag >> UInt32(shift)))
        }
        Self.append(token.caller, to: &bytes)
        Self.append(token.callee, to: &bytes)
        bytes += mac(of: bytes)
        return base64URLEncode(bytes)
    }

    /// The token that `seal` made; nil for anything else.
    func open(_ text: String) -> DialogToken? {
        // Longer than any token that `seal` makes: not worth hashing.
        guard text.utf8.count <= 256, let bytes = try? base64URLDecode(text), bytes.count > Self.macLength + 5 else {
            return nil
        }
        let body = Array(bytes.dropLast(Self.macLength))
        guard constantTimeEqual(mac(of: body), Array(bytes.suffix(Self.macLength))), body.first == Self.version else {
            return nil
        }
        var rest = body.dropFirst()
        let tag = rest.prefix(4).reversed().reduce(UInt32(0)) { sum, byte in sum << 8 | UInt32(byte) }
        rest = rest.dropFirst(4)
        guard let caller = Self.takeSide(&rest), let callee = Self.takeSide(&rest), rest.isEmpty else { return nil }
        return DialogToken(caller: caller, callee: callee, callerTag: tag)
    }

    /// A keyed hash of arbitrary text, for branches and loop detection.
    func digest(_ parts: [String]) -> String {
        var bytes: [UInt8] = []
        for part in parts {
            // Lengths in front, so that no two lists of parts read the same.
            Self.append(UInt64(part.utf8.count), to: &bytes)
            bytes += Array(part.utf8)
        }
        return Crypto.hexadecimal(Array(hmacSHA256(key: key, bytes).prefix(10)))
    }

    private func mac(of bytes: [UInt8]) -> [UInt8] {
        Array(hmacSHA256(key: key, bytes).prefix(Self.macLength))
    }

    private static func append(_ side: DialogToken.Side, to bytes: inout [UInt8]) {
        append(side.binding, to: &bytes)
        bytes.append(UInt8(transports.firstIndex(of: side.flow.transport) ?? 0))
        append(side.flow.connection, to: &bytes)
        append(UInt64(side.flow.remote.port), to: &bytes)
        let host = Array(side.flow.remote.host.utf8.prefix(64))
        bytes.append(UInt8(host.count))
        bytes += host
    }

    private static func takeSide(_ bytes: inout ArraySlice<UInt8>) -> DialogToken.Side? {
        guard let binding = takeNumber(&bytes), let transport = bytes.popFirst(), transport < transports.count,
            let connection = takeNumber(&bytes), let port = takeNumber(&bytes).flatMap({ UInt16(exactly: $0) }),
            let length = bytes.popFirst(), bytes.count >= Int(length)
        else { return nil }
        let host = String(decoding: bytes.prefix(Int(length)), as: UTF8.self)
        bytes = bytes.dropFirst(Int(length))
        let flow = SIPFlow(
            transport: transports[Int(transport)], remote: TransportAddress(host: host, port: port),
            connection: connection)
        return DialogToken.Side(binding: binding, flow: flow)
    }

    /// Seven bits a byte, the lowest first.
    private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        var rest = number
        while rest > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    private static func takeNumber(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = bytes.popFirst() else { return nil }
            number |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return number }
        }
        return nil
    }
}
