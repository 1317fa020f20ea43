import Crypto
import Primitives
import STUN

@testable import ICE

/// How a NAT maps and filters (RFC 4787), by the names that people use.
enum NATKind: String, CaseIterable, Sendable {
    /// No NAT: a public address.
    case open
    case fullCone
    case restricted
    case portRestricted
    case symmetric
    /// Lets no UDP out at all.
    case blocked
}

/// An IPv4 address of the simulation.
func simulatedAddress(_ bytes: [UInt8], _ port: UInt16) -> STUNAddress {
    guard let address = STUNAddress(bytes: bytes, port: port) else { fatalError("\(bytes) is no address") }
    return address
}

/// A network of two clients behind NATs, a STUN and a TURN server, in simulated time, with seeded loss and delay.
struct SimulatedInternet {
    struct Datagram {
        let bytes: [UInt8]
        let from: STUNAddress
        let to: STUNAddress
        let time: MonotonicTime
        let number: Int
    }

    /// One client and the NAT in front of it.
    struct Site {
        let kind: NATKind
        let inside: STUNAddress
        let outside: [UInt8]
        /// Public port by inside port and, for symmetric NATs, destination.
        var mappings: [String: UInt16] = [:]
        /// Where packets were sent from a public port.
        var contacted: [UInt16: Set<STUNAddress>] = [:]
        var nextPort: UInt16 = 40_000
    }

    static let stun = simulatedAddress([198, 51, 100, 1], 3_478)
    static let turn = simulatedAddress([198, 51, 100, 2], 3_478)
    static let turnStream = simulatedAddress([198, 51, 100, 2], 5_349)
    static let credentials = TURNCredentials(username: "alice", password: "correct horse")

    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    var delay: Duration = .milliseconds(20)
    var loss = 0.0
    var sites: [Site] = []
    /// Datagrams that no NAT let in, and those that were lost.
    private(set) var dropped = 0
    private var queue: [Datagram] = []
    private var count = 0
    private var random: RandomSource
    private var relay = SimulatedRelay()

    init(_ kinds: [NATKind], seed: UInt64 = 1) {
        random = .seeded(seed)
        for (index, kind) in kinds.enumerated() {
            let isPublic = kind == .open
            let outside: [UInt8] = [203, 0, 113, UInt8(10 + index)]
            let inside = isPublic ? outside : [10, 0, UInt8(index), 2]
            sites.append(Site(kind: kind, inside: simulatedAddress(inside, 5_000), outside: outside))
        }
    }

    /// A client sends from its socket; socket 9 is its stream to the TURN server, which no NAT stops.
    mutating func send(_ bytes: [UInt8], site: Int, socket: Int, to destination: STUNAddress) {
        if socket == 9 {
            post(bytes, from: simulatedAddress(sites[site].outside, 55_555), to: destination, isSafe: true)
            return
        }
        var from = sites[site].inside
        switch sites[site].kind {
        case .blocked: return
        case .open: break
        default:
            let key = sites[site].kind == .symmetric ? "\(destination.host):\(destination.port)" : ""
            let port =
                sites[site].mappings[key]
                ?? {
                    sites[site].nextPort += 7
                    return sites[site].nextPort
                }()
            sites[site].mappings[key] = port
            sites[site].contacted[port, default: []].insert(destination)
            from = simulatedAddress(sites[site].outside, port)
        }
        post(bytes, from: from, to: destination)
    }

    private mutating func post(_ bytes: [UInt8], from: STUNAddress, to: STUNAddress, isSafe: Bool = false) {
        if !isSafe, random.unitInterval() < loss {
            dropped += 1
            return
        }
        count += 1
        queue.append(Datagram(bytes: bytes, from: from, to: to, time: now + delay, number: count))
    }

    var nextArrival: MonotonicTime? { queue.map(\.time).min() }

    /// Delivers what has arrived: for servers at once, for clients as (site, socket, bytes, source).
    mutating func arrivals() -> [(site: Int, socket: Int, bytes: [UInt8], from: STUNAddress)] {
        let due = queue.filter { $0.time <= now }.sorted { ($0.time, $0.number) < ($1.time, $1.number) }
        queue.removeAll { $0.time <= now }
        var found: [(site: Int, socket: Int, bytes: [UInt8], from: STUNAddress)] = []
        for datagram in due {
            if datagram.to == Self.stun {
                if let answer = BindingServer.response(to: datagram.bytes, from: datagram.from) {
                    post(answer, from: Self.stun, to: datagram.from)
                }
            } else if datagram.to.host == Self.turn.host {
                let isStream = datagram.from.port == 55_555
                for (bytes, from, to) in relay.receive(datagram.bytes, from: datagram.from, at: datagram.to) {
                    post(bytes, from: from, to: to, isSafe: isStream && to == datagram.from)
                }
            } else if let arrival = enter(datagram) {
                found.append(arrival)
            } else {
                dropped += 1
            }
        }
        return found
    }

