import Crypto
import Primitives
import STUN

/// An allocation at a TURN server (RFC 8656): an address there that relays to us, kept alive, with permissions for peers
/// and a channel for the one that media goes to. A state machine: its owner sends what it says and feeds what arrives.
struct TURNClient: Sendable {
    /// What it tells its owner.
    enum Event: Sendable {
        /// Send these bytes to the server.
        case send([UInt8])
        /// There is a relayed address, and the server sees us at the mapped one.
        case allocated(relayed: STUNAddress, mapped: STUNAddress?)
        /// The server will not relay, or does not any more.
        case failed(String)
        /// A peer's bytes came through.
        case received([UInt8], from: STUNAddress)
        /// The channel to the peer stands.
        case bound(channel: UInt16, STUNAddress)
    }

    private enum Purpose: Sendable {
        case allocate
        case refresh
        case permit([STUNAddress])
        case bind(UInt16, STUNAddress)
    }

    private struct Pending: Sendable {
        let purpose: Purpose
        var retransmission: Retransmission
        /// How often it was repeated because of its credentials.
        var challenges: Int
    }

    private static let allocateMethod: UInt16 = 0x003
    private static let refreshMethod: UInt16 = 0x004
    private static let sendMethod: UInt16 = 0x006
    private static let dataMethod: UInt16 = 0x007
    private static let permissionMethod: UInt16 = 0x008
    private static let bindMethod: UInt16 = 0x009
    /// Permissions last 5 minutes and channels 10 (RFC 8656, sections 9 and 12).
    private static let renewal: Duration = .seconds(240)
    private static let maximumPeers = 64

    private let credentials: TURNCredentials
    private var random: RandomSource
    private var realm: [UInt8] = []
    private var nonce: [UInt8] = []
    private var pending: [STUNTransactionID: Pending] = [:]
    private var events: [Event] = []
    private var permitted: Set<[UInt8]> = []
    private var peers: [STUNAddress] = []
    private var channels: [UInt16: STUNAddress] = [:]
    private var nextRefresh: MonotonicTime?
    private var nextRenewal: MonotonicTime?
    /// Where peers reach us; nil before the server said so.
    private(set) var relayed: STUNAddress?
    private var isOver = false

    init(credentials: TURNCredentials, random: RandomSource) {
        self.credentials = credentials
        self.random = random
    }

    // MARK: Inputs

    mutating func start(at now: MonotonicTime) {
        request(.allocate, at: now)
    }

    /// Lets peers at these addresses send through the relay; the ports do not matter.
    mutating func permit(_ addresses: [STUNAddress], at now: MonotonicTime) {
        guard relayed != nil else { return }
        let new = addresses.filter { !permitted.contains($0.bytes) && $0.isIPv6 == relayed?.isIPv6 }
            .prefix(max(0, Self.maximumPeers - permitted.count))
        guard !new.isEmpty else { return }
        permitted.formUnion(new.map(\.bytes))
        peers += new
        request(.permit(Array(new)), at: now)
    }

    /// Binds a channel to a peer, so that each packet carries 4 bytes more instead of 36.
    mutating func bind(_ peer: STUNAddress, at now: MonotonicTime) {
        guard !channels.values.contains(peer), let channel = (0x4000...0x4FFF).first(where: { channels[$0] == nil })
        else { return }
        channels[channel] = peer
        request(.bind(channel, peer), at: now)
    }

    /// Bytes for a peer, wrapped up for the server.
    mutating func wrap(_ payload: [UInt8], to peer: STUNAddress) -> [UInt8] {
        let transaction = STUNTransactionID(using: &random)
        return STUNMessage(
            .indication, method: Self.sendMethod, transaction: transaction,
            attributes: [
                .address(.xorPeerAddress, peer, transaction: transaction), STUNAttribute(.data, payload),
            ]
        ).encoded(fingerprint: false)
    }

    /// Gives the allocation back.
    mutating func release(at now: MonotonicTime) {
        guard relayed != nil, !isOver else { return }
        isOver = true
        let transaction = STUNTransactionID(using: &random)
        let message = STUNMessage(
            .request, method: Self.refreshMethod, transaction: transaction,
            attributes: [.number(.lifetime, 0)] + proof)
        events.append(.send(message.encoded(key: key)))
        pending = [:]
        nextRefresh = nil
        nextRenewal = nil
    }

    /// Bytes of the server.
    mutating func receive(_ bytes: [UInt8], at now: MonotonicTime) {
        if let first = bytes.first, (0x40...0x4F).contains(first) {
            receiveChannelData(bytes)
            return
        }
        guard let message = try? STUNMessage.parse(bytes) else { return }
        switch message.messageClass {
        case .indication:
            guard message.method == Self.dataMethod, let peer = message.address(.xorPeerAddress),
                permitted.contains(peer.bytes), let data = message.first(.data)?.value
            else { return }
            events.append(.received(data, from: peer))
        case .success, .error:
            guard let answered = pending[message.transaction] else { return }
            receive(message, bytes, to: answered, at: now)
        case .request: return
        }
    }

    mutating func timeout(at now: MonotonicTime) {
        for (id, entry) in pending where entry.retransmission.next <= now {
            var entry = entry
            switch entry.retransmission.step(at: now) {
            case .send:
                pending[id] = entry
                events.append(.send(entry.retransmission.bytes))
            case .giveUp:
                pending[id] = nil
                fail("the TURN server does not answer", of: entry.purpose)
            }
        }
        if let due = nextRefresh, due <= now {
            nextRefresh = nil
            request(.refresh, at: now)
        }
        if let due = nextRenewal, due <= now {
            nextRenewal = now + Self.renewal
            if !peers.isEmpty { request(.permit(peers), at: now) }
            for (channel, peer) in channels.sorted(by: { $0.key < $1.key }) { request(.bind(channel, peer), at: now) }
        }
    }

