import Primitives

extension JitterBuffer {
    /// Frames concealed while nothing arrives, before the stream counts as stopped.
    static let concealedWhileEmpty = 3
    /// Pauses between two frames left out or added where they may be heard, in nanoseconds.
    static let calmPause: Int64 = 200_000_000
    static let urgentPause: Int64 = 60_000_000

    /// What to play next; call it when all that was pulled before is played.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - destination: Room for `configuration.maxPayloadBytes`; a packet that does not fit is lost.
    public mutating func pull(at now: MonotonicTime, into destination: inout MutableSpan<UInt8>) -> Output {
        guard ssrc != nil else { return .waiting }
        skipPlaceholders()
        guard let head = head() else { return pullFromEmpty() }
        let offset = now.nanoseconds &- nanoseconds(slots[slotIndex(head)].timestamp)
        let delay = offset &- estimator.base
        let tolerance = frameNanoseconds / 4
        if !isPlaying {
            guard delay >= target &- tolerance else { return .waiting }
            isPlaying = true
            nextSequence = head
            playoutOffset = offset
            shrink(now)
            return play(now, into: &destination)
        }
        if head > nextSequence {
            // Packets are missing: they are concealed until a later one is due.
            let isDue = delay >= (emptyPulls > 0 ? target &- tolerance : target &+ frameNanoseconds / 2)
            guard isDue else { return conceal(before: head, now, into: &destination) }
            while nextSequence < head {
                if !holds(nextSequence) { counters.lost &+= 1 }
                advance()
            }
        } else if slots[slotIndex(head)].timestamp &- nextTimestamp >= frameSamples / 2 {
            // A pause of the sender: the next packet waits for its time.
            guard delay >= target &- tolerance else { return .waiting }
            emptyPulls = max(emptyPulls, 1)
        }
        if emptyPulls > 0 {
            playoutOffset = offset
        } else {
            playoutOffset &+= (offset &- playoutOffset) / 8
        }
        emptyPulls = 0
        concealedAhead = 0
        if expand(now) { return .lost(fecLength: nil) }
        shrink(now)
        return play(now, into: &destination)
    }

    /// What to play next, written to the front of an array that has room for `configuration.maxPayloadBytes`.
    public mutating func pull(at now: MonotonicTime, into destination: inout [UInt8]) -> Output {
        var span = destination.mutableSpan
        return pull(at: now, into: &span)
    }

    // MARK: Cases

    private mutating func skipPlaceholders() {
        while nextSequence <= highestSequence, holds(nextSequence), slots[slotIndex(nextSequence)].isPlaceholder {
            advance()
        }
    }

    /// The first audio packet at or after the next place.
    private func head() -> Int64? {
        var sequence = nextSequence
        while sequence <= highestSequence {
            if holds(sequence), !slots[slotIndex(sequence)].isPlaceholder { return sequence }
            sequence &+= 1
        }
        return nil
    }

    private mutating func pullFromEmpty() -> Output {
        guard isPlaying else { return .waiting }
        emptyPulls += 1
        if emptyPulls == 1 { counters.underruns &+= 1 }
        guard emptyPulls <= Self.concealedWhileEmpty else {
            emptyPulls = Self.concealedWhileEmpty + 1
            return .waiting
        }
        concealedAhead = emptyPulls
        counters.concealed &+= 1
        return .lost(fecLength: nil)
    }

    /// The next packet is not there and a later one is, which is not yet due.
    private mutating func conceal(
        before head: Int64, _ now: MonotonicTime, into destination: inout MutableSpan<UInt8>
    ) -> Output {
        // Rather than giving the packet up, wait for it where the delay has to grow anyway.
        if emptyPulls == 0, expand(now) { return .lost(fecLength: nil) }
        // What was concealed while the buffer was empty is done; the last one may have its error correction here.
        while concealedAhead > 0, nextSequence &+ 1 < head {
            concealedAhead -= 1
            if !holds(nextSequence) { counters.lost &+= 1 }
            advance()
        }
        concealedAhead = 0
        counters.concealed &+= 1
        skipPlaceholders()
        guard nextSequence < head else { return .lost(fecLength: nil) }
        counters.lost &+= 1
        advance()
        guard head == nextSequence else { return .lost(fecLength: nil) }
        return .lost(fecLength: copy(slotIndex(head), into: &destination))
    }

