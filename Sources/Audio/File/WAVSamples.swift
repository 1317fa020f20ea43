/// Turns the bytes of WAV frames into 16-bit samples.
enum WAVSamples {
    /// Mixes frames down to mono: the average of the channels. Returns how many frames were converted.
    static func mono(
        _ bytes: UnsafeRawBufferPointer, format: WAVFormat, into output: UnsafeMutableBufferPointer<Int16>
    ) -> Int {
        let frames = min(bytes.count / format.bytesPerFrame, output.count)
        let channels = format.channels
        switch (format.encoding, format.bitsPerSample) {
        case (.integer, 16) where channels == 1:
            for frame in 0..<frames { output[frame] = integer16(bytes, at: frame * 2) }
        case (.integer, let bits):
            let width = bits / 8
            for frame in 0..<frames {
                var sum = 0
                for channel in 0..<channels {
                    sum += Int(integer(bytes, at: (frame * channels + channel) * width, width: width))
                }
                output[frame] = Int16(clamping: sum / channels)
            }
        case (.float, let bits):
            let width = bits / 8
            for frame in 0..<frames {
                var sum = 0.0
                for channel in 0..<channels {
                    sum += float(bytes, at: (frame * channels + channel) * width, width: width)
                }
                output[frame] = int16(sum / Double(channels))
            }
        }
        return frames
    }

    /// One sample of one channel.
    static func sample(_ bytes: UnsafeRawBufferPointer, format: WAVFormat, frame: Int, channel: Int) -> Int16 {
        let width = format.bitsPerSample / 8
        let offset = (frame * format.channels + channel) * width
        return switch format.encoding {
        case .integer: integer(bytes, at: offset, width: width)
        case .float: int16(float(bytes, at: offset, width: width))
        }
    }

    @inline(__always)
    private static func integer16(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int16 {
        Int16(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int16.self))
    }

    /// The top 16 bits of an integer sample of `width` bytes; 8-bit samples are unsigned.
    @inline(__always)
    private static func integer(_ bytes: UnsafeRawBufferPointer, at offset: Int, width: Int) -> Int16 {
        width == 1 ? Int16(Int(bytes[offset]) - 128) << 8 : integer16(bytes, at: offset + width - 2)
    }

    @inline(__always)
    private static func float(_ bytes: UnsafeRawBufferPointer, at offset: Int, width: Int) -> Double {
        if width == 4 {
            let pattern = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
            return Double(Float(bitPattern: pattern))
        }
        return Double(bitPattern: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
    }

    /// −1…1 to 16 bits; what is no number becomes silence.
    @inline(__always)
    private static func int16(_ value: Double) -> Int16 {
        guard value == value else { return 0 }
        return Int16(max(-32_768, min(32_767, (value * 32_768).rounded())))
    }
}
