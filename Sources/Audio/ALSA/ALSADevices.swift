import Primitives
public final class ALSASource: AudioSource, @unchecked Sendable {
    public let name: AudioDeviceName
    public var counters = AudioDeviceCounters()
    public init(pcm: String) { name = .alsa(pcm) }
    public func start() throws(AudioError) { throw AudioError(.noDevice, "x") }
    public func read(into buffer: UnsafeMutableBufferPointer<Int16>) -> AudioRead { buffer.silence(from: 0); return AudioRead(frames: 0) }
    public func stop() {}
}
public final class ALSASink: AudioSink, @unchecked Sendable {
    public let name: AudioDeviceName
    public var counters = AudioDeviceCounters()
    public init(pcm: String, targetFillFrames: Int = 1440) { name = .alsa(pcm) }
    public func start() throws(AudioError) { throw AudioError(.noDevice, "x") }
    public func write(_ buffer: UnsafeBufferPointer<Int16>) {}
    public func stop() {}
}
