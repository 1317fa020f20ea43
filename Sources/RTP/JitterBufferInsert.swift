import Primitives

extension JitterBuffer {
    /// How far back a packet may be in the sequence and still be taken as reordered.
    static let maximumMisorder: Int64 = 100
    /// How far a packet may be ahead of the one that made a new stream likely.
    static let maximumSuspectStep: UInt16 = 16
    /// So many packets in a row later than the ceiling are a change of the network, no jitter.
    static let delayChangePackets = 8

    /// Takes a packet of the stream.
    ///
    /// - Parameters:
    ///   - header: The packet's header.
    ///   - payload: Its payload, `header.payloadLength` bytes at `header.payloadOffset`.
    ///   - now: When it arrived.
    public mutating func insert(_ header: RTPHeader, payload: Span<UInt8>, at now: MonotonicTime) {
        counters.received &+= 1
        guard payload.count <= configuration.maxPayloadBytes else {
            counters.discarded &+= 1
            return
        }
        guard let sequence = admit(header, isAudio: true, at: now), let index = place(sequence) else { return }
        let timestamp = extendedTimestamp(header.timestamp)
        slots[index] = Slot(
            isUsed: true, marker: header.marker, payloadType: header.payloadType, length: payload.count,
            sequence: sequence, timestamp: timestamp, arrival: now.nanoseconds)
        if !isPlaying, sequence == nextSequence { nextTimestamp = timestamp }
        let start = index * configuration.maxPayloadBytes
        var bytes = storage.mutableSpan
        for offset in 0..<payload.count { bytes[start + offset] = payload[offset] }
    }

    /// Notes a packet of the same source that holds no audio, such as a telephone event, so that its place in the
    /// sequence is not taken for a loss.
    public mutating func insertPlaceholder(_ header: RTPHeader, at now: MonotonicTime) {
        guard ssrc != nil, let sequence = admit(header, isAudio: false, at: now), let index = place(sequence) else {
            return
        }
        slots[index] = Slot(
            isUsed: true, isPlaceholder: true, sequence: sequence, timestamp: 0, arrival: now.nanoseconds)
    }

    /// The packet's extended sequence number when it belongs to the current stream or begins a new one.
    private mutating func admit(_ header: RTPHeader, isAudio: Bool, at now: MonotonicTime) -> Int64? {
        if ssrc == nil { begin(header, at: now) }
        if belongs(header, isAudio: isAudio, at: now) {
            suspect = nil
        } else {
            guard isAudio, follows(header) else {
                if isAudio {
                    suspect = Suspect(
                        ssrc: header.ssrc, sequenceNumber: header.sequenceNumber, timestamp: header.timestamp)
                    counters.discarded &+= 1
                }
                return nil
            }
            for slot in slots where slot.isUsed && !slot.isPlaceholder { counters.discarded &+= 1 }
            counters.resets &+= 1
            forgetStream()
            begin(header, at: now)
        }
        let sequence = extendedSequence(header.sequenceNumber)
        guard !isDuplicate(sequence) else {
            counters.duplicated &+= 1
            return nil
        }
        if isAudio { note(header, sequence: sequence, at: now) }
        return sequence
    }

    private mutating func begin(_ header: RTPHeader, at now: MonotonicTime) {
        ssrc = header.ssrc
        suspect = nil
        highestSequence = Int64(header.sequenceNumber)
        nextSequence = highestSequence
        nextTimestamp = Int64(header.timestamp)
        referenceSequence = highestSequence
        referenceTimestamp = nextTimestamp
        referenceArrival = now.nanoseconds
    }

