/// A whole WAV file in memory, for analysis: each channel as 16-bit samples at 48 kHz. Not for the media thread.
public struct WAVFile: Sendable {
    /// How the file stores its samples.
    public var format: WAVFormat
    /// The samples of each channel at 48 kHz.
    public var channels: [[Int16]]

    /// Reads a file of up to 1 GB.
    ///
    /// - Throws: `.missing` when there is no such file, `.unusable` when it is no PCM audio.
    public init(path: String) throws(AudioError) {
        let file = try InputFile(path: path)
        let format = try WAVReader.readFormat(of: file)
        guard format.dataBytes <= 1 << 30 else {
            throw AudioError(.unusable, "cannot analyse '\(path)': it is larger than 1 GB")
        }
        let bytes = file.bytes(at: format.dataOffset, length: format.dataBytes)
        self.format = format
        channels = []
        for channel in 0..<format.channels {
            let samples = bytes.withUnsafeBytes { raw in
                (0..<raw.count / format.bytesPerFrame).map {
                    WAVSamples.sample(raw, format: format, frame: $0, channel: channel)
                }
            }
            channels.append(try Self.resampled(samples, from: format.sampleRate))
        }
    }

    private static func resampled(_ samples: [Int16], from rate: Int) throws(AudioError) -> [Int16] {
        guard rate != AudioFormat.sampleRate else { return samples }
        let resampler = try Resampler(from: rate, to: AudioFormat.sampleRate, alignsStart: true)
        let padded = samples + [Int16](repeating: 0, count: resampler.inputLatency)
        let expected = samples.count * AudioFormat.sampleRate / rate
        return [Int16](unsafeUninitializedCapacity: expected) { output, count in
            padded.withUnsafeBufferPointer { input in
                count = resampler.process(input, into: output).produced
            }
        }
    }
}
