import Primitives
import STUN

/// Which pair is used, and for how long: nomination (RFC 8445, section 8) and consent (RFC 7675).
extension ICEAgent {
    /// Follows up on whatever the last input changed.
    mutating func settle(at now: MonotonicTime) {
        guard !hasFailed else { return }
        if !isGathered { finishGatheringIfDone() }
        nominateIfSure(at: now)
        failIfHopeless()
    }

    private func priority(_ index: Int) -> UInt64 {
        pairs[index].priority(isControlling: isControlling)
    }

    private var bestValid: Int? {
        pairs.indices.filter { pairs[$0].state == .succeeded }.max { priority($0) < priority($1) }
    }

    /// No better pair can come any more: there is no need to wait.
    private mutating func nominateIfSure(at now: MonotonicTime) {
        guard isControlling, nominationDeadline != nil, let best = bestValid else { return }
        let isBeaten = pairs.indices.contains {
            pairs[$0].state != .failed && pairs[$0].state != .succeeded && priority($0) > priority(best)
        }
        if !isBeaten { nominate(best, at: now) }
    }

    mutating func nominationTimeout(at now: MonotonicTime) {
        guard let deadline = nominationDeadline, deadline <= now, let best = bestValid else { return }
        nominate(best, at: now)
    }

    private mutating func nominate(_ index: Int, at now: MonotonicTime) {
        nominationDeadline = nil
        check(index, nominates: true, at: now)
    }

    /// A nominated pair works. Peers that nominate several (RFC 5245) mean the best of them.
    mutating func select(_ index: Int, at now: MonotonicTime) {
        if let current = selectedPair ?? bindingPair {
            guard current != index, priority(index) > priority(current) else { return }
        }
        switch pairs[index].base {
        case .socket(let socket):
            let pair = pairs[index]
            use(
                index,
                ICEPath(
                    socket: socket, destination: pair.remote, channel: nil, remote: pair.remote,
                    localKind: pair.localKind, remoteKind: pair.remoteKind),
                at: now)
        case .relay(let relay):
            // Media waits for its channel: one round trip to the relay.
            bindingPair = index
            selectionTime = now
            relays[relay].client.bind(pairs[index].remote, at: now)
            _ = drainRelay(relay, at: now)
        }
    }

    /// The relay has a channel to the peer: media can flow through it.
    mutating func finishBinding(_ channel: UInt16, to peer: STUNAddress, relay: Int) {
        guard let index = bindingPair, pairs[index].base == .relay(relay), pairs[index].remote == peer else { return }
        bindingPair = nil
        use(
            index,
            ICEPath(
                socket: relays[relay].socket, destination: relays[relay].server, channel: channel, remote: peer,
                localKind: .relayed, remoteKind: pairs[index].remoteKind),
            at: selectionTime)
    }

    private mutating func use(_ index: Int, _ path: ICEPath, at now: MonotonicTime) {
        selectedPair = index
        checkDeadline = nil
        self.path = path
        renewConsent(at: now)
        emit(.selected(path))
    }

    // MARK: Consent

    mutating func renewConsent(at now: MonotonicTime) {
        consentUntil = now + configuration.consentLimit
        if nextConsent == nil { nextConsent = now + spread(configuration.consentInterval) }
    }

    private mutating func spread(_ interval: Duration) -> Duration {
        interval * (0.8 + 0.4 * random.unitInterval())
    }

    mutating func consentTimeout(at now: MonotonicTime) {
        guard let selectedPair else { return }
        if let until = consentUntil, until <= now {
            giveUp(.consentLost)
            return
        }
        guard let due = nextConsent, due <= now else { return }
        // Unanswered ones are of no use any more.
        for (id, check) in checks where check.retransmission == nil && now - check.sent > configuration.consentLimit {
            checks[id] = nil
        }
        askForConsent(selectedPair, at: now)
        nextConsent = now + spread(configuration.consentInterval)
    }

    // MARK: The end

    /// All pairs failed, and no further ones can come.
    private mutating func failIfHopeless() {
        guard path == nil, bindingPair == nil, remoteCredentials != nil, isGathered, isRemoteComplete, checks.isEmpty,
            triggered.isEmpty, pairs.allSatisfy({ $0.state == .failed })
        else { return }
        giveUp(.noPath)
    }

    mutating func giveUp(_ failure: ICEFailure) {
        guard !hasFailed else { return }
        hasFailed = true
        path = nil
        selectedPair = nil
        checks = [:]
        probes = [:]
        emit(.failed(failure))
    }
}
