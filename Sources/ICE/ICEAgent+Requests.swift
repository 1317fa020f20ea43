import Primitives
import STUN

/// The peer's checks (RFC 8445, section 7.3).
extension ICEAgent {
    /// Attributes of a check that must be understood, and are.
    private static let understood: Set<STUNAttribute.Kind> = [
        .username, .messageIntegrity, .priority, .useCandidate,
    ]

    /// What came from a peer, over a socket or through a relay.
    mutating func receive(
        _ bytes: [UInt8], over base: Base, from source: STUNAddress, at now: MonotonicTime
    ) -> Reception {
        guard STUNMessage.looksLikeSTUN(bytes) else { return .payload(bytes, from: source) }
        guard let message = try? STUNMessage.parse(bytes), message.method == STUNMessage.bindingMethod else {
            counters.rejected += 1
            return .consumed
        }
        switch message.messageClass {
        case .request: receiveCheck(message, bytes, over: base, from: source, at: now)
        case .success, .error:
            if !receiveProbe(message, over: base, from: source) {
                receiveAnswer(message.protected, bytes, over: base, from: source, at: now)
            }
        case .indication: break
        }
        return .consumed
    }

    private mutating func receiveCheck(
        _ received: STUNMessage, _ bytes: [UInt8], over base: Base, from source: STUNAddress, at now: MonotonicTime
    ) {
        let key = Array(localCredentials.password.utf8)
        // Silence, not an error: whoever does not know the password learns nothing, and nothing is amplified.
        guard !hasFailed, isForUs(received), STUNMessage.hasIntegrity(bytes, key: key) else {
            counters.rejected += 1
            return
        }
        let message = received.protected
        let unknown = message.attributes.map(\.kind).filter {
            $0.mustBeUnderstood && !Self.understood.contains($0)
        }
        guard unknown.isEmpty else {
            let list = unknown.prefix(8).flatMap { [UInt8($0.rawValue >> 8), UInt8($0.rawValue & 0xFF)] }
            answer(message, .error, [.errorCode(420, ""), STUNAttribute(.unknownAttributes, list)], base, source)
            return
        }
        guard settleRoles(message, over: base, from: source) else { return }
        counters.checksAnswered += 1
        answer(
            message, .success, [.xorMappedAddress(source, transaction: message.transaction)], base, source)
        learn(from: message, over: base, from: source, at: now)
    }

    /// `OURS:THEIRS`; theirs may be unknown yet.
    private func isForUs(_ message: STUNMessage) -> Bool {
        guard let name = message.first(.username)?.value, name.count <= 513,
            let colon = name.firstIndex(of: UInt8(ascii: ":"))
        else { return false }
        guard Array(name[..<colon]) == Array(localCredentials.fragment.utf8) else { return false }
        guard let remote = remoteCredentials else { return true }
        return Array(name[(colon + 1)...]) == Array(remote.fragment.utf8)
    }

    /// Solves the conflict of two sides in the same role (RFC 8445, section 7.3.1.1); false when the peer was told to
    /// change its own.
    private mutating func settleRoles(_ message: STUNMessage, over base: Base, from source: STUNAddress) -> Bool {
        let rival = message.first(isControlling ? .iceControlling : .iceControlled)?.longNumber
        // Before the peer's description came our role is open.
        guard let rival, remoteCredentials != nil else { return true }
        let weWin = tieBreaker >= rival
        if weWin == isControlling {
            answer(message, .error, [.errorCode(487, "Role Conflict")], base, source)
            return false
        }
        isControlling.toggle()
        return true
    }

    private mutating func answer(
        _ request: STUNMessage, _ messageClass: STUNMessage.Class, _ attributes: [STUNAttribute], _ base: Base,
        _ source: STUNAddress
    ) {
        let response = STUNMessage(messageClass, transaction: request.transaction, attributes: attributes)
        send(response.encoded(key: Array(localCredentials.password.utf8)), over: base, to: source)
    }

    /// A check that authenticates tells an address of the peer, and that it works in that direction.
    private mutating func learn(
        from message: STUNMessage, over base: Base, from source: STUNAddress, at now: MonotonicTime
    ) {
        let priority = message.first(.priority)?.number ?? 0
        let known = remotes.first { $0.address == source }
        let candidate =
            known
            ?? ICECandidate(
                kind: .peerReflexive, address: source, foundation: "p\(remotes.count)",
                priority: min(max(priority, 1), 0x7FFF_FFFF))
        if known == nil {
            guard remotes.count < configuration.maximumRemoteCandidates else { return }
            remotes.append(candidate)
        }
        guard let index = pair(base, with: candidate, at: now) else { return }
        if !isControlling, message.first(.useCandidate) != nil {
            pairs[index].isNominated = true
            if pairs[index].state == .succeeded {
                select(index, at: now)
                return
            }
        }
        // It works from there to here: most likely in the other direction, too, so it is checked first.
        if pairs[index].state != .succeeded, remoteCredentials != nil {
            if pairs[index].state == .failed { pairs[index].state = .waiting }
            trigger(index, at: now)
        }
    }
}
