/// Waveform concealment for codecs without their own, after the idea of G.711 appendix I: a lost frame is filled with
/// the last pitch period, repeated, at falling volume; the first good frame afterwards is faded in.
///
/// Works at 8 kHz on a history that its owner allocates.
struct PeriodRepeater {
    /// Samples of the past that are kept: 40 ms.
    static let historySamples = 320
    /// Pitch periods looked for: 5 to 15 ms (66 to 200 Hz; shorter ones fit several times).
    private static let periods = 40...120
    /// Samples until silence: 60 ms.
    private static let fadeSamples = 480
    /// Samples over which real sound is faded in again: 4 ms.
    private static let crossfadeSamples = 32

    private var period = 0
    private var position = 0
    private var concealed = 0

    /// Takes note of good samples; after a loss, blends them with where the concealment had got to.
    mutating func received(
        _ samples: UnsafeMutableBufferPointer<Int16>, history: UnsafeMutableBufferPointer<Int16>
    ) {
        if concealed > 0 {
            let length = min(Self.crossfadeSamples, samples.count)
            for index in 0..<length {
                let old = Int(next(history)) * (length - index)
                samples[index] = Int16(clamping: (old + Int(samples[index]) * index) / length)
            }
            concealed = 0
        }
        let kept = min(samples.count, history.count)
        let moved = history.count - kept
        for index in 0..<moved { history[index] = history[index + kept] }
        for index in 0..<kept { history[moved + index] = samples[samples.count - kept + index] }
    }

    /// Fills the buffer with what might have come.
    mutating func conceal(
        _ samples: UnsafeMutableBufferPointer<Int16>, history: UnsafeMutableBufferPointer<Int16>
    ) {
        if concealed == 0 {
            period = Self.pitchPeriod(of: history)
            position = 0
        }
        for index in samples.indices { samples[index] = next(history) }
    }

    private mutating func next(_ history: UnsafeMutableBufferPointer<Int16>) -> Int16 {
        guard concealed < Self.fadeSamples, period > 0 else {
            concealed = max(concealed, 1)
            return 0
        }
        let sample = Int(history[history.count - period + position])
        position = position + 1 == period ? 0 : position + 1
        concealed += 1
        return Int16(clamping: sample * (Self.fadeSamples - concealed) / Self.fadeSamples)
    }

    /// The lag at which the last 15 ms resemble the past most.
    private static func pitchPeriod(of history: UnsafeMutableBufferPointer<Int16>) -> Int {
        let window = periods.upperBound
        let end = history.count
        var best = periods.upperBound
        var bestScore = -Double.infinity
        for lag in periods {
            var product = 0
            var energy = 1
            for index in (end - window)..<end {
                let past = Int(history[index - lag])
                product += Int(history[index]) * past
                energy += past * past
            }
            let score = product > 0 ? Double(product) * Double(product) / Double(energy) : 0
            if score > bestScore {
                best = lag
                bestScore = score
            }
        }
        return best
    }
}
