internal import CALSA
import Glibc
import Primitives

/// What a device is asked for: the engine's own format, so that nothing needs converting. Tests ask for others.
struct ALSAPreferences: Equatable, Sendable {
    var sampleRate = AudioFormat.sampleRate
    var channels = 1
    var encodings = ALSAConversion.Encoding.allCases
    /// 10 ms each.
    var periods = 4
}

/// One opened ALSA PCM: negotiation, state, bounded recovery. Shared by source and sink.
///
/// Opening and closing may block; everything else uses the non-blocking mode. Errors of ALSA are negative `errno`s.
final class ALSAStream {
    enum Direction {
        case capture, playback

        var name: String { self == .capture ? "capture" : "playback" }
    }

    /// What the media thread has to do after an error.
    enum Recovery: Equatable {
        /// The stream was restarted, or will be at the next wake-up.
        case recovered
        /// Give up: the device is gone.
        case lost(Int32)
    }

    let direction: Direction
    let negotiated: NegotiatedFormat
    let conversion: ALSAConversion
    let warning: String?
    private let pcm: OpaquePointer
    private var budget = RecoveryBudget()

    private static let periodsASecond = 100
    /// Buffers beyond this are warned of: some plugins hand out seconds.
    private static let longestBuffer = Duration.milliseconds(200)

    /// Opens and prepares the device; capture starts at once, playback once `startFrames` of 48 kHz were written.
    ///
    /// - Parameter preferences: What is asked for; the device may have something else.
    init(
        pcm name: String, direction: Direction, startFrames: Int, preferences: ALSAPreferences = ALSAPreferences()
    ) throws(AudioError) {
        sinch_alsa_silence_errors()
        var opened: OpaquePointer?
        let stream = direction == .capture ? SND_PCM_STREAM_CAPTURE : SND_PCM_STREAM_PLAYBACK
        let status = snd_pcm_open(&opened, name, stream, SND_PCM_NONBLOCK)
        guard status == 0, let pcm = opened else {
            throw ALSAFailure.opening(name, direction, status)
        }
        do throws(AudioError) {
            let (negotiated, conversion) = try Self.negotiate(
                pcm, name: name, direction: direction, preferences: preferences)
            try Self.setThresholds(
                pcm, name: name, direction: direction, negotiated: negotiated, startFrames: startFrames)
            let started = direction == .capture ? snd_pcm_start(pcm) : 0
            guard started == 0 else { throw ALSAFailure.configuring(name, direction, "start", started) }
            self.negotiated = negotiated
            self.conversion = conversion
        } catch {
            snd_pcm_close(pcm)
            throw error
        }
        self.pcm = pcm
        self.direction = direction
        warning =
            negotiated.bufferDuration > Self.longestBuffer
            ? "alsa:\(name) has a \(direction.name) buffer of \(Int(negotiated.bufferDuration.milliseconds)) ms "
                + "(40 asked); expect delay, or choose another device (sinchctl devices)" : nil
    }

    deinit {
        // Drop first: closing a playing device may otherwise wait for its buffer to run out.
        snd_pcm_drop(pcm)
        snd_pcm_close(pcm)
    }

    // MARK: - Transfer

    /// Reads frames of the device's format; returns their number or a negative error.
    func read(into buffer: UnsafeMutableRawPointer, frames: Int) -> Int {
        snd_pcm_readi(pcm, buffer, snd_pcm_uframes_t(frames))
    }

    /// Writes frames of the device's format; returns their number or a negative error.
    func write(_ buffer: UnsafeRawPointer, frames: Int) -> Int {
        snd_pcm_writei(pcm, buffer, snd_pcm_uframes_t(frames))
    }

    /// Frames waiting in the playback buffer; a negative error. Delay queries are not used for this: they may fail on
    /// the PulseAudio plugin though nothing is wrong.
    func queuedFrames() -> Int {
        var available = snd_pcm_avail(pcm)
        if available == -Int(EIO) { available = snd_pcm_avail_update(pcm) }
        guard available >= 0 else { return available }
        return max(0, negotiated.bufferFrames - available)
    }

    /// Delay to the loudspeaker or from the microphone in frames of the device; nil when the device does not say.
    func delayFrames() -> Int? {
        var available: snd_pcm_sframes_t = 0
        var delay: snd_pcm_sframes_t = 0
        guard snd_pcm_avail_delay(pcm, &available, &delay) == 0 else { return nil }
        return max(0, delay)
    }

    // MARK: - Recovery

    /// Tells that frames moved: the device works.
    func progressed() {
        budget.progressed()
    }

    /// Deals with an error of a transfer. `-EAGAIN` is none and must not be given.
    func recover(from error: Int, at now: MonotonicTime) -> Recovery {
        let code = Int32(clamping: -error)
        guard code != ENODEV, !budget.isExceeded(byFailureAt: now) else { return .lost(code) }
        if code == ESTRPIPE {
            // Suspended: resume needs several tries while the hardware wakes up.
            let resumed = snd_pcm_resume(pcm)
            if resumed == 0 || resumed == -EAGAIN { return .recovered }
        }
        return restart()
    }

