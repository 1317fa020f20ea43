import Audio
import Primitives

/// A file name of a test's own in the temporary directory; removed by `remove`.
final class Scratch: Sendable {
    let path: String

    init(_ name: String) {
        var random = RandomSource.system
        path = "/tmp/sinchrtc-test-" + random.hexadecimal(bits: 64) + "-" + name + ".wav"
    }

    deinit {
        removeFile(path)
    }
}

/// Writes a WAV file with a tone, mono, 48 kHz.
func writeTone(_ frequency: Double, seconds: Double, to path: String) throws {
    let writer = try WAVWriter(path: path, channels: 1)
    let source = ToneSource(frequency: frequency)
    for _ in 0..<Int(seconds * 100) {
        let block = [Int16](unsafeUninitializedCapacity: AudioFormat.blockFrames) { buffer, count in
            let whole = UnsafeMutableBufferPointer(rebasing: buffer[0..<AudioFormat.blockFrames])
            _ = source.read(into: whole)
            count = whole.count
        }
        block.withUnsafeBufferPointer { writer.write($0) }
    }
    writer.stop()
}
