internal import CSpeexDSP

/// Converts mono audio from one sample rate to another (libspeexdsp). Allocates when made, never afterwards.
public final class Resampler: @unchecked Sendable {
    /// Rate of what goes in, in hertz.
    public let inputRate: Int
    /// Rate of what comes out, in hertz.
    public let outputRate: Int
    private let alignsStart: Bool
    private let state: OpaquePointer

    /// Creates a converter between two rates of 1 to 384 kHz.
    ///
    /// - Parameters:
    ///   - inputRate: Rate of what goes in, in hertz.
    ///   - outputRate: Rate of what comes out, in hertz.
    ///   - quality: 0 (fast) to 10. The filter delays: 3 by 3 ms where the lower rate is 8 kHz, 4 by 4 ms. Both are
    ///     clean for speech and cost about 0.05 % of real time.
    ///   - alignsStart: Whether the filter's delay is left out at the start, so that a file stays in place. A live
    ///     stream keeps it, and gives output for the very first input.
    /// - Throws: `.internal` when a rate is out of range or memory is short.
    public init(
        from inputRate: Int, to outputRate: Int, quality: Int = 4, alignsStart: Bool = false
    ) throws(AudioError) {
        let range = 1_000...384_000
        var status: Int32 = 0
        guard range.contains(inputRate), range.contains(outputRate), (0...10).contains(quality),
            let state = speex_resampler_init(1, UInt32(inputRate), UInt32(outputRate), Int32(quality), &status),
            status == 0
        else {
            throw AudioError(.internal, "cannot convert audio from \(inputRate) Hz to \(outputRate) Hz")
        }
        self.inputRate = inputRate
        self.outputRate = outputRate
        self.alignsStart = alignsStart
        self.state = state
        if alignsStart { speex_resampler_skip_zeros(state) }
    }

    deinit {
        speex_resampler_destroy(state)
    }

    /// Converts as much as fits; call again with what was not consumed.
    public func process(
        _ input: UnsafeBufferPointer<Int16>, into output: UnsafeMutableBufferPointer<Int16>
    ) -> (consumed: Int, produced: Int) {
        guard let source = input.baseAddress, let target = output.baseAddress else { return (0, 0) }
        var consumed = UInt32(clamping: input.count)
        var produced = UInt32(clamping: output.count)
        guard speex_resampler_process_int(state, 0, source, &consumed, target, &produced) == 0 else {
            return (input.count, 0)
        }
        return (Int(consumed), Int(produced))
    }

    /// Input samples that the filter holds back: feed as many zeroes to get the tail out.
    public var inputLatency: Int { Int(speex_resampler_get_input_latency(state)) }

    /// Forgets the past, for a new stream.
    public func reset() {
        speex_resampler_reset_mem(state)
        if alignsStart { speex_resampler_skip_zeros(state) }
    }
}
