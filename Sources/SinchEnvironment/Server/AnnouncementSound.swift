import Configuration
import Glibc

/// What `announcement` plays unless a file is given: a chime of four falling notes, twice, made by calculation.
public enum AnnouncementSound {
    private static let sampleRate = 16_000

    /// Writes the chime as a WAV file and returns its path.
    public static func write(into directory: String) throws(ConfigurationError) -> String {
        let path = directory + "/announcement.wav"
        try AtomicFile.write(wave(samples()), to: path)
        return path
    }

    /// The chime: bell-like notes that fade, half a second each, with a rest between the two rounds.
    static func samples() -> [Int16] {
        var samples: [Int16] = []
        for _ in 0..<2 {
            for frequency in [784.0, 659.3, 523.3, 392.0] {
                for index in 0..<(sampleRate / 2) {
                    let time = Double(index) / Double(sampleRate)
                    let envelope = exp(-4 * time) * min(1, time * 200)
                    let tone = sin(2 * .pi * frequency * time) + 0.3 * sin(4 * .pi * frequency * time)
                    samples.append(Int16(9_000 * envelope * tone))
                }
            }
            samples += [Int16](repeating: 0, count: sampleRate / 2)
        }
        return samples
    }

    private static func wave(_ samples: [Int16]) -> [UInt8] {
        func little(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) } }
        let bytes = samples.flatMap { sample in
            [UInt8(truncatingIfNeeded: sample), UInt8(truncatingIfNeeded: sample >> 8)]
        }
        let rate = UInt32(sampleRate)
        var file = Array("RIFF".utf8) + little(UInt32(36 + bytes.count)) + Array("WAVEfmt ".utf8) + little(16)
        // PCM, one channel, 16 bits.
        file += [1, 0, 1, 0] + little(rate) + little(rate * 2) + [2, 0, 16, 0]
        file += Array("data".utf8) + little(UInt32(bytes.count))
        return file + bytes
    }
}