    // MARK: Outputs

    var nextTimeout: MonotonicTime? {
        (pending.values.map(\.retransmission.next) + [nextRefresh, nextRenewal].compactMap(\.self)).min()
    }

    mutating func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    // MARK: Inside

    private var key: [UInt8] {
        // RFC 8489, section 9.2.2.
        md5(Array(credentials.username.utf8) + [0x3A] + realm + [0x3A] + Array(credentials.password.utf8))
    }

    private var proof: [STUNAttribute] {
        nonce.isEmpty
            ? []
            : [
                STUNAttribute(.username, Array(credentials.username.utf8)), STUNAttribute(.realm, realm),
                STUNAttribute(.nonce, nonce),
            ]
    }

    private mutating func request(_ purpose: Purpose, challenges: Int = 0, at now: MonotonicTime) {
        guard !isOver else { return }
        let transaction = STUNTransactionID(using: &random)
        var message = STUNMessage(.request, transaction: transaction)
        switch purpose {
        case .allocate:
            message.method = Self.allocateMethod
            // 17: UDP.
            message.attributes = [STUNAttribute(.requestedTransport, [17, 0, 0, 0])]
        case .refresh:
            message.method = Self.refreshMethod
        case .permit(let addresses):
            message.method = Self.permissionMethod
            message.attributes = addresses.map { .address(.xorPeerAddress, $0, transaction: transaction) }
        case .bind(let channel, let peer):
            message.method = Self.bindMethod
            message.attributes = [
                STUNAttribute(.channelNumber, [UInt8(channel >> 8), UInt8(channel & 0xFF), 0, 0]),
                .address(.xorPeerAddress, peer, transaction: transaction),
            ]
        }
        message.attributes += proof
        let bytes = message.encoded(key: nonce.isEmpty ? nil : key)
        pending[transaction] = Pending(
            purpose: purpose,
            retransmission: Retransmission(
                bytes, interval: .milliseconds(250), tries: 6, last: .seconds(4), at: now),
            challenges: challenges)
        events.append(.send(bytes))
    }

    private mutating func receive(
        _ message: STUNMessage, _ bytes: [UInt8], to answered: Pending, at now: MonotonicTime
    ) {
        if message.messageClass == .error {
            pending[message.transaction] = nil
            receiveError(message, to: answered, at: now)
            return
        }
        // Nobody else may tell us where our relay is.
        guard STUNMessage.hasIntegrity(bytes, key: key) else { return }
        pending[message.transaction] = nil
        let message = message.protected
        switch answered.purpose {
        case .allocate:
            guard let address = message.address(.xorRelayedAddress) else {
                fail("the TURN server gave no address", of: .allocate)
                return
            }
            relayed = address
            nextRenewal = now + Self.renewal
            scheduleRefresh(message, at: now)
            events.append(.allocated(relayed: address, mapped: message.mappedAddress))
        case .refresh: scheduleRefresh(message, at: now)
        case .permit: break
        case .bind(let channel, let peer): events.append(.bound(channel: channel, peer))
        }
    }

    private mutating func scheduleRefresh(_ message: STUNMessage, at now: MonotonicTime) {
        let seconds = message.first(.lifetime)?.number ?? 600
        // A minute early, or at half time when the server is in a hurry.
        let lifetime = min(max(seconds, 20), 3_600)
        nextRefresh = now + .seconds(Int(max(lifetime / 2, lifetime > 120 ? lifetime - 60 : 0)))
    }

    private mutating func receiveError(_ message: STUNMessage, to answered: Pending, at now: MonotonicTime) {
        let code = message.errorCode ?? 500
        if code == 401 || code == 438, answered.challenges < 2, let nonce = message.first(.nonce)?.value,
            let realm = message.first(.realm)?.value ?? (self.realm.isEmpty ? nil : self.realm),
            nonce.count <= 763, realm.count <= 763,
            // The same challenge again means that the credentials are wrong.
            code == 438 || self.nonce.isEmpty
        {
            self.nonce = nonce
            self.realm = realm
            request(answered.purpose, challenges: answered.challenges + 1, at: now)
            return
        }
        let reason =
            switch code {
            case 401: "the TURN server does not accept the user name and password"
            case 403: "the TURN server forbids it"
            case 437: "the TURN server has lost the allocation"
            case 486: "the TURN server gives this user no more allocations"
            case 508: "the TURN server has no capacity"
            default: "the TURN server refuses with \(code)"
            }
        fail(reason, of: answered.purpose)
    }

    private mutating func fail(_ reason: String, of purpose: Purpose) {
        switch purpose {
        case .allocate, .refresh:
            isOver = true
            pending = [:]
            nextRefresh = nil
            nextRenewal = nil
            events.append(.failed(reason))
        case .permit(let addresses):
            // Checks over them will fail by themselves, and may be tried again.
            permitted.subtract(addresses.map(\.bytes))
            peers.removeAll { addresses.contains($0) }
        case .bind(let channel, _): channels[channel] = nil
        }
    }

    private mutating func receiveChannelData(_ bytes: [UInt8]) {
        guard bytes.count >= 4, let peer = channels[UInt16(bytes[0]) << 8 | UInt16(bytes[1])] else { return }
        let length = Int(bytes[2]) << 8 | Int(bytes[3])
        // Over a stream it is padded to four bytes.
        guard bytes.count >= 4 + length, bytes.count < 8 + length else { return }
        events.append(.received(Array(bytes[4..<(4 + length)]), from: peer))
    }
}