    private mutating func play(_ now: MonotonicTime, into destination: inout MutableSpan<UInt8>) -> Output {
        let slot = slots[slotIndex(nextSequence)]
        guard let length = copy(slotIndex(nextSequence), into: &destination) else {
            counters.lost &+= 1
            counters.concealed &+= 1
            advance()
            return .lost(fecLength: nil)
        }
        counters.played &+= 1
        counters.totalDelayNanoseconds &+= UInt64(clamping: now.nanoseconds &- slot.arrival)
        var samples = frameSamples
        let following = slots[slotIndex(nextSequence &+ 1)]
        if holds(nextSequence &+ 1), !following.isPlaceholder {
            let step = following.timestamp &- slot.timestamp
            if step > 0, step <= Int64(configuration.clockRate) * 12 / 100 { samples = step }
        }
        advance()
        nextTimestamp = slot.timestamp &+ samples
        let header = RTPHeader(
            marker: slot.marker, payloadType: slot.payloadType,
            sequenceNumber: UInt16(truncatingIfNeeded: slot.sequence),
            timestamp: UInt32(truncatingIfNeeded: slot.timestamp), ssrc: ssrc ?? 0, payloadLength: length)
        return .packet(length: length, header: header, samples: Int(samples))
    }

    private func copy(_ index: Int, into destination: inout MutableSpan<UInt8>) -> Int? {
        let length = slots[index].length
        guard length <= destination.count else { return nil }
        let start = index * configuration.maxPayloadBytes
        let bytes = storage.span
        for offset in 0..<length { destination[offset] = bytes[start + offset] }
        return length
    }

    // MARK: Adaptation

    /// Raises the delay by one concealed frame where it is below the target.
    private mutating func expand(_ now: MonotonicTime) -> Bool {
        let deficit = target &- (playoutOffset &- estimator.base)
        guard deficit > frameNanoseconds / 4 else { return false }
        // Packets are about to come too late: the pause is short, and shorter when much is missing.
        guard mayAdjust(now, pause: deficit > 2 * frameNanoseconds ? 40_000_000 : 100_000_000) else { return false }
        playoutOffset &+= frameNanoseconds
        counters.expanded &+= 1
        counters.concealed &+= 1
        return true
    }

    /// Lowers the delay where it is more than a frame above the target, as long as a packet remains to be played.
    private mutating func shrink(_ now: MonotonicTime) {
        while now.nanoseconds &- nanoseconds(slots[slotIndex(nextSequence)].timestamp) &- estimator.base
            > ceiling &+ frameNanoseconds, dropOne(overGaps: true)
        {
            playoutOffset = min(
                playoutOffset, now.nanoseconds &- nanoseconds(slots[slotIndex(nextSequence)].timestamp))
            lastAdjustment = now.nanoseconds
        }
        let excess = playoutOffset &- estimator.base &- target
        guard excess > frameNanoseconds &+ frameNanoseconds / 8 else { return }
        let pause = excess > 3 * frameNanoseconds ? Self.urgentPause : Self.calmPause
        let before = nextTimestampAtHead
        guard mayAdjust(now, pause: pause, isDry: true), dropOne() else { return }
        lastAdjustment = now.nanoseconds
        playoutOffset &-= nanoseconds(nextTimestampAtHead &- before)
    }

    private var nextTimestampAtHead: Int64 { slots[slotIndex(nextSequence)].timestamp }

    /// Throws the next packet away when the one after it is there, or with `overGaps` any later one.
    private mutating func dropOne(overGaps: Bool = false) -> Bool {
        var following = nextSequence &+ 1
        while following <= highestSequence {
            if holds(following), !slots[slotIndex(following)].isPlaceholder { break }
            guard overGaps else { return false }
            following &+= 1
        }
        guard following <= highestSequence else { return false }
        advance()
        counters.discarded &+= 1
        while nextSequence < following {
            if !holds(nextSequence) { counters.lost &+= 1 }
            advance()
        }
        return true
    }

    /// Whether enough time has passed since the last frame left out or added; notes this one unless `isDry`.
    private mutating func mayAdjust(_ now: MonotonicTime, pause: Int64, isDry: Bool = false) -> Bool {
        if !isQuiet, let lastAdjustment, now.nanoseconds &- lastAdjustment < pause { return false }
        if !isDry { lastAdjustment = now.nanoseconds }
        return true
    }
}
