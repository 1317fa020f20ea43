import Primitives
import STUN

/// A local base and an address of the peer, that may or may not reach each other (RFC 8445, section 6.1.2).
struct CheckPair: Sendable {
    enum State: Sendable {
        /// Not checked yet.
        case waiting
        /// A check is on its way.
        case inProgress
        /// It works.
        case succeeded
        /// It does not.
        case failed
    }

    let base: Base
    let remote: STUNAddress
    var remoteKind: ICECandidate.Kind
    let localKind: ICECandidate.Kind
    /// The priority of our candidate, and of the peer's.
    let localPriority: UInt32
    var remotePriority: UInt32
    var state = State.waiting
    /// Whether it is to be used once it works: the controlling side asked for it (RFC 8445, section 7.3.1.5).
    var isNominated = false

    /// The pair's priority (RFC 8445, section 6.1.2.3).
    func priority(isControlling: Bool) -> UInt64 {
        let (ours, theirs) = (UInt64(localPriority), UInt64(remotePriority))
        let (controlling, controlled) = isControlling ? (ours, theirs) : (theirs, ours)
        return min(controlling, controlled) << 32 + 2 * max(controlling, controlled)
            + (controlling > controlled ? 1 : 0)
    }
}

/// A check on its way.
struct Check: Sendable {
    let pair: Int
    /// Nil for one that asks for consent, which is not sent again (RFC 7675, section 5.1).
    var retransmission: Retransmission?
    let nominates: Bool
    let asControlling: Bool
    /// The remote password at that time: it changes with a restart.
    let sent: MonotonicTime
}

extension ICEAgent {
    /// Takes a candidate of the peer into account.
    mutating func add(_ candidate: ICECandidate, at now: MonotonicTime) {
        guard candidate.component == 1, candidate.transport == "udp", let address = candidate.address,
            remotes.count < configuration.maximumRemoteCandidates, configuration.policy.allows(address)
        else { return }
        if let known = remotes.firstIndex(where: { $0.address == address }) {
            // Found by a check before the peer named it: now its true kind is known.
            guard remotes[known].kind == .peerReflexive else { return }
            remotes[known] = candidate
            for index in pairs.indices where pairs[index].remote == address {
                pairs[index].remoteKind = candidate.kind
                pairs[index].remotePriority = candidate.priority
            }
            return
        }
        remotes.append(candidate)
        for socket in sockets { pair(.socket(socket.id), with: candidate, at: now) }
        for index in relays.indices where relays[index].client.relayed != nil {
            pair(.relay(index), with: candidate, at: now)
        }
    }

    /// Adds the pair of a base and a candidate; its place, nil when they do not match.
    @discardableResult
    mutating func pair(_ base: Base, with candidate: ICECandidate, at now: MonotonicTime) -> Int? {
        guard let remote = candidate.address, let local = localAddress(of: base) else { return nil }
        if let known = pairs.firstIndex(where: { $0.base == base && $0.remote == remote }) { return known }
        guard local.isIPv6 == remote.isIPv6, pairs.count < configuration.maximumPairs,
            // What is sent from loopback stays there, and the other way round.
            isLoopback(local) == isLoopback(remote) || base.isRelay
        else { return nil }
        let kind: ICECandidate.Kind
        let preference: UInt16
        switch base {
        case .socket(let id):
            kind = .host
            preference = sockets.first { $0.id == id }.map { self.preference(of: $0) } ?? 0
        case .relay(let index):
            kind = .relayed
            preference = UInt16(clamping: 65_535 - index * 256)
            relays[index].client.permit([remote], at: now)
            _ = drainRelay(index, at: now)
        }
        pairs.append(
            CheckPair(
                base: base, remote: remote, remoteKind: candidate.kind, localKind: kind,
                localPriority: ICECandidate.priority(kind, localPreference: preference),
                remotePriority: candidate.priority))
        if remoteCredentials != nil, nextCheck == nil { nextCheck = now }
        return pairs.count - 1
    }

    func localAddress(of base: Base) -> STUNAddress? {
        switch base {
        case .socket(let id): sockets.first { $0.id == id }?.address
        case .relay(let index): relays.indices.contains(index) ? relays[index].client.relayed : nil
        }
    }

    private func isLoopback(_ address: STUNAddress) -> Bool {
        address.bytes.count == 4
            ? address.bytes[0] == 127 : address.bytes.dropLast().allSatisfy { $0 == 0 } && address.bytes[15] == 1
    }
}

extension Base {
    var isRelay: Bool {
        if case .relay = self { true } else { false }
    }
}
