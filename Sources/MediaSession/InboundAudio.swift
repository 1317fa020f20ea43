import Audio
import Primitives
import RTP
import SDP

/// The receiving half of a stream: packets, jitter buffer, decoder, sink. Belongs to the media thread; allocates only
/// when it is made, and when the peer changes to a codec with another clock.
final class InboundAudio {
    private struct Decoder {
        let payloadType: UInt8
        let codec: AudioCodec
        let clockRate: Int
        let frames: any FrameDecoder
    }

    private let sink: any AudioSink
    private var decoders: [Decoder] = []
    /// Payload types that were agreed on and hold no audio: telephone events.
    private var eventTypes: [UInt8] = []
    private var keys: KeyReceiver
    /// The decoder of what was played last.
    private var current = 0
    private var jitterBuffer: JitterBuffer
    private(set) var reception: RTPReceiverStatistics
    /// Packets in a row whose codec has another clock than the buffer.
    private var otherClock = 0
    private let blockSamples: Int
    private var clock: FrameClock

    /// Decoded sound that was not played yet: `samples[start..<end]`.
    private let samples: UnsafeMutableBufferPointer<Int16>
    private var start = 0
    private var end = 0
    private let block: UnsafeMutableBufferPointer<Int16>
    private let payload: UnsafeMutableBufferPointer<UInt8>

    private(set) var level = 0.0
    private(set) var totalSamples: UInt64 = 0
    private(set) var concealedSamples: UInt64 = 0
    private(set) var fecFrames: UInt64 = 0
    private(set) var bytesReceived: UInt64 = 0
    private(set) var accepted: UInt64 = 0

    init(audio: NegotiatedAudio, sink: any AudioSink, blockSamples: Int) throws(AudioError) {
        self.sink = sink
        self.blockSamples = blockSamples
        jitterBuffer = JitterBuffer(configuration: JitterBuffer.Configuration(clockRate: audio.codec.clockRate))
        reception = RTPReceiverStatistics(clockRate: audio.codec.clockRate)
        keys = KeyReceiver(clockRate: audio.codec.clockRate)
        clock = FrameClock(frameSamples: blockSamples)
        // The longest packet is 120 ms; G.711's largest payload is longer.
        samples = .allocate(capacity: 2 * OpusDecoder.maximumFrameSamples)
        samples.initialize(repeating: 0)
        block = .allocate(capacity: blockSamples)
        block.initialize(repeating: 0)
        payload = .allocate(capacity: jitterBuffer.configuration.maxPayloadBytes)
        payload.initialize(repeating: 0)
        try setDecoders(for: audio)
    }

    deinit {
        samples.deallocate()
        block.deallocate()
        payload.deallocate()
    }

    /// Makes the decoders that an agreement needs; those that stay are kept with what they know of the past.
    func setDecoders(for audio: NegotiatedAudio) throws(AudioError) {
        var made: [Decoder] = []
        var events: [UInt8] = []
        for (type, codec) in audio.receivePayloadTypes.sorted(by: { $0.key < $1.key }) {
            if codec.isTelephoneEvent {
                events.append(type)
            } else if let known = decoders.first(where: { $0.payloadType == type && $0.codec.isSameFormat(as: codec) })
            {
                made.append(known)
            } else {
                made.append(
                    Decoder(
                        payloadType: type, codec: codec, clockRate: codec.clockRate,
                        frames: try Codecs.decoder(for: codec)))
            }
        }
        decoders = made
        eventTypes = events
        current = made.firstIndex { $0.codec.isSameFormat(as: audio.codec) } ?? 0
    }

    /// When the next block is due, for a sink that follows the timer; nil for hardware.
    var nextBlock: MonotonicTime? { sink.writableFrames == nil ? clock.next : nil }

    /// Whether a payload type was agreed on.
    func expects(payloadType: UInt8) -> Bool {
        index(of: payloadType) != nil || eventTypes.contains(payloadType)
    }

    private func index(of payloadType: UInt8) -> Int? {
        for index in 0..<decoders.count where decoders[index].payloadType == payloadType { return index }
        return nil
    }

    /// Takes an RTP packet from our peer.
    ///
    /// - Parameter isHeard: false while the direction says that nothing is received: counted, but not played.
    /// - Returns: the key that the peer has just pressed, if the packet is the first to tell of it.
    func receive(
        _ header: RTPHeader, payload: UnsafeBufferPointer<UInt8>, isHeard: Bool, at now: MonotonicTime
    ) -> Character? {
        accepted &+= 1
        bytesReceived &+= UInt64(payload.count)
        guard let index = index(of: header.payloadType) else {
            // A telephone event, or a payload type that was never agreed on: it takes a place in the sequence.
            reception.receive(header, at: now)
            guard isHeard else { return nil }
            jitterBuffer.insertPlaceholder(header, at: now)
            return eventTypes.contains(header.payloadType)
                ? keys.receive(header, payload: payload.span, at: now) : nil
        }
        if decoders[index].clockRate != reception.clockRate { followClock(of: decoders[index]) }
        reception.receive(header, at: now)
        guard isHeard else { return nil }
        if decoders[index].clockRate == jitterBuffer.configuration.clockRate {
            otherClock = 0
            jitterBuffer.insert(header, payload: payload.span, at: now)
        } else {
            jitterBuffer.insertPlaceholder(header, at: now)
        }
        return nil
    }

