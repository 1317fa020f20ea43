import Glibc
import Primitives

/// Plays 48 kHz mono on an ALSA device, in whatever format the device has.
///
/// The device's buffer is not filled up but kept at a target level (30 ms by default), so that the delay is what was
/// chosen even where a plugin hands out a large buffer.
public final class ALSASink: AudioSink, @unchecked Sendable {
    /// The name it was made from.
    public let name: AudioDeviceName
    /// What the hardware agreed to; kept after the device was lost.
    public private(set) var negotiated: NegotiatedFormat?
    /// Whether the buffer is much larger than asked.
    public private(set) var warning: String?
    /// What happened since `start()`.
    public private(set) var counters = AudioDeviceCounters()
    /// Whether the device vanished; what is written is then discarded.
    public private(set) var isLost = false
    /// The fill level that is kept, in frames of 48 kHz.
    public let targetFillFrames: Int

    /// What the device is asked for.
    var preferences = ALSAPreferences()

    private let pcm: String
    private var stream: ALSAStream?
    private var resampler: Resampler?
    private var failure: AudioError?
    private var stall = StallDetector()
    /// The time of the last `service`; `write` needs it to bound recovery.
    private var now = MonotonicTime.zero
    /// Written and not yet taken by the device, in its rate.
    private var queue = SampleRing(capacity: 1)
    /// Frames in the device's buffer, as of the last `service` and writes since.
    private var hardwareFrames = 0
    /// A chunk in the device's format, and what of it still has to be written.
    private var staged = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var stagedStart = 0
    private var stagedEnd = 0
    private var mono = UnsafeMutableBufferPointer<Int16>(start: nil, count: 0)

    private static let chunkFrames = 480

    /// Creates the sink; the device is opened by `start()`.
    ///
    /// - Parameters:
    ///   - pcm: The PCM's name in ALSA's configuration.
    ///   - targetFillFrames: Frames of 48 kHz to keep in the device, 480 and up.
    public init(pcm: String, targetFillFrames: Int = AudioDeviceOptions().targetFillFrames) {
        self.pcm = pcm
        self.targetFillFrames = max(AudioFormat.blockFrames, targetFillFrames)
        name = .alsa(pcm)
    }

    deinit {
        release()
    }

    /// Opens the device; it starts to play when the target level is reached.
    ///
    /// - Throws: `.noDevice`, `.busy`.
    public func start() throws(AudioError) {
        stop()
        let stream = try ALSAStream(
            pcm: pcm, direction: .playback, startFrames: targetFillFrames, preferences: preferences)
        let rate = stream.negotiated.sampleRate
        resampler = rate == AudioFormat.sampleRate ? nil : try Resampler(from: AudioFormat.sampleRate, to: rate)
        staged = .allocate(byteCount: Self.chunkFrames * stream.conversion.bytesPerFrame, alignment: 16)
        mono = .allocate(capacity: max(Self.chunkFrames, Self.chunkFrames * rate / AudioFormat.sampleRate + 64))
        queue = SampleRing(capacity: Self.scale(targetFillFrames, to: rate) + rate / 20)
        negotiated = stream.negotiated
        warning = stream.warning
        counters = AudioDeviceCounters()
        isLost = false
        failure = nil
        stall = StallDetector()
        hardwareFrames = 0
        self.stream = stream
    }

    /// Looks how much the device played, restarts it where needed, and hands it what is queued.
    public func service(at now: MonotonicTime) {
        self.now = now
        guard let stream, !isLost else { return }
        let before = hardwareFrames
        let queued = stream.queuedFrames()
        if queued >= 0 {
            hardwareFrames = queued
        } else {
            recover(stream, from: queued)
        }
        let played = queued >= 0 && before > queued
        if played { stream.progressed() }
        // A device that waits for us (below its level) does not stand still.
        let isMoving = played || hardwareFrames < Self.scale(targetFillFrames, to: rate) * 3 / 4
        if stall.observe(progress: isMoving, at: now) && !isLost { handle(stream.restart()) }
        push(stream)
    }

    /// Frames that are missing to the target level; nil when the device is lost or has played nothing for 200 ms (the
    /// call then follows the timer).
    public var writableFrames: Int? {
        guard stream != nil, !isLost, !stall.isStalled else { return nil }
        let held = hardwareFrames + queue.count + stagedEnd - stagedStart
        return max(0, targetFillFrames - held * AudioFormat.sampleRate / max(rate, 1))
    }

    /// Queues the frames and hands the device what it takes.
    public func write(_ buffer: UnsafeBufferPointer<Int16>) {
        guard let stream, !isLost, !stall.isStalled else {
            counters.droppedFrames &+= UInt64(buffer.count)
            return
        }
        counters.frames &+= UInt64(buffer.count)
        if let resampler {
            var pending = buffer
            while pending.count > 0 {
                let (consumed, produced) = resampler.process(pending, into: mono)
                enqueue(UnsafeBufferPointer(rebasing: mono[0..<produced]))
                if consumed == 0 { break }
                pending = UnsafeBufferPointer(rebasing: pending[consumed...])
            }
        } else {
            enqueue(buffer)
        }
        push(stream)
    }

    /// Why the device was lost, once.
    public func takeFailure() -> AudioError? {
        defer { failure = nil }
        return failure
    }

    /// Stops at once, without playing what is queued, and closes the device.
    public func stop() {
        stream = nil
        resampler = nil
        queue.removeAll()
        stagedStart = 0
        stagedEnd = 0
        release()
    }

    private var rate: Int { negotiated?.sampleRate ?? AudioFormat.sampleRate }

    private static func scale(_ frames: Int, to rate: Int) -> Int { frames * rate / AudioFormat.sampleRate }

    private func release() {
        staged.deallocate()
        mono.deallocate()
        staged = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        mono = UnsafeMutableBufferPointer(start: nil, count: 0)
    }

    private func enqueue(_ samples: UnsafeBufferPointer<Int16>) {
        let dropped = queue.write(samples)
        if dropped > 0 { counters.droppedFrames &+= UInt64(dropped * AudioFormat.sampleRate / max(rate, 1)) }
    }

    /// Writes chunks until the device is full or nothing is left.
    private func push(_ stream: ALSAStream) {
        guard let base = staged.baseAddress, let samples = mono.baseAddress, !isLost else { return }
        while true {
            if stagedStart == stagedEnd {
                stagedStart = 0
                stagedEnd = queue.read(into: UnsafeMutableBufferPointer(start: samples, count: Self.chunkFrames))
                guard stagedEnd > 0 else { return }
                stream.conversion.fromMono(samples, frames: stagedEnd, into: base)
            }
            let count = stream.write(
                base + stagedStart * stream.conversion.bytesPerFrame, frames: stagedEnd - stagedStart)
            guard count > 0 else {
                if count < 0 && count != -Int(EAGAIN) { recover(stream, from: count) }
                return
            }
            stagedStart += count
            hardwareFrames += count
        }
    }

    private func recover(_ stream: ALSAStream, from error: Int) {
        if error == -Int(EPIPE) { counters.xruns &+= 1 }
        hardwareFrames = 0
        handle(stream.recover(from: error, at: now))
    }

    private func handle(_ recovery: ALSAStream.Recovery) {
        guard case .lost(let code) = recovery else { return }
        isLost = true
        failure = ALSAFailure.lost(name, .playback, code)
    }
}
