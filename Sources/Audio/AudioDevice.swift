import Primitives

/// What a source put into the buffer that it was given.
public struct AudioRead: Equatable, Sendable {
    /// Frames of real audio at the front of the buffer; the rest was filled with silence.
    public var frames: Int

    /// Creates the result.
    public init(frames: Int) {
        self.frames = frames
    }
}

/// What a hardware device agreed to, for `status`.
public struct NegotiatedFormat: Equatable, Sendable {
    /// Sample rate of the device in hertz.
    public var sampleRate: Int
    /// Channels of the device.
    public var channels: Int
    /// The sample format as ALSA names it, e.g. `S16_LE`.
    public var sampleFormat: String
    /// Frames the device moves at a time, at its own rate.
    public var periodFrames: Int
    /// Frames the device's buffer holds, at its own rate.
    public var bufferFrames: Int

    /// The delay a full buffer adds.
    public var bufferDuration: Duration { .microseconds(bufferFrames * 1_000_000 / max(sampleRate, 1)) }
}

/// What happened to a device since it was started. Counters only grow.
public struct AudioDeviceCounters: Equatable, Sendable {
    /// Frames moved to or from the device, at 48 kHz.
    public var frames: UInt64 = 0
    /// Times that the device ran empty (playback) or over (capture) and was restarted.
    public var xruns: UInt64 = 0
    /// Frames thrown away because nobody read them or the queue was full, at 48 kHz.
    public var droppedFrames: UInt64 = 0

    /// All zero.
    public init() {}
}

/// What sources and sinks have in common.
///
/// ## Threads
/// A device is made on any thread and from `start()` on belongs to ONE media thread. It is `Sendable` so that it can
/// be handed over, not so that two threads may use it. `service`, `read`, `write` and the properties do not allocate,
/// lock, log or block; `init`, `start` and `stop` may (they open files and devices).
///
/// ## The loop
/// Once each wake-up (a 10 ms timer), the media thread does
///
///     source.service(at: now); sink.service(at: now)
///     var due = clock.blocksDue(at: now)                     // BlockClock; for devices that follow the timer
///     while (sink.writableFrames ?? remaining due) >= 480   { pull; decode; mix; sink.write(block) }
///     while (source.readableFrames ?? remaining due) >= 480 { source.read(into: block); encode; send }
///
/// A hardware device has a clock of its own, and says how many frames it has or wants (`readableFrames`,
/// `writableFrames`): the call follows that clock, so no drift piles up in the device. A virtual device says `nil`:
/// it follows the timer, one block of 480 frames for each 10 ms that passed. The two sides of a call may
/// follow different clocks. The sink comes first so that an echo pair returns within the same wake-up.
public protocol AudioDevice: AnyObject, Sendable {
    /// The name the device was made from.
    var name: AudioDeviceName { get }
    /// Opens the device and starts it; frames count from here.
    ///
    /// - Throws: `.noDevice`, `.busy` and others; the device can be started again afterwards.
    func start() throws(AudioError)
    /// Moves frames between the hardware and the device's own queue, and recovers it where needed. Call once per
    /// wake-up, before asking for `readableFrames` or `writableFrames`.
    func service(at now: MonotonicTime)
    /// Stops and closes the device. Does nothing when it is not running.
    func stop()
    /// Whether the device vanished or failed for good. The source then gives silence, the sink discards, both
    /// follow the timer (`nil`), and the call stays up.
    var isLost: Bool { get }
    /// Why the device was lost or writing failed, once: the first caller gets the error, later ones nil.
    func takeFailure() -> AudioError?
    /// What the hardware agreed to; nil for virtual devices and before `start()`.
    var negotiated: NegotiatedFormat? { get }
    /// A line for people when the device works but not well (e.g. a very large buffer); nil when all is well.
    var warning: String? { get }
    /// What happened since `start()`.
    var counters: AudioDeviceCounters { get }
}

extension AudioDevice {
    /// Virtual devices need no service.
    public func service(at now: MonotonicTime) {}
    /// Virtual devices are never lost.
    public var isLost: Bool { false }
    /// Virtual devices do not fail.
    public func takeFailure() -> AudioError? { nil }
    /// Virtual devices negotiate nothing.
    public var negotiated: NegotiatedFormat? { nil }
    /// Virtual devices have nothing to warn of.
    public var warning: String? { nil }
}

/// Where audio comes from: a microphone, a file, a tone. See `AudioDevice` for threads and the loop.
public protocol AudioSource: AudioDevice {
    /// Frames that can be read now, at 48 kHz; nil: as many as time has passed (the source follows the timer).
    var readableFrames: Int? { get }
    /// Fills the whole buffer with 48 kHz mono; silence where the source has nothing.
    @discardableResult
    func read(into buffer: UnsafeMutableBufferPointer<Int16>) -> AudioRead
    /// Whether the source came to its end (a file): from here on there is only silence.
    var isExhausted: Bool { get }
}

extension AudioSource {
    /// Sources follow the timer unless they are hardware.
    public var readableFrames: Int? { nil }
    /// Sources do not end unless they are files.
    public var isExhausted: Bool { false }
}

/// Where audio goes to: a loudspeaker, a file, nowhere. See `AudioDevice` for threads and the loop.
public protocol AudioSink: AudioDevice {
    /// Frames the sink wants now to reach its target fill level, at 48 kHz; nil: as many as time has passed (the sink
    /// follows the timer).
    var writableFrames: Int? { get }
    /// Takes 48 kHz mono. A sink that wanted less drops what does not fit and counts it.
    func write(_ buffer: UnsafeBufferPointer<Int16>)
}

extension AudioSink {
    /// Sinks follow the timer unless they are hardware.
    public var writableFrames: Int? { nil }
}
