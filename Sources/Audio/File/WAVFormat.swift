/// How the samples of a WAV file are stored.
public struct WAVFormat: Equatable, Sendable {
    /// The encodings that are read.
    public enum Encoding: Equatable, Sendable {
        /// Unsigned 8 bit, signed 16, 24 or 32 bit, by the number of bits.
        case integer
        /// IEEE 754, 32 or 64 bit.
        case float
    }

    /// How a sample is written.
    public var encoding: Encoding
    /// Bits in a sample: 8, 16, 24, 32 or 64.
    public var bitsPerSample: Int
    /// Frames a second, 8,000 to 192,000.
    public var sampleRate: Int
    /// Channels, 1 to 8.
    public var channels: Int
    /// Where the first sample lies in the file, in bytes.
    public var dataOffset: Int
    /// Bytes of samples, a whole number of frames.
    public var dataBytes: Int

    /// Bytes in a frame (one sample for each channel).
    public var bytesPerFrame: Int { channels * bitsPerSample / 8 }
    /// Frames in the file.
    public var frames: Int { dataBytes / max(bytesPerFrame, 1) }
    /// Playing time in seconds.
    public var seconds: Double { Double(frames) / Double(sampleRate) }
}
