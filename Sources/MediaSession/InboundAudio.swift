import Audio
import Primitives
import RTP
import SDP

/// The receiving half of a stream: packets, jitter buffer, decoder, sink. Belongs to the media thread.
final class InboundAudio {
    private let sink: any AudioSink
    private let decoders: [(payloadType: UInt8, codec: AudioCodec, decoder: any FrameDecoder)]
    private var current: Int
    private var jitterBuffer: JitterBuffer
    private(set) var reception: RTPReceiverStatistics
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
    private(set) var unknownPayloads: UInt64 = 0

    init(audio: NegotiatedAudio, sink: any AudioSink, blockSamples: Int) throws(AudioError) {
        self.sink = sink
        self.blockSamples = blockSamples
        var made: [(payloadType: UInt8, codec: AudioCodec, decoder: any FrameDecoder)] = []
        for (type, codec) in audio.receivePayloadTypes.sorted(by: { $0.key < $1.key }) {
            guard !codec.isTelephoneEvent else { continue }
            made.append((type, codec, try Codecs.decoder(for: codec)))
        }
        decoders = made
        current = made.firstIndex { $0.codec.isSameFormat(as: audio.codec) } ?? 0
        let rate = audio.codec.clockRate
        jitterBuffer = JitterBuffer(configuration: JitterBuffer.Configuration(clockRate: rate))
        reception = RTPReceiverStatistics(clockRate: rate)
        clock = FrameClock(frameSamples: blockSamples)
        // The longest packet is 120 ms, and one may be concealed before it.
        samples = .allocate(capacity: 2 * OpusDecoder.maximumFrameSamples)
        samples.initialize(repeating: 0)
        block = .allocate(capacity: blockSamples)
        block.initialize(repeating: 0)
        payload = .allocate(capacity: 1_500)
        payload.initialize(repeating: 0)
    }

    deinit {
        samples.deallocate()
        block.deallocate()
        payload.deallocate()
    }

    /// When the next block is due, for a sink that follows the timer; nil for hardware.
    var nextBlock: MonotonicTime? { sink.writableFrames == nil ? clock.next : nil }

    /// Takes an RTP packet from our peer.
    func receive(_ header: RTPHeader, payload: UnsafeBufferPointer<UInt8>, at now: MonotonicTime) {
        accepted &+= 1
        bytesReceived &+= UInt64(payload.count)
        reception.receive(header, at: now)
        if let index = decoders.firstIndex(where: { $0.payloadType == header.payloadType }) {
            current = index
            jitterBuffer.insert(header, payload: payload.span, at: now)
        } else {
            // A telephone event, or a payload type that was never agreed on: it takes a place in the sequence.
            unknownPayloads &+= 1
            jitterBuffer.insertPlaceholder(header, at: now)
        }
    }

    /// Plays every block that the sink wants.
    ///
    /// - Parameter record: gets each block as it was played.
    func process(at now: MonotonicTime, record: (UnsafeBufferPointer<Int16>) -> Void) {
        if sink.writableFrames == nil {
            for _ in 0..<clock.framesDue(at: now) { play(at: now, record: record) }
        } else {
            while let writable = sink.writableFrames, writable >= blockSamples { play(at: now, record: record) }
        }
    }

    private func play(at now: MonotonicTime, record: (UnsafeBufferPointer<Int16>) -> Void) {
        var filled = 0
        while filled < block.count {
            if start == end { decodeNext(at: now) }
            let count = min(end - start, block.count - filled)
            for index in 0..<count { block[filled + index] = samples[start + index] }
            start += count
            filled += count
        }
        totalSamples &+= UInt64(block.count)
        let played = UnsafeBufferPointer(block)
        level = Level.rootMeanSquare(played)
        jitterBuffer.isQuiet = level < 0.003
        sink.write(played)
        record(played)
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
            let decoder = (decoders.first { $0.payloadType == header.payloadType } ?? decoders[current]).decoder
            end = decoder.decode(UnsafeBufferPointer(rebasing: payload[0..<length]), into: samples)
            if end <= 0 { conceal(with: decoder) }
        case .lost(let fecLength):
            let decoder = decoders[current].decoder
            if let fecLength, fecLength > 0 {
                end = concealedFrame
                let frame = UnsafeMutableBufferPointer(rebasing: samples[0..<end])
                end = decoder.decodeFEC(UnsafeBufferPointer(rebasing: payload[0..<fecLength]), into: frame)
                fecFrames &+= 1
                concealedSamples &+= UInt64(end)
                if end <= 0 { conceal(with: decoder) }
            } else {
                conceal(with: decoder)
            }
        case .waiting:
            silence()
        }
    }

    private func conceal(with decoder: any FrameDecoder) {
        end = concealedFrame
        decoder.conceal(into: UnsafeMutableBufferPointer(rebasing: samples[0..<end]))
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
        for index in 0..<end { samples[index] = 0 }
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
