import Glibc
import Primitives

/// Captures from an ALSA device; whatever format it has becomes 48 kHz mono.
public final class ALSASource: AudioSource, @unchecked Sendable {
    /// The name it was made from.
    public let name: AudioDeviceName
    /// What the hardware agreed to; kept after the device was lost.
    public private(set) var negotiated: NegotiatedFormat?
    /// Whether the buffer is much larger than asked.
    public private(set) var warning: String?
    /// What happened since `start()`.
    public private(set) var counters = AudioDeviceCounters()
    /// Whether the device vanished; it then gives silence.
    public private(set) var isLost = false

    /// What the device is asked for.
    var preferences = ALSAPreferences()

    private let pcm: String
    private var stream: ALSAStream?
    private var resampler: Resampler?
    private var failure: AudioError?
    private var stall = StallDetector()
    /// Captured and not yet read, at 48 kHz: 200 ms, so that a late media thread loses nothing.
    private var queue = SampleRing(capacity: 20 * AudioFormat.blockFrames)
    private var frames = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var mono = UnsafeMutableBufferPointer<Int16>(start: nil, count: 0)
    private var converted = UnsafeMutableBufferPointer<Int16>(start: nil, count: 0)

    /// Device frames moved at a time, and times in one wake-up.
    private static let chunkFrames = 480
    private static let chunksInService = 16

    /// Creates the source; the device is opened by `start()`.
    ///
    /// - Parameter pcm: The PCM's name in ALSA's configuration.
    public init(pcm: String) {
        self.pcm = pcm
        name = .alsa(pcm)
    }

    deinit {
        release()
    }

    /// Opens the device and starts capturing.
    ///
    /// - Throws: `.noDevice`, `.busy`.
    public func start() throws(AudioError) {
        stop()
        let stream = try ALSAStream(
            pcm: pcm, direction: .capture, startFrames: 1, preferences: preferences)
        let rate = stream.negotiated.sampleRate
        resampler = rate == AudioFormat.sampleRate ? nil : try Resampler(from: rate, to: AudioFormat.sampleRate)
        frames = .allocate(byteCount: Self.chunkFrames * stream.conversion.bytesPerFrame, alignment: 16)
        mono = .allocate(capacity: Self.chunkFrames)
        converted = .allocate(capacity: Self.chunkFrames * AudioFormat.sampleRate / rate + 64)
        negotiated = stream.negotiated
        warning = stream.warning
        counters = AudioDeviceCounters()
        isLost = false
        failure = nil
        stall = StallDetector()
        self.stream = stream
    }

    /// Takes what the hardware captured.
    public func service(at now: MonotonicTime) {
        guard let stream, !isLost, let buffer = frames.baseAddress else { return }
        var progress = false
        for _ in 0..<Self.chunksInService {
            let count = stream.read(into: buffer, frames: Self.chunkFrames)
            if count > 0 {
                progress = true
                accept(buffer, frames: count, from: stream)
            }
            if count < 0 && count != -Int(EAGAIN) {
                if count == -Int(EPIPE) { counters.xruns &+= 1 }
                handle(stream.recover(from: count, at: now))
                break
            }
            if count < Self.chunkFrames { break }
        }
        if progress { stream.progressed() }
        if stall.observe(progress: progress, at: now) && !isLost { handle(stream.restart()) }
    }

    /// Frames captured and not yet read; nil when the device is lost or has stood still for 200 ms (the call then
    /// follows the timer, with silence).
    public var readableFrames: Int? {
        if queue.count > 0 { return queue.count }
        return isLost || stall.isStalled || stream == nil ? nil : 0
    }

    /// Gives the oldest captured frames, then silence.
    public func read(into buffer: UnsafeMutableBufferPointer<Int16>) -> AudioRead {
        let count = queue.read(into: buffer)
        buffer.silence(from: count)
        return AudioRead(frames: count)
    }

    /// Why the device was lost, once.
    public func takeFailure() -> AudioError? {
        defer { failure = nil }
        return failure
    }

    /// Closes the device.
    public func stop() {
        stream = nil
        resampler = nil
        queue.removeAll()
        release()
    }

    private func release() {
        frames.deallocate()
        mono.deallocate()
        converted.deallocate()
        frames = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        mono = UnsafeMutableBufferPointer(start: nil, count: 0)
        converted = UnsafeMutableBufferPointer(start: nil, count: 0)
    }

    private func accept(_ buffer: UnsafeMutableRawPointer, frames count: Int, from stream: ALSAStream) {
        guard let samples = mono.baseAddress else { return }
        stream.conversion.toMono(buffer, frames: count, into: samples)
        var pending = UnsafeBufferPointer(start: samples, count: count)
        guard let resampler else {
            store(pending)
            return
        }
        while pending.count > 0 {
            let (consumed, produced) = resampler.process(pending, into: converted)
            store(UnsafeBufferPointer(rebasing: converted[0..<produced]))
            if consumed == 0 { break }
            pending = UnsafeBufferPointer(rebasing: pending[consumed...])
        }
    }

    private func store(_ samples: UnsafeBufferPointer<Int16>) {
        counters.droppedFrames &+= UInt64(queue.write(samples))
        counters.frames &+= UInt64(samples.count)
    }

    private func handle(_ recovery: ALSAStream.Recovery) {
        guard case .lost(let code) = recovery else { return }
        isLost = true
        failure = ALSAFailure.lost(name, .capture, code)
    }
}
