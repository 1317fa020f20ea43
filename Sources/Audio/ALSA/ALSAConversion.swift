internal import CALSA

/// Converts between the frames of a device and 16-bit mono.
struct ALSAConversion: Equatable, Sendable {
    /// The sample formats that are used, best first, in the machine's byte order.
    enum Encoding: CaseIterable, Sendable {
        case int16, int32, float32

        var format: snd_pcm_format_t {
            switch self {
            case .int16: SND_PCM_FORMAT_S16
            case .int32: SND_PCM_FORMAT_S32
            case .float32: SND_PCM_FORMAT_FLOAT
            }
        }

        var name: String { snd_pcm_format_name(format).map { String(cString: $0) } ?? "unknown" }

        var bytes: Int { self == .int16 ? 2 : 4 }
    }

    var encoding: Encoding
    var channels: Int

    var bytesPerFrame: Int { encoding.bytes * channels }

    /// Averages the channels of `frames` frames.
    func toMono(_ source: UnsafeRawPointer, frames: Int, into output: UnsafeMutablePointer<Int16>) {
        switch encoding {
        case .int16:
            let samples = source.assumingMemoryBound(to: Int16.self)
            if channels == 1 {
                output.update(from: samples, count: frames)
                return
            }
            for frame in 0..<frames {
                var sum = 0
                for channel in 0..<channels { sum += Int(samples[frame * channels + channel]) }
                output[frame] = Int16(clamping: sum / channels)
            }
        case .int32:
            let samples = source.assumingMemoryBound(to: Int32.self)
            for frame in 0..<frames {
                var sum = 0
                for channel in 0..<channels { sum += Int(samples[frame * channels + channel] >> 16) }
                output[frame] = Int16(clamping: sum / channels)
            }
        case .float32:
            let samples = source.assumingMemoryBound(to: Float.self)
            for frame in 0..<frames {
                var sum: Float = 0
                for channel in 0..<channels { sum += samples[frame * channels + channel] }
                let value = (sum / Float(channels) * 32_768).rounded()
                // A driver may hand out what is no number.
                output[frame] = value == value ? Int16(max(-32_768, min(32_767, value))) : 0
            }
        }
    }

    /// Writes each sample to all channels.
    func fromMono(_ samples: UnsafePointer<Int16>, frames: Int, into target: UnsafeMutableRawPointer) {
        switch encoding {
        case .int16:
            let output = target.assumingMemoryBound(to: Int16.self)
            for frame in 0..<frames {
                for channel in 0..<channels { output[frame * channels + channel] = samples[frame] }
            }
        case .int32:
            let output = target.assumingMemoryBound(to: Int32.self)
            for frame in 0..<frames {
                for channel in 0..<channels { output[frame * channels + channel] = Int32(samples[frame]) << 16 }
            }
        case .float32:
            let output = target.assumingMemoryBound(to: Float.self)
            for frame in 0..<frames {
                for channel in 0..<channels { output[frame * channels + channel] = Float(samples[frame]) / 32_768 }
            }
        }
    }
}
