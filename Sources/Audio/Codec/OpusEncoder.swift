internal import COpus

/// The Opus encoder (RFC 6716, 7587) as calls use it: 48 kHz mono, VOIP, voice, in-band FEC on.
public final class OpusEncoder: FrameEncoder, @unchecked Sendable {
    /// How the encoder is set up.
    public struct Configuration: Equatable, Sendable {
        /// Bits a second, 6,000 to 510,000. In-band FEC needs at least 20,000, so 24,000 and up is advised.
        public var bitrate = 32_000
        /// 0 (fast) to 10; 5 costs about half of 9.
        public var complexity = 5
        /// Whether packets may carry a copy of the frame before (when loss is expected).
        public var inBandFEC = true
        /// Expected packet loss in percent; FEC appears only when it is above 0.
        public var expectedLoss = 5
        /// Whether silence is not sent (one packet in 400 ms instead).
        public var discontinuousTransmission = false
        /// Constant bit rate: hides what is said from the packets' sizes, costs quality.
        public var constantBitrate = false
        /// Samples in a frame: 120, 240, 480, 960, 1920 or 2880 (2.5 to 60 ms).
        public var frameSamples = AudioFormat.packetFrames

        /// The defaults: 32 kb/s, complexity 5, 20 ms, FEC.
        public init() {}
    }

    /// Bytes that hold any frame; a packet in use is far smaller.
    public static let maximumPayloadBytes = 1_275

    /// Samples in a frame.
    public let frameSamples: Int
    /// What was asked for; loss and bit rate follow later changes.
    public private(set) var configuration: Configuration
    private let state: OpaquePointer

    /// Creates an encoder.
    ///
    /// - Throws: `.internal` when libopus refuses a value.
    public init(_ configuration: Configuration = Configuration()) throws(AudioError) {
        guard [120, 240, 480, 960, 1_920, 2_880].contains(configuration.frameSamples) else {
            throw AudioError(.internal, "Opus has no frames of \(configuration.frameSamples) samples")
        }
        var status: Int32 = 0
        guard
            let state = opus_encoder_create(
                Int32(AudioFormat.sampleRate), 1, OPUS_APPLICATION_VOIP, &status), status == OPUS_OK
        else {
            throw AudioError(.internal, "cannot create an Opus encoder: \(Self.text(of: status))")
        }
        self.state = state
        self.configuration = configuration
        frameSamples = configuration.frameSamples
        let statuses = [
            sinch_opus_set_bitrate(state, Int32(clamping: configuration.bitrate)),
            sinch_opus_set_complexity(state, Int32(clamping: configuration.complexity)),
            sinch_opus_set_inband_fec(state, configuration.inBandFEC ? 1 : 0),
            sinch_opus_set_packet_loss(state, Int32(clamping: configuration.expectedLoss)),
            sinch_opus_set_dtx(state, configuration.discontinuousTransmission ? 1 : 0),
            sinch_opus_set_vbr(state, configuration.constantBitrate ? 0 : 1),
            sinch_opus_set_signal_voice(state),
        ]
        // The object is complete, so deinit frees the state when this throws.
        if let failed = statuses.first(where: { $0 != OPUS_OK }) {
            throw AudioError(.internal, "Opus refuses the encoder's settings: \(Self.text(of: failed))")
        }
    }

    deinit {
        opus_encoder_destroy(state)
    }

    /// Encodes one frame. With DTX, a payload of 1 or 2 bytes is not worth sending: the result is 0 then.
    public func encode(_ samples: UnsafeBufferPointer<Int16>, into payload: UnsafeMutableBufferPointer<UInt8>) -> Int {
        guard samples.count == frameSamples, let source = samples.baseAddress, let target = payload.baseAddress else {
            return 0
        }
        let bytes = opus_encode(state, source, Int32(frameSamples), target, Int32(clamping: payload.count))
        return bytes > 2 || (bytes > 0 && !configuration.discontinuousTransmission) ? Int(bytes) : 0
    }

    /// Drives the redundancy: 0 switches it off, more loss takes more of the bit rate.
    public func setExpectedLoss(percent: Int) {
        let clamped = min(max(percent, 0), 100)
        guard clamped != configuration.expectedLoss else { return }
        if sinch_opus_set_packet_loss(state, Int32(clamped)) == OPUS_OK { configuration.expectedLoss = clamped }
    }

    /// Changes the bit rate, e.g. to what the peer's `maxaveragebitrate` allows; bits a second.
    public func setBitrate(_ bitrate: Int) {
        let clamped = min(max(bitrate, 6_000), 510_000)
        if sinch_opus_set_bitrate(state, Int32(clamped)) == OPUS_OK { configuration.bitrate = clamped }
    }

    /// Forgets the past, for a new stream.
    public func reset() {
        _ = sinch_opus_encoder_reset(state)
    }

    /// Samples at 48 kHz by which the encoder delays (its look-ahead).
    public var lookahead: Int {
        var samples: Int32 = 0
        return sinch_opus_get_lookahead(state, &samples) == OPUS_OK ? Int(samples) : 0
    }

    static func text(of status: Int32) -> String {
        opus_strerror(status).map { String(cString: $0) } ?? "error \(status)"
    }
}
