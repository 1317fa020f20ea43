import Audio
import Glibc
import Primitives

@testable import MediaSession

/// Plays given samples, then ends.
final class SampleSource: AudioSource, @unchecked Sendable {
    let name = AudioDeviceName.alsa("samples")
    private(set) var counters = AudioDeviceCounters()
    private(set) var isStopped = false
    private let samples: [Int16]
    private var position = 0

    init(_ samples: [Int16]) {
        self.samples = samples
    }

    func start() {}
    func stop() { isStopped = true }
    var isExhausted: Bool { position >= samples.count }

    func read(into buffer: UnsafeMutableBufferPointer<Int16>) -> AudioRead {
        var frames = 0
        for index in 0..<buffer.count {
            buffer[index] = position < samples.count ? samples[position] : 0
            if position < samples.count { frames += 1 }
            position += 1
        }
        return AudioRead(frames: frames)
    }
}

/// Keeps what it is given.
final class SampleSink: AudioSink, @unchecked Sendable {
    let name = AudioDeviceName.file("samples")
    private(set) var counters = AudioDeviceCounters()
    private(set) var isStopped = false
    private(set) var samples: [Int16] = []

    func start() {}
    func stop() { isStopped = true }

    func write(_ buffer: UnsafeBufferPointer<Int16>) {
        samples.append(contentsOf: buffer)
    }
}

/// A sound card with a clock of its own that can be lost. `deliver` lets its time pass.
final class FakeCard: AudioSource, AudioSink, @unchecked Sendable {
    let name = AudioDeviceName.alsa("fake")
    private(set) var counters = AudioDeviceCounters()
    private(set) var isLost = false
    private var failure: AudioError?
    private var captured = 0
    private var wanted = 0
    private(set) var written = 0

    func start() {}
    func stop() {}

    func deliver(_ frames: Int) {
        captured += frames
        wanted += frames
    }

    func lose() {
        isLost = true
        failure = AudioError(.deviceLost, "the fake card was unplugged")
    }

    func takeFailure() -> AudioError? {
        defer { failure = nil }
        return failure
    }

    var readableFrames: Int? { isLost ? nil : captured }
    var writableFrames: Int? { isLost ? nil : wanted }

    func read(into buffer: UnsafeMutableBufferPointer<Int16>) -> AudioRead {
        captured = max(0, captured - buffer.count)
        // A square wave: a codec filters what is constant.
        for index in 0..<buffer.count { buffer[index] = isLost ? 0 : index / 40 % 2 == 0 ? 2_000 : -2_000 }
        return AudioRead(frames: buffer.count)
    }

    func write(_ buffer: UnsafeBufferPointer<Int16>) {
        wanted = max(0, wanted - buffer.count)
        written += buffer.count
    }
}

/// A file on a disk that fills up: follows the timer, and fails once.
final class FullDiskSink: AudioSink, @unchecked Sendable {
    let name = AudioDeviceName.file("full")
    let counters = AudioDeviceCounters()
    var isFull = false
    private var isTold = false

    func start() {}
    func stop() {}
    func write(_ buffer: UnsafeBufferPointer<Int16>) {}
    var isLost: Bool { isFull }

    func takeFailure() -> AudioError? {
        guard isFull, !isTold else { return nil }
        isTold = true
        return AudioError(.writeFailed, "no space is left")
    }
}

/// Sound that is like speech to a comparison: syllables of changing pitch and harmonics with pauses, never periodic.
func babble(seconds: Double, seed: UInt64 = 7) -> [Int16] {
    var random = RandomSource.seeded(seed)
    let count = Int(seconds * 48_000)
    var samples: [Int16] = []
    samples.reserveCapacity(count)
    var phase = 0.0
    while samples.count < count {
        let length = 3_000 + Int(random.unitInterval() * 9_000)
        let from = 110 + random.unitInterval() * 200
        let to = 110 + random.unitInterval() * 200
        let bright = 0.2 + random.unitInterval() * 0.6
        let isPause = random.unitInterval() < 0.15
        for index in 0..<length {
            let share = Double(index) / Double(length)
            phase += 2 * Double.pi * (from + (to - from) * share) / 48_000
            let envelope = isPause ? 0 : sin(Double.pi * share)
            let sound = sin(phase) + bright * sin(3 * phase + 1) + 0.5 * bright * sin(7 * phase)
            samples.append(Int16(6_000 * envelope * sound / (1 + 1.5 * bright)))
        }
    }
    return Array(samples.prefix(count))
}

/// How much is heard, 0…1.
func level(_ samples: some Collection<Int16>) -> Double {
    Array(samples).withUnsafeBufferPointer { Level.rootMeanSquare($0) }
}