    /// The peer changed to a codec with another clock: its timestamps mean something else from here on. Two packets
    /// are asked for, as with a new source, so that a single odd one changes nothing.
    private func followClock(of decoder: Decoder) {
        otherClock += 1
        guard otherClock > 1 else { return }
        otherClock = 0
        jitterBuffer = JitterBuffer(configuration: JitterBuffer.Configuration(clockRate: decoder.clockRate))
        reception = RTPReceiverStatistics(clockRate: decoder.clockRate)
        keys = KeyReceiver(clockRate: decoder.clockRate)
    }

    /// Leaves out the blocks of a stall.
    func skip(_ duration: Duration) {
        guard sink.writableFrames == nil else { return }
        clock.skip(duration)
    }

    /// Plays every block that the sink wants.
    ///
    /// - Parameter receiver: gets each block as it was played.
    func process(at now: MonotonicTime, receiver: MediaStream) {
        if sink.writableFrames == nil {
            for _ in 0..<clock.framesDue(at: now) { play(at: now, receiver: receiver) }
        } else {
            while let writable = sink.writableFrames, writable >= blockSamples { play(at: now, receiver: receiver) }
        }
    }

    private func play(at now: MonotonicTime, receiver: MediaStream) {
        guard let target = block.baseAddress, let decoded = samples.baseAddress else { return }
        var filled = 0
        while filled < block.count {
            if start == end { decodeNext(at: now) }
            let count = min(end - start, block.count - filled)
            (target + filled).update(from: decoded + start, count: count)
            start += count
            filled += count
        }
        totalSamples &+= UInt64(block.count)
        let played = UnsafeBufferPointer(block)
        level = Level.rootMeanSquare(played)
        jitterBuffer.isQuiet = level < 0.003
        sink.write(played)
        receiver.didPlay(played)
    }

    /// Puts what comes next into `samples`: a decoded packet, a concealed frame, or 10 ms of silence.
    private func decodeNext(at now: MonotonicTime) {
        start = 0
        end = 0
        guard !decoders.isEmpty else {
            silence()
            return
        }
        var room = payload.mutableSpan
        switch jitterBuffer.pull(at: now, into: &room) {
        case .packet(let length, let header, _):
            if let index = index(of: header.payloadType) { current = index }
            end = decoders[current].frames.decode(UnsafeBufferPointer(rebasing: payload[0..<length]), into: samples)
            if end <= 0 { conceal() }
        case .lost(let fecLength):
            if let fecLength, fecLength > 0 {
                end = concealedFrame
                let frame = UnsafeMutableBufferPointer(rebasing: samples[0..<end])
                end = decoders[current].frames.decodeFEC(
                    UnsafeBufferPointer(rebasing: payload[0..<fecLength]), into: frame)
                fecFrames &+= 1
                concealedSamples &+= UInt64(clamping: end)
                if end <= 0 { conceal() }
            } else {
                conceal()
            }
        case .waiting:
            silence()
        }
    }

    private func conceal() {
        end = concealedFrame
        decoders[current].frames.conceal(into: UnsafeMutableBufferPointer(rebasing: samples[0..<end]))
        concealedSamples &+= UInt64(end)
    }

    /// One frame of the stream as samples at 48 kHz.
    private var concealedFrame: Int {
        let rate = Int64(max(1, jitterBuffer.configuration.clockRate))
        let frame = jitterBuffer.frameSamples &* Int64(AudioFormat.sampleRate) / rate
        return Int(min(max(frame, 120), Int64(OpusDecoder.maximumFrameSamples)))
    }

    private func silence() {
        end = AudioFormat.blockFrames
        samples.baseAddress?.update(repeating: 0, count: end)
    }

    /// What the jitter buffer did and does.
    var jitterStatistics: JitterBufferStatistics { jitterBuffer.statistics }

    func noteSenderReport(_ report: RTCPSenderReport, at now: MonotonicTime) {
        reception.receive(report, at: now)
    }

    func reportBlock(at now: MonotonicTime) -> RTCPReportBlock? {
        reception.reportBlock(at: now)
    }

    func service(at now: MonotonicTime) {
        sink.service(at: now)
    }

    func takeFailure() -> AudioError? { sink.takeFailure() }

    var xruns: UInt64 { sink.counters.xruns }

    func stop() {
        sink.stop()
    }
}
