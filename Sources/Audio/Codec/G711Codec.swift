/// G.711 as RTP carries it: 20 ms of 48 kHz audio become 160 bytes.
public final class G711Encoder: FrameEncoder, @unchecked Sendable {
    /// Samples at 48 kHz in a frame.
    public let frameSamples: Int
    /// Which law.
    public let law: G711
    private let resampler: Resampler
    private let narrow: UnsafeMutableBufferPointer<Int16>

    /// Creates an encoder for frames of `frameSamples` at 48 kHz, a multiple of 6 (480 is 10 ms).
    ///
    /// - Throws: `.internal` when memory is short or the frame length makes no sense.
    public init(law: G711, frameSamples: Int = AudioFormat.packetFrames) throws(AudioError) {
        guard frameSamples > 0, frameSamples <= 48_000, frameSamples % G711Decoder.ratio == 0 else {
            throw AudioError(.internal, "G.711 has no frames of \(frameSamples) samples at 48 kHz")
        }
        self.law = law
        self.frameSamples = frameSamples
        resampler = try Resampler(from: AudioFormat.sampleRate, to: 8_000, quality: 3)
        // The output of a resampler is a sample longer or shorter now and then.
        narrow = .allocate(capacity: frameSamples / G711Decoder.ratio + 8)
        narrow.initialize(repeating: 0)
    }

    deinit {
        narrow.deallocate()
    }

    /// Encodes one frame to `frameSamples / 6` bytes.
    public func encode(_ samples: UnsafeBufferPointer<Int16>, into payload: UnsafeMutableBufferPointer<UInt8>) -> Int {
        let bytes = frameSamples / G711Decoder.ratio
        guard samples.count == frameSamples, payload.count >= bytes else { return 0 }
        let (_, produced) = resampler.process(samples, into: UnsafeMutableBufferPointer(rebasing: narrow[0..<bytes]))
        narrow.silence(from: produced)
        return law.encode(
            UnsafeBufferPointer(rebasing: narrow[0..<bytes]),
            into: UnsafeMutableBufferPointer(rebasing: payload[0..<bytes]))
    }

    /// Forgets the past, for a new stream.
    public func reset() {
        resampler.reset()
    }
}

/// G.711 from RTP: bytes at 8 kHz become 48 kHz audio; losses are filled by repeating the last sound, fading out.
public final class G711Decoder: FrameDecoder, @unchecked Sendable {
    /// 48 kHz over 8 kHz.
    static let ratio = 6
    /// The longest payload that is decoded: 250 ms.
    public static let maximumPayloadBytes = 2_000

    /// Which law.
    public let law: G711
    private let resampler: Resampler
    private let narrow: UnsafeMutableBufferPointer<Int16>
    private let history: UnsafeMutableBufferPointer<Int16>
    private var concealment = PeriodRepeater()

    /// Creates a decoder.
    ///
    /// - Throws: `.internal` when memory is short.
    public init(law: G711) throws(AudioError) {
        self.law = law
        resampler = try Resampler(from: 8_000, to: AudioFormat.sampleRate, quality: 3)
        narrow = .allocate(capacity: Self.maximumPayloadBytes)
        narrow.initialize(repeating: 0)
        history = .allocate(capacity: PeriodRepeater.historySamples)
        history.initialize(repeating: 0)
    }

    deinit {
        narrow.deallocate()
        history.deallocate()
    }

    /// Decodes any number of samples up to 2,000; six samples come out for each byte.
    public func decode(_ payload: UnsafeBufferPointer<UInt8>, into samples: UnsafeMutableBufferPointer<Int16>) -> Int {
        guard payload.count > 0, payload.count <= narrow.count, samples.count >= payload.count * Self.ratio else {
            return 0
        }
        let input = UnsafeMutableBufferPointer(rebasing: narrow[0..<payload.count])
        _ = law.decode(payload, into: input)
        concealment.received(input, history: history)
        return widen(UnsafeBufferPointer(input), into: samples, count: payload.count * Self.ratio)
    }

    /// G.711 carries no redundancy: conceals.
    public func decodeFEC(
        _ payload: UnsafeBufferPointer<UInt8>, into samples: UnsafeMutableBufferPointer<Int16>
    ) -> Int {
        conceal(into: samples)
        return samples.count
    }

    /// Repeats the last pitch period, fading to silence within 60 ms.
    public func conceal(into samples: UnsafeMutableBufferPointer<Int16>) {
        var filled = 0
        while filled < samples.count {
            let wanted = min((samples.count - filled + Self.ratio - 1) / Self.ratio, narrow.count)
            let input = UnsafeMutableBufferPointer(rebasing: narrow[0..<wanted])
            concealment.conceal(input, history: history)
            let room = min(wanted * Self.ratio, samples.count - filled)
            let target = UnsafeMutableBufferPointer(rebasing: samples[filled..<filled + room])
            filled += widen(UnsafeBufferPointer(input), into: target, count: room)
        }
    }

    /// Forgets the past, for a new stream.
    public func reset() {
        resampler.reset()
        history.update(repeating: 0)
        concealment = PeriodRepeater()
    }

    private func widen(
        _ input: UnsafeBufferPointer<Int16>, into samples: UnsafeMutableBufferPointer<Int16>, count: Int
    ) -> Int {
        let target = UnsafeMutableBufferPointer(rebasing: samples[0..<count])
        let (_, produced) = resampler.process(input, into: target)
        target.silence(from: produced)
        return count
    }
}
