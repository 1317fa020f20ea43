import Glibc
import Primitives

@testable import Audio

/// A directory that goes away with its owner.
final class Scratch: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/audiotests-XXXXXX".utf8CString)
        path = template.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress, let made = mkdtemp(base) else { return "/nonexistent" }
            return String(cString: made)
        }
    }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    func write(_ bytes: [UInt8], to name: String) -> String {
        let path = file(name)
        guard let stream = fopen(path, "w") else { return path }
        fwrite(bytes, 1, bytes.count, stream)
        fclose(stream)
        return path
    }

    deinit {
        erase()
    }

    func erase() {
        Self.removeTree(path)
    }

    private static func removeTree(_ path: String) {
        if let directory = opendir(path) {
            while let entry = readdir(directory) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != "." && name != ".." { removeTree("\(path)/\(name)") }
            }
            closedir(directory)
        }
        remove(path)
    }
}

func readFile(_ path: String) -> [UInt8] {
    guard let stream = fopen(path, "r") else { return [] }
    defer { fclose(stream) }
    var bytes = [UInt8](repeating: 0, count: 1 << 22)
    bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, stream))
    return bytes
}

func monotonicNow() -> MonotonicTime {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
}

/// Runs `step` every 10 ms of real time until it returns true; false when `limit` passed first.
func everyTenMilliseconds(limit: Duration, _ step: (MonotonicTime) -> Bool) -> Bool {
    let start = monotonicNow()
    var next = start
    while next - start < limit {
        if step(monotonicNow()) { return true }
        next += .milliseconds(10)
        var until = timespec(
            tv_sec: Int(next.nanoseconds / 1_000_000_000), tv_nsec: Int(next.nanoseconds % 1_000_000_000))
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nil)
    }
    return false
}

extension AudioSource {
    /// Reads that many samples in blocks of 10 ms.
    func samples(_ count: Int) -> [Int16] {
        var all: [Int16] = []
        var block = [Int16](repeating: 0, count: AudioFormat.blockFrames)
        while all.count < count {
            _ = block.withUnsafeMutableBufferPointer { read(into: $0) }
            all += block
        }
        return Array(all.prefix(count))
    }

    /// Reads to the end of a file.
    func everything(limit: Int = 48_000 * 60) -> [Int16] {
        var all: [Int16] = []
        var block = [Int16](repeating: 0, count: AudioFormat.blockFrames)
        while !isExhausted && all.count < limit {
            let result = block.withUnsafeMutableBufferPointer { read(into: $0) }
            all += block.prefix(result.frames)
        }
        return all
    }
}

/// The amplitude of one frequency in a signal (Goertzel's algorithm as a plain projection).
func amplitude(of frequency: Double, in samples: some Collection<Int16>, rate: Double = 48_000) -> Double {
    var inPhase = 0.0
    var quadrature = 0.0
    for (index, sample) in samples.enumerated() {
        let angle = 2 * Double.pi * frequency * Double(index) / rate
        inPhase += Double(sample) * cos(angle)
        quadrature += Double(sample) * sin(angle)
    }
    return 2 * (inPhase * inPhase + quadrature * quadrature).squareRoot() / Double(max(samples.count, 1))
}

func rootMeanSquare(_ samples: some Collection<Int16>) -> Double {
    (samples.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(max(samples.count, 1))).squareRoot()
}

func sine(_ frequency: Double, seconds: Double, rate: Double = 48_000, peak: Double = 10_000) -> [Int16] {
    (0..<Int(seconds * rate)).map { Int16(peak * sin(2 * Double.pi * frequency * Double($0) / rate)) }
}

/// Something like speech: syllables of harmonics with a moving pitch and two formants, with pauses.
func babble(seconds: Double, seed: UInt64) -> [Int16] {
    var random = RandomSource.seeded(seed)
    var samples: [Int16] = []
    var phase = 0.0
    while samples.count < Int(seconds * 48_000) {
        let length = Int(4_800 + random.unitInterval() * 9_600)
        let pause = Int(random.unitInterval() * 7_200)
        let pitch = 90 + random.unitInterval() * 110
        let glide = (random.unitInterval() - 0.5) * 60
        let formants = [300 + random.unitInterval() * 500, 900 + random.unitInterval() * 1_500]
        let gains = (1...20).map { harmonic in
            formants.reduce(0) { $0 + 1 / (1 + pow((pitch * Double(harmonic) - $1) / 120, 2)) }
        }
        let isVoiced = random.unitInterval() < 0.8
        for index in 0..<length {
            let progress = Double(index) / Double(length)
            phase += 2 * Double.pi * (pitch + glide * progress) / 48_000
            var value = 0.0
            if isVoiced {
                // sin(nx) from its two predecessors.
                let factor = 2 * cos(phase)
                var previous = 0.0
                var current = sin(phase)
                for gain in gains {
                    value += gain * current
                    (previous, current) = (current, factor * current - previous)
                }
            } else {
                value = (random.unitInterval() - 0.5) * 2
            }
            samples.append(Int16(max(-32_000, min(32_000, value * 4_000 * sin(Double.pi * progress)))))
        }
        samples += [Int16](repeating: 0, count: pause)
    }
    return Array(samples.prefix(Int(seconds * 48_000)))
}

/// What one frame codec makes of a signal; `lost(packet)` says which packets are dropped.
func through(
    _ encoder: any FrameEncoder, _ decoder: any FrameDecoder, _ samples: [Int16], useFEC: Bool = false,
    lost: (Int) -> Bool = { _ in false }
) -> [Int16] {
    let size = encoder.frameSamples
    var packets: [[UInt8]] = []
    for start in stride(from: 0, through: samples.count - size, by: size) {
        let packet = [UInt8](unsafeUninitializedCapacity: 1_500) { buffer, count in
            count = samples[start..<start + size].withUnsafeBufferPointer { encoder.encode($0, into: buffer) }
        }
        packets.append(packet)
    }
    var output: [Int16] = []
    for index in packets.indices {
        output += [Int16](unsafeUninitializedCapacity: size) { buffer, count in
            buffer.initialize(repeating: 0)
            if !lost(index) {
                count = packets[index].withUnsafeBufferPointer { decoder.decode($0, into: buffer) }
            } else if useFEC, index + 1 < packets.count, !lost(index + 1) {
                count = packets[index + 1].withUnsafeBufferPointer { decoder.decodeFEC($0, into: buffer) }
            } else {
                decoder.conceal(into: buffer)
                count = size
            }
        }
    }
    return output
}