    /// What the NAT in front of the destination does.
    private func enter(_ datagram: Datagram) -> (site: Int, socket: Int, bytes: [UInt8], from: STUNAddress)? {
        guard let index = sites.firstIndex(where: { $0.outside == datagram.to.bytes }) else { return nil }
        let site = sites[index]
        if datagram.to.port == 55_555 { return (index, 9, datagram.bytes, datagram.from) }
        switch site.kind {
        case .blocked: return nil
        case .open: return datagram.to == site.inside ? (index, 0, datagram.bytes, datagram.from) : nil
        case .fullCone: guard site.contacted[datagram.to.port] != nil else { return nil }
        case .restricted:
            guard site.contacted[datagram.to.port]?.contains(where: { $0.bytes == datagram.from.bytes }) == true
            else { return nil }
        case .portRestricted, .symmetric:
            guard site.contacted[datagram.to.port]?.contains(datagram.from) == true else { return nil }
        }
        return (index, 0, datagram.bytes, datagram.from)
    }
}

/// A TURN server as small as it can be: allocations, permissions, channels.
struct SimulatedRelay {
    private struct Allocation {
        let relayed: STUNAddress
        let server: STUNAddress
        var permitted: Set<[UInt8]> = []
        var channels: [UInt16: STUNAddress] = [:]
    }

    private var allocations: [STUNAddress: Allocation] = [:]
    private var nextPort: UInt16 = 50_000
    private let realm = Array("relay.example".utf8)
    private let nonce = Array("a-nonce".utf8)

    /// What the server sends: bytes, from where, to whom.
    mutating func receive(
        _ bytes: [UInt8], from client: STUNAddress, at local: STUNAddress
    ) -> [(bytes: [UInt8], from: STUNAddress, to: STUNAddress)] {
        // To a relayed address: a peer.
        if let (owner, allocation) = allocations.first(where: { $0.value.relayed == local }) {
            guard allocation.permitted.contains(client.bytes) else { return [] }
            if let channel = allocation.channels.first(where: { $0.value == client })?.key {
                let header = [
                    UInt8(channel >> 8), UInt8(channel & 0xFF), UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF),
                ]
                return [(header + bytes, allocation.server, owner)]
            }
            var random = RandomSource.seeded(UInt64(bytes.count))
            let id = STUNTransactionID(using: &random)
            let indication = STUNMessage(
                .indication, method: 7, transaction: id,
                attributes: [.address(.xorPeerAddress, client, transaction: id), STUNAttribute(.data, bytes)])
            return [(indication.encoded(fingerprint: false), allocation.server, owner)]
        }
        if let first = bytes.first, first >= 0x40, bytes.count >= 4 {
            guard let allocation = allocations[client],
                let peer = allocation.channels[UInt16(bytes[0]) << 8 | UInt16(bytes[1])]
            else { return [] }
            return [(Array(bytes[4...]), allocation.relayed, peer)]
        }
        guard let message = try? STUNMessage.parse(bytes) else { return [] }
        if message.messageClass == .indication {
            guard let allocation = allocations[client], let peer = message.address(.xorPeerAddress),
                allocation.permitted.contains(peer.bytes), let data = message.first(.data)?.value
            else { return [] }
            return [(data, allocation.relayed, peer)]
        }
        let credentials = SimulatedInternet.credentials
        let key = md5(Array("\(credentials.username):relay.example:\(credentials.password)".utf8))
        var response = STUNMessage(.success, method: message.method, transaction: message.transaction)
        guard message.first(.nonce)?.value == nonce, STUNMessage.hasIntegrity(bytes, key: key) else {
            response.messageClass = .error
            response.attributes = [
                .errorCode(401, "Unauthorized"), STUNAttribute(.realm, realm), STUNAttribute(.nonce, nonce),
            ]
            return [(response.encoded(), local, client)]
        }
        switch message.method {
        case 3:
            nextPort += 2
            let relayed = simulatedAddress(local.bytes, nextPort)
            let allocation = allocations[client] ?? Allocation(relayed: relayed, server: local)
            allocations[client] = allocation
            response.attributes = [
                .address(.xorRelayedAddress, allocation.relayed, transaction: message.transaction),
                .xorMappedAddress(client, transaction: message.transaction), .number(.lifetime, 600),
            ]
        case 4:
            if message.first(.lifetime)?.number == 0 { allocations[client] = nil }
            response.attributes = [.number(.lifetime, 600)]
        case 8:
            for attribute in message.attributes where attribute.kind == .xorPeerAddress {
                var one = message
                one.attributes = [attribute]
                if let peer = one.address(.xorPeerAddress) { allocations[client]?.permitted.insert(peer.bytes) }
            }
        case 9:
            if let value = message.first(.channelNumber)?.value, let peer = message.address(.xorPeerAddress) {
                allocations[client]?.channels[UInt16(value[0]) << 8 | UInt16(value[1])] = peer
                allocations[client]?.permitted.insert(peer.bytes)
            }
        default: return []
        }
        return [(response.encoded(key: key), local, client)]
    }
}