    /// Prepares the stream again; capture must then be started explicitly, or it silently yields nothing.
    func restart() -> Recovery {
        var status = snd_pcm_prepare(pcm)
        if status == 0 && direction == .capture { status = snd_pcm_start(pcm) }
        return status == -ENODEV ? .lost(ENODEV) : .recovered
    }

    // MARK: - Negotiation

    private static func negotiate(
        _ pcm: OpaquePointer, name: String, direction: Direction, preferences: ALSAPreferences
    ) throws(AudioError) -> (NegotiatedFormat, ALSAConversion) {
        var allocated: OpaquePointer?
        guard snd_pcm_hw_params_malloc(&allocated) == 0, let parameters = allocated else {
            throw ALSAFailure.configuring(name, direction, "parameters", -ENOMEM)
        }
        defer { snd_pcm_hw_params_free(parameters) }
        func require(_ status: Int32, _ what: String) throws(AudioError) {
            guard status >= 0 else { throw ALSAFailure.configuring(name, direction, what, status) }
        }
        try require(snd_pcm_hw_params_any(pcm, parameters), "configuration")
        try require(
            snd_pcm_hw_params_set_access(pcm, parameters, SND_PCM_ACCESS_RW_INTERLEAVED), "interleaved access")
        let encoding = preferences.encodings.first {
            snd_pcm_hw_params_set_format(pcm, parameters, $0.format) == 0
        }
        guard let encoding else {
            throw ALSAFailure.configuring(name, direction, "sample format (16 bit, 32 bit or float)", -EINVAL)
        }
        // Mono if the device has it, else stereo, else whatever is near.
        if snd_pcm_hw_params_set_channels(pcm, parameters, UInt32(preferences.channels)) != 0 {
            var channels: UInt32 = 2
            try require(snd_pcm_hw_params_set_channels_near(pcm, parameters, &channels), "channels")
        }
        var rate = UInt32(clamping: preferences.sampleRate)
        try require(snd_pcm_hw_params_set_rate_near(pcm, parameters, &rate, nil), "sample rate")
        var period = snd_pcm_uframes_t(max(1, Int(rate) / periodsASecond))
        try require(snd_pcm_hw_params_set_period_size_near(pcm, parameters, &period, nil), "period")
        var buffer = period * snd_pcm_uframes_t(preferences.periods)
        try require(snd_pcm_hw_params_set_buffer_size_near(pcm, parameters, &buffer), "buffer")
        try require(snd_pcm_hw_params(pcm, parameters), "parameters")

        // What was asked for is not what was given: read everything back.
        var channels: UInt32 = 0
        try require(snd_pcm_hw_params_get_channels(parameters, &channels), "channels")
        try require(snd_pcm_hw_params_get_rate(parameters, &rate, nil), "sample rate")
        try require(snd_pcm_hw_params_get_period_size(parameters, &period, nil), "period")
        try require(snd_pcm_hw_params_get_buffer_size(parameters, &buffer), "buffer")
        guard (1...64).contains(channels), (4_000...384_000).contains(rate), period > 0, buffer >= period else {
            throw ALSAFailure.configuring(name, direction, "format (\(rate) Hz, \(channels) channels)", -EINVAL)
        }
        let negotiated = NegotiatedFormat(
            sampleRate: Int(rate), channels: Int(channels), sampleFormat: encoding.name,
            periodFrames: Int(clamping: period), bufferFrames: Int(clamping: buffer))
        return (negotiated, ALSAConversion(encoding: encoding, channels: Int(channels)))
    }

    private static func setThresholds(
        _ pcm: OpaquePointer, name: String, direction: Direction, negotiated: NegotiatedFormat, startFrames: Int
    ) throws(AudioError) {
        var allocated: OpaquePointer?
        guard snd_pcm_sw_params_malloc(&allocated) == 0, let parameters = allocated else {
            throw ALSAFailure.configuring(name, direction, "parameters", -ENOMEM)
        }
        defer { snd_pcm_sw_params_free(parameters) }
        // Starting below the level that is kept: a resampler may deliver a frame less than was counted on, and a
        // device that waits for that frame waits for ever.
        let asked = startFrames * negotiated.sampleRate / AudioFormat.sampleRate * 3 / 4
        let threshold = direction == .capture ? 1 : min(max(1, asked), negotiated.bufferFrames)
        var status = snd_pcm_sw_params_current(pcm, parameters)
        if status == 0 {
            status = snd_pcm_sw_params_set_start_threshold(pcm, parameters, snd_pcm_uframes_t(threshold))
        }
        if status == 0 {
            status = snd_pcm_sw_params_set_avail_min(
                pcm, parameters, snd_pcm_uframes_t(negotiated.periodFrames))
        }
        if status == 0 { status = snd_pcm_sw_params(pcm, parameters) }
        guard status == 0 else { throw ALSAFailure.configuring(name, direction, "thresholds", status) }
    }
}
