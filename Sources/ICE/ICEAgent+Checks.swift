import Primitives
import STUN

/// Our checks, and what their answers mean (RFC 8445, section 7.2).
extension ICEAgent {
    /// Whether the pace is worth keeping: there is something to be checked.
    var hasCheckToSend: Bool {
        remoteCredentials != nil && (!triggered.isEmpty || pairs.contains { $0.state == .waiting } && path == nil)
    }

    mutating func checkTimeout(at now: MonotonicTime) {
        for (id, check) in checks {
            guard var retransmission = check.retransmission, retransmission.next <= now else { continue }
            switch retransmission.step(at: now) {
            case .send:
                checks[id]?.retransmission = retransmission
                counters.checksSent += 1
                send(retransmission.bytes, over: pairs[check.pair].base, to: pairs[check.pair].remote)
            case .giveUp:
                checks[id] = nil
                fail(check.pair)
            }
        }
        if let due = nextCheck, due <= now, hasCheckToSend {
            sendNextCheck(at: now)
            nextCheck = now + configuration.pacing
        }
        nominationTimeout(at: now)
        consentTimeout(at: now)
        if path == nil, !hasFailed, let deadline = checkDeadline, deadline <= now { giveUp(.noPath) }
    }

    /// One check: a triggered one first, else the best that was not checked yet.
    private mutating func sendNextCheck(at now: MonotonicTime) {
        if !triggered.isEmpty {
            check(triggered.removeFirst(), nominates: false, at: now)
            return
        }
        let waiting = pairs.indices.filter { pairs[$0].state == .waiting }
        guard
            let best = waiting.max(by: {
                pairs[$0].priority(isControlling: isControlling) < pairs[$1].priority(isControlling: isControlling)
            })
        else { return }
        check(best, nominates: false, at: now)
    }

    /// Sends a check over a pair, to be sent again until it is answered.
    mutating func check(_ index: Int, nominates: Bool, at now: MonotonicTime) {
        guard let message = checkMessage(index, nominates: nominates) else { return }
        // RFC 8445, section 14.3: the more checks there are, the longer each waits.
        let busy = pairs.count { $0.state == .waiting || $0.state == .inProgress }
        let interval = max(.milliseconds(500), configuration.pacing * busy)
        checks[message.transaction] = Check(
            pair: index, retransmission: Retransmission(message.bytes, interval: interval, at: now),
            nominates: nominates, asControlling: isControlling, sent: now)
        if pairs[index].state != .succeeded { pairs[index].state = .inProgress }
        counters.checksSent += 1
        send(message.bytes, over: pairs[index].base, to: pairs[index].remote)
    }

    /// Asks once whether the peer still wants our media.
    mutating func askForConsent(_ index: Int, at now: MonotonicTime) {
        guard let message = checkMessage(index, nominates: false) else { return }
        checks[message.transaction] = Check(
            pair: index, retransmission: nil, nominates: false, asControlling: isControlling, sent: now)
        counters.checksSent += 1
        send(message.bytes, over: pairs[index].base, to: pairs[index].remote)
    }

    private mutating func checkMessage(
        _ index: Int, nominates: Bool
    ) -> (transaction: STUNTransactionID, bytes: [UInt8])? {
        guard let remote = remoteCredentials, pairs.indices.contains(index) else { return nil }
        let transaction = STUNTransactionID(using: &random)
        // What the peer shall call the candidate that this check may find: as ours, but peer-reflexive.
        let preference = UInt16(truncatingIfNeeded: pairs[index].localPriority >> 8)
        var attributes = [
            STUNAttribute(.username, Array("\(remote.fragment):\(localCredentials.fragment)".utf8)),
            .number(.priority, ICECandidate.priority(.peerReflexive, localPreference: preference)),
            .longNumber(isControlling ? .iceControlling : .iceControlled, tieBreaker),
        ]
        if nominates { attributes.append(STUNAttribute(.useCandidate, [])) }
        let message = STUNMessage(.request, transaction: transaction, attributes: attributes)
        return (transaction, message.encoded(key: Array(remote.password.utf8)))
    }

    /// An answer to one of our checks.
    mutating func receiveAnswer(
        _ message: STUNMessage, _ bytes: [UInt8], over base: Base, from source: STUNAddress, at now: MonotonicTime
    ) {
        guard let check = checks[message.transaction], let remote = remoteCredentials,
            STUNMessage.hasIntegrity(bytes, key: Array(remote.password.utf8))
        else {
            counters.rejected += 1
            return
        }
        checks[message.transaction] = nil
        // An answer by another way tells of a NAT that does not let media through (RFC 8445, section 7.2.5.2.1).
        guard pairs[check.pair].base == base, pairs[check.pair].remote == source else {
            fail(check.pair)
            return
        }
        if message.messageClass == .error {
            if message.errorCode == 487 {
                // Both believed to be in control (or neither): the other one's number wins.
                if check.asControlling == isControlling { isControlling.toggle() }
                pairs[check.pair].state = .waiting
                trigger(check.pair, at: now)
            } else {
                fail(check.pair)
            }
            return
        }
        succeed(check, at: now)
    }

    private mutating func succeed(_ check: Check, at now: MonotonicTime) {
        pairs[check.pair].state = .succeeded
        if check.pair == selectedPair { renewConsent(at: now) }
        if isControlling {
            if check.nominates {
                pairs[check.pair].isNominated = true
                select(check.pair, at: now)
            } else if path == nil, nominationDeadline == nil, bindingPair == nil {
                nominationDeadline = now + configuration.nominationDelay
            }
        } else if pairs[check.pair].isNominated {
            select(check.pair, at: now)
        }
    }

    mutating func fail(_ index: Int) {
        guard pairs[index].state != .succeeded else { return }
        pairs[index].state = .failed
    }

    /// Puts a pair in front of the others.
    mutating func trigger(_ index: Int, at now: MonotonicTime) {
        guard !triggered.contains(index) else { return }
        triggered.append(index)
        if nextCheck == nil { nextCheck = now }
    }
}
