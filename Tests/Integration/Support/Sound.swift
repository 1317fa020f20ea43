import Audio
import Glibc

/// Sounds to play, and recordings to look into. 48 kHz.
enum Sound {
    /// Notes of changing pitch and length, which match nothing but themselves.
    static func melody(seconds: Double, seed: UInt64 = 7) -> [Int16] {
        let count = Int(seconds * 48_000)
        var samples = [Int16](repeating: 0, count: count)
        var seed = seed
        var phase = 0.0
        var frequency = 300.0
        var left = 0
        for index in 0..<count {
            if left == 0 {
                seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                frequency = 250 + Double(seed >> 33 & 0x7FF)
                left = 3_000 + Int(seed >> 50 & 0xFFF)
            }
            left -= 1
            phase += 2 * .pi * frequency / 48_000
            samples[index] = Int16(9_000 * sin(phase) + 3_000 * sin(phase * 2.1))
        }
        return samples
    }

    /// A mono WAV file of 16 bits.
    static func wav(_ samples: [Int16], rate: UInt32 = 48_000, format: UInt16 = 1) -> [UInt8] {
        func little<Number: FixedWidthInteger>(_ value: Number) -> [UInt8] {
            withUnsafeBytes(of: value.littleEndian) { Array($0) }
        }
        let bytes = samples.flatMap { little($0) }
        return Array("RIFF".utf8) + little(UInt32(36 + bytes.count)) + Array("WAVEfmt ".utf8) + little(UInt32(16))
            + little(format) + little(UInt16(1)) + little(rate) + little(rate * 2) + little(UInt16(2))
            + little(UInt16(16)) + Array("data".utf8) + little(UInt32(bytes.count)) + bytes
    }

    /// The channels of a recording.
    static func read(_ path: String) throws -> [[Int16]] {
        let bytes = readBytes(path)
        guard bytes.count >= 44, bytes[0..<4] == Array("RIFF".utf8)[...], bytes[8..<12] == Array("WAVE".utf8)[...]
        else {
            throw TestFailure("\(path) is no WAV file: \(bytes.count) bytes")
        }
        func number(_ offset: Int, _ size: Int) -> Int {
            (0..<size).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
        }
        let channels = number(22, 2)
        guard number(24, 4) == 48_000, number(34, 2) == 16, channels > 0 else {
            throw TestFailure("\(path) is not 48 kHz, 16 bits")
        }
        // The data chunk says how long it is: what a player would believe.
        guard bytes[36..<40] == Array("data".utf8)[...] else { throw TestFailure("\(path) has no data chunk at 36") }
        let frames = min(number(40, 4), bytes.count - 44) / (2 * channels)
        return (0..<channels).map { channel in
            (0..<frames).map { Int16(truncatingIfNeeded: number(44 + ($0 * channels + channel) * 2, 2)) }
        }
    }

    /// The first channel of what another program recorded with 16 bits, brought to 48 kHz.
    static func readAny(_ path: String) throws -> [Int16] {
        let bytes = readBytes(path)
        func number(_ offset: Int, _ size: Int) -> Int {
            offset + size > bytes.count ? 0 : (0..<size).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
        }
        guard bytes.count > 44, bytes[0..<4] == Array("RIFF".utf8)[...], number(34, 2) == 16 else {
            throw TestFailure("\(path) is no WAV file of 16 bits: \(bytes.count) bytes")
        }
        let (channels, rate) = (max(1, number(22, 2)), number(24, 4))
        guard rate > 0, 48_000 % rate == 0 else { throw TestFailure("\(path) has \(rate) Hz") }
        // Sizes in the header are not to be trusted: the program may have been ended before it wrote them.
        let samples = stride(from: 44, to: bytes.count - 1, by: 2 * channels).map {
            Int16(truncatingIfNeeded: number($0, 2))
        }
        let factor = 48_000 / rate
        return factor == 1 ? samples : samples.flatMap { [Int16](repeating: $0, count: factor) }
    }

    /// An even tone.
    static func tone(_ frequency: Double, seconds: Double) -> [Int16] {
        (0..<Int(seconds * 48_000)).map { Int16(9_000 * sin(2 * .pi * frequency * Double($0) / 48_000)) }
    }

    /// How loud each fifth of a second is, and how often that changes between loud and silent.
    static func loudness(_ samples: [Int16]) -> (levels: [Double], changes: Int) {
        let levels = stride(from: 0.2, to: Double(samples.count) / 48_000 - 0.4, by: 0.2).map { time in
            level(samples, from: time, to: time + 0.2)
        }
        let isLoud = levels.map { $0 > 1_000 }
        return (levels, zip(isLoud, isLoud.dropFirst()).count { $0 != $1 })
    }

    /// Root mean square of a part in seconds.
    static func level(_ samples: [Int16], from: Double = 0, to: Double = .infinity) -> Double {
        let begin = min(samples.count, Int(from * 48_000))
        let end = to.isFinite ? min(samples.count, Int(to * 48_000)) : samples.count
        guard begin < end else { return 0 }
        let sum = samples[begin..<end].reduce(0.0) { $0 + Double($1) * Double($1) }
        return (sum / Double(end - begin)).squareRoot()
    }
}
