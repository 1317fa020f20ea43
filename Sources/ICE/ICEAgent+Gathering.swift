import Primitives
import STUN

/// What our side sends from.
enum Base: Hashable, Sendable {
    /// A socket of ours.
    case socket(Int)
    /// An address at a relay, by its place in the list.
    case relay(Int)
}

/// A TURN server in use.
struct Relay: Sendable {
    let server: STUNAddress
    let socket: Int
    var client: TURNClient
    var isOver = false
}

/// A question to a STUN server: how do you see me?
struct Probe: Sendable {
    let socket: ICESocket
    let server: STUNAddress
    var retransmission: Retransmission
}

extension ICEAgent {
    /// Finds our candidates: the sockets' own addresses at once, those that servers tell as they come. Ends, with what
    /// there is, after the gathering limit: a dead server delays no call.
    public mutating func gather(sockets: [ICESocket], servers: [ICEServerAddress], at now: MonotonicTime) {
        guard self.sockets.isEmpty else { return }
        self.sockets = sockets
        for (index, socket) in sockets.enumerated() {
            // IPv6 and IPv4 take turns as the owner lists them (RFC 8421): earlier is better.
            let preference = UInt16(clamping: 65_535 - index * 256)
            addLocal(.host, socket.address, preference: preference, related: nil)
            for server in servers where server.address.isIPv6 == socket.address.isIPv6 && server.relay == nil {
                probe(server.address, from: socket, at: now)
            }
        }
        for server in servers {
            guard let credentials = server.relay,
                let socket = server.stream ?? sockets.first(where: { $0.address.isIPv6 == server.address.isIPv6 })?.id
            else { continue }
            var client = TURNClient(credentials: credentials, random: RandomSource(continuing: &random))
            client.start(at: now)
            relays.append(Relay(server: server.address, socket: socket, client: client))
            _ = drainRelay(relays.count - 1, at: now)
        }
        gatheringDeadline = now + configuration.gatheringLimit
        settle(at: now)
    }

    private mutating func probe(_ server: STUNAddress, from socket: ICESocket, at now: MonotonicTime) {
        let transaction = STUNTransactionID(using: &random)
        let bytes = STUNMessage(.request, transaction: transaction).encoded()
        probes[transaction] = Probe(
            socket: socket, server: server,
            retransmission: Retransmission(bytes, interval: .milliseconds(250), tries: 3, last: .seconds(1), at: now))
        emit(.send(bytes, socket: socket.id, to: server))
    }

    /// Takes an answer of a STUN server; false when it is none.
    mutating func receiveProbe(_ message: STUNMessage, over base: Base, from source: STUNAddress) -> Bool {
        guard let probe = probes[message.transaction] else { return false }
        guard base == .socket(probe.socket.id), source == probe.server else {
            counters.rejected += 1
            return true
        }
        probes[message.transaction] = nil
        if message.messageClass == .success, let mapped = message.mappedAddress {
            addLocal(.serverReflexive, mapped, preference: preference(of: probe.socket), related: probe.socket.address)
        }
        return true
    }

    func preference(of socket: ICESocket) -> UInt16 {
        UInt16(clamping: 65_535 - (sockets.firstIndex(of: socket) ?? 0) * 256)
    }

    mutating func gatheringTimeout(at now: MonotonicTime) {
        for (id, probe) in probes where probe.retransmission.next <= now {
            var probe = probe
            switch probe.retransmission.step(at: now) {
            case .send:
                probes[id] = probe
                emit(.send(probe.retransmission.bytes, socket: probe.socket.id, to: probe.server))
            case .giveUp: probes[id] = nil
            }
        }
        for index in relays.indices where relays[index].client.nextTimeout ?? .distantFuture <= now {
            relays[index].client.timeout(at: now)
            _ = drainRelay(index, at: now)
        }
        if let deadline = gatheringDeadline, deadline <= now { finishGathering() }
    }

    /// Takes what a relay has to say; the payload, if it brought any.
    mutating func drainRelay(_ index: Int, at now: MonotonicTime) -> Reception {
        var reception = Reception.consumed
        for event in relays[index].client.takeEvents() {
            switch event {
            case .send(let bytes): emit(.send(bytes, socket: relays[index].socket, to: relays[index].server))
            case .allocated(let relayed, let mapped):
                let socket = sockets.first { $0.id == relays[index].socket }
                if let mapped, let socket {
                    addLocal(.serverReflexive, mapped, preference: preference(of: socket), related: socket.address)
                }
                addLocal(.relayed, relayed, preference: UInt16(clamping: 65_535 - index * 256), related: mapped)
                for remote in remotes { pair(.relay(index), with: remote, at: now) }
            case .failed:
                relays[index].isOver = true
                for pair in pairs.indices where pairs[pair].base == .relay(index) { pairs[pair].state = .failed }
            case .received(let bytes, let peer):
                reception = receive(bytes, over: .relay(index), from: peer, at: now)
            case .bound(let channel, let peer): finishBinding(channel, to: peer, relay: index)
            }
        }
        return reception
    }

    /// Adds a candidate unless one of the same address and kind of base is there (RFC 8445, section 5.1.3).
    private mutating func addLocal(
        _ kind: ICECandidate.Kind, _ address: STUNAddress, preference: UInt16, related: STUNAddress?
    ) {
        guard !locals.contains(where: { $0.address == address && ($0.kind != .relayed || kind == .relayed) }) else {
            return
        }
        let foundation = "\(kind.rawValue.first ?? "x")\(65_535 - preference)"
        let candidate = ICECandidate(
            kind: kind, address: address, foundation: foundation,
            priority: ICECandidate.priority(kind, localPreference: preference), related: related)
        locals.append(candidate)
        // What comes after the end was announced is of no use to anybody.
        if !isGathered { emit(.candidate(candidate)) }
    }

    mutating func finishGatheringIfDone() {
        guard gatheringDeadline != nil, probes.isEmpty,
            relays.allSatisfy({ $0.client.relayed != nil || $0.isOver })
        else { return }
        finishGathering()
    }

    private mutating func finishGathering() {
        gatheringDeadline = nil
        guard !isGathered else { return }
        isGathered = true
        emit(.gathered)
    }
}