    /// Whether a packet continues the current stream.
    ///
    /// Its timestamp may differ from what the sequence says (silence suppression) as long as the clock explains it, and
    /// from what the clock says (a stall of the network) as long as the sequence explains it. What neither explains by
    /// a second is a new time base. Neither belongs what comes more than a second late.
    private func belongs(_ header: RTPHeader, isAudio: Bool, at now: MonotonicTime) -> Bool {
        guard header.ssrc == ssrc else { return false }
        let ahead = extendedSequence(header.sequenceNumber) &- highestSequence
        guard ahead <= mask, ahead >= -Self.maximumMisorder else { return false }
        guard isAudio else { return true }
        // A sender that starts again a few packets back would look late for as long as that takes.
        let delay = now.nanoseconds &- nanoseconds(extendedTimestamp(header.timestamp))
        if ahead < 0, isPlaying, delay &- estimator.base > 1_000_000_000 { return false }
        let step = extendedTimestamp(header.timestamp) &- referenceTimestamp
        let packets = extendedSequence(header.sequenceNumber) &- referenceSequence
        let second = Int64(configuration.clockRate)
        if (step &- packets &* frameSamples).magnitude <= second.magnitude { return true }
        let elapsed = RTPClock.samples(now.nanoseconds &- referenceArrival, clockRate: configuration.clockRate)
        return (step &- elapsed).magnitude <= second.magnitude
    }

    /// Whether a packet follows the last one that did not belong.
    private func follows(_ header: RTPHeader) -> Bool {
        guard let suspect, suspect.ssrc == header.ssrc else { return false }
        let step = header.sequenceNumber &- suspect.sequenceNumber
        let time = Int64(Int32(bitPattern: header.timestamp &- suspect.timestamp))
        return step >= 1 && step <= Self.maximumSuspectStep
            && time.magnitude <= Int64(configuration.clockRate).magnitude
    }

    private func isDuplicate(_ sequence: Int64) -> Bool {
        guard isPlaying, sequence < nextSequence else { return holds(sequence) }
        let back = nextSequence &- 1 &- sequence
        return back < 64 && history >> UInt64(back) & 1 == 1
    }

    /// Learns from an audio packet of the stream, in time or late: the delay, the frame, the latest position.
    private mutating func note(_ header: RTPHeader, sequence: Int64, at now: MonotonicTime) {
        let timestamp = extendedTimestamp(header.timestamp)
        let delay = now.nanoseconds &- nanoseconds(timestamp)
        let isBeyond = estimator.count > 0 && delay &- estimator.base > ceiling
        beyondCeiling = isBeyond ? beyondCeiling + 1 : 0
        estimator.add(delay, arrival: now.nanoseconds)
        if beyondCeiling >= Self.delayChangePackets {
            estimator.keepLatest(Self.delayChangePackets)
            beyondCeiling = 0
        }
        guard sequence > referenceSequence else { return }
        if sequence == referenceSequence &+ 1 {
            let step = timestamp &- referenceTimestamp
            // 120 ms is the longest Opus packet; two alike make a change, one may be a pause.
            if step > 0, step <= Int64(configuration.clockRate) * 12 / 100 {
                if step == candidateFrame { frameSamples = step }
                candidateFrame = step
            }
        }
        referenceSequence = sequence
        referenceTimestamp = timestamp
        referenceArrival = now.nanoseconds
    }

    /// The free slot for a packet; nil when its time is over.
    private mutating func place(_ sequence: Int64) -> Int? {
        if sequence < nextSequence {
            // Before playout began, an earlier packet may still take the lead.
            guard !isPlaying, highestSequence &- sequence <= mask else {
                counters.late &+= 1
                return nil
            }
            nextSequence = sequence
        }
        // The owner does not pull, or a stall ends in a burst: the oldest make room.
        while sequence &- nextSequence > mask {
            if !holds(nextSequence) {
                counters.lost &+= 1
            } else if !slots[slotIndex(nextSequence)].isPlaceholder {
                counters.discarded &+= 1
            }
            advance()
        }
        highestSequence = max(highestSequence, sequence)
        return slotIndex(sequence)
    }

    private func extendedSequence(_ number: UInt16) -> Int64 {
        highestSequence
            &+ Int64(Int16(bitPattern: number &- UInt16(truncatingIfNeeded: highestSequence)))
    }

    private func extendedTimestamp(_ timestamp: UInt32) -> Int64 {
        referenceTimestamp
            &+ Int64(Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: referenceTimestamp)))
    }
}
