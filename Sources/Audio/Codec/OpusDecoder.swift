internal import COpus

/// The Opus decoder at 48 kHz mono, with loss concealment and in-band FEC. A stereo sender is mixed down by libopus.
public final class OpusDecoder: FrameDecoder, @unchecked Sendable {
    /// The longest frame a packet may hold: 120 ms (RFC 6716 section 3.1).
    public static let maximumFrameSamples = 5_760

    private let state: OpaquePointer

    /// Creates a decoder.
    ///
    /// - Throws: `.internal` when memory is short.
    public init() throws(AudioError) {
        var status: Int32 = 0
        guard let state = opus_decoder_create(Int32(AudioFormat.sampleRate), 1, &status), status == OPUS_OK else {
            throw AudioError(.internal, "cannot create an Opus decoder: \(OpusEncoder.text(of: status))")
        }
        self.state = state
    }

    deinit {
        opus_decoder_destroy(state)
    }

    /// Decodes one packet of up to 120 ms.
    public func decode(_ payload: UnsafeBufferPointer<UInt8>, into samples: UnsafeMutableBufferPointer<Int16>) -> Int {
        // An empty payload means "lost" to libopus; here it is merely unusable.
        guard let source = payload.baseAddress, payload.count > 0, let target = samples.baseAddress else { return 0 }
        let decoded = opus_decode(
            state, source, Int32(clamping: payload.count), target, Int32(clamping: samples.count), 0)
        return max(0, Int(decoded))
    }

    /// Recovers the frame before `payload` from the copy it carries.
    public func decodeFEC(
        _ payload: UnsafeBufferPointer<UInt8>, into samples: UnsafeMutableBufferPointer<Int16>
    ) -> Int {
        guard let source = payload.baseAddress, payload.count > 0, let target = samples.baseAddress,
            samples.count >= Self.concealmentUnit
        else {
            conceal(into: samples)
            return samples.count
        }
        let whole = samples.count - samples.count % Self.concealmentUnit
        let decoded = opus_decode(
            state, source, Int32(clamping: payload.count), target, Int32(clamping: whole), 1)
        guard decoded > 0 else {
            conceal(into: samples)
            return samples.count
        }
        samples.silence(from: Int(decoded))
        return samples.count
    }

    /// Continues the last sound, fading out over several frames.
    public func conceal(into samples: UnsafeMutableBufferPointer<Int16>) {
        // libopus conceals in multiples of 2.5 ms, up to 120 ms at a time.
        var filled = 0
        while samples.count - filled >= Self.concealmentUnit, let base = samples.baseAddress {
            let left = samples.count - filled
            let asked = min(left - left % Self.concealmentUnit, Self.maximumFrameSamples)
            let decoded = opus_decode(state, nil, 0, base + filled, Int32(asked), 0)
            guard decoded > 0 else { break }
            filled += Int(decoded)
        }
        samples.silence(from: filled)
    }

    /// Forgets the past, for a new stream.
    public func reset() {
        _ = sinch_opus_decoder_reset(state)
    }

    /// 2.5 ms.
    private static let concealmentUnit = 120
}
