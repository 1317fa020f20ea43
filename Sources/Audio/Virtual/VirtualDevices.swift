import Glibc

/// A sine wave at −12 dBFS peak, without end.
public final class ToneSource: AudioSource, @unchecked Sendable {
    /// The name it was made from.
    public let name: AudioDeviceName
    /// Frames given so far.
    public private(set) var counters = AudioDeviceCounters()
    /// The peak amplitude, −12 dBFS: loud enough to measure, quiet enough for a loudspeaker.
    public static let amplitude = 8_230.0
    private let step: Double
    private var phase = 0.0

    /// Creates a tone of `frequency` hertz.
    public init(frequency: Double) {
        name = .tone(frequency)
        step = 2 * Double.pi * frequency / Double(AudioFormat.sampleRate)
    }

    /// Starts the wave at its zero crossing.
    public func start() {
        phase = 0
        counters = AudioDeviceCounters()
    }

    /// Continues the wave.
    public func read(into buffer: UnsafeMutableBufferPointer<Int16>) -> AudioRead {
        for index in buffer.indices {
            buffer[index] = Int16(sin(phase) * Self.amplitude)
            phase += step
            if phase >= 2 * Double.pi { phase -= 2 * Double.pi }
        }
        counters.frames &+= UInt64(buffer.count)
        return AudioRead(frames: buffer.count)
    }

    /// Does nothing.
    public func stop() {}
}

/// Digital silence without end.
public final class SilenceSource: AudioSource, @unchecked Sendable {
    /// The name it was made from: `silence` or `null`.
    public let name: AudioDeviceName
    /// Frames given so far.
    public private(set) var counters = AudioDeviceCounters()

    /// Creates the source.
    public init(name: AudioDeviceName = .silence) {
        self.name = name
    }

    /// Resets the counters.
    public func start() { counters = AudioDeviceCounters() }

    /// Gives zeroes.
    public func read(into buffer: UnsafeMutableBufferPointer<Int16>) -> AudioRead {
        buffer.silence(from: 0)
        counters.frames &+= UInt64(buffer.count)
        return AudioRead(frames: buffer.count)
    }

    /// Does nothing.
    public func stop() {}
}

/// Discards what it is given.
public final class NullSink: AudioSink, @unchecked Sendable {
    /// The name it was made from: `null` or `silence`.
    public let name: AudioDeviceName
    /// Frames taken so far.
    public private(set) var counters = AudioDeviceCounters()

    /// Creates the sink.
    public init(name: AudioDeviceName = .null) {
        self.name = name
    }

    /// Resets the counters.
    public func start() { counters = AudioDeviceCounters() }

    /// Counts the frames.
    public func write(_ buffer: UnsafeBufferPointer<Int16>) {
        counters.frames &+= UInt64(buffer.count)
    }

    /// Does nothing.
    public func stop() {}
}
