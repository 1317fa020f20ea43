import Glibc

/// The windowed comparison behind `SignalMatch`, at 8 kHz.
struct SignalWindows {
    static let rate = 8_000
    private static let ratio = AudioFormat.sampleRate / rate
    /// 400 ms: several syllables, so that unrelated speech does not fit by chance.
    private static let windowSamples = 3_200
    /// 10 ms, the unit of gaps.
    private static let frameSamples = 80
    private static let shortestGapFrames = 2
    /// How far a window may lie from where the one before it was: 20 ms, one packet.
    private static let wideSearch = 160
    private static let narrowSearch = 8
    /// A window this similar needs no wide search.
    private static let goodCorrelation: Float = 0.9
    /// A window this similar moves the expectation for the next one.
    private static let trustedCorrelation: Float = 0.6
    /// Below this level a reference is silent (−60 dBFS), and anything heard is silent (−66 dBFS).
    private static let quietReference: Float = 33
    private static let quietHeard: Float = 16

    let sent: UnsafeBufferPointer<Float>
    let received: UnsafeBufferPointer<Float>
    let shift: Int

    /// Low-pass (two moving averages) and every sixth sample.
    static func decimated(_ samples: [Int16]) -> [Float] {
        let count = samples.count / ratio
        guard count > 1 else { return [] }
        return samples.withUnsafeBufferPointer { samples in
            var averages = [Float](repeating: 0, count: count * ratio - ratio + 1)
            var sum = 0
            for index in 0..<ratio { sum += Int(samples[index]) }
            averages[0] = Float(sum) / Float(ratio)
            for index in 1..<averages.count {
                sum += Int(samples[index + ratio - 1]) - Int(samples[index - 1])
                averages[index] = Float(sum) / Float(ratio)
            }
            return (0..<count - 1).map { sample in
                var sum: Float = 0
                for index in sample * ratio..<min((sample + 1) * ratio, averages.count) { sum += averages[index] }
                return sum / Float(ratio)
            }
        }
    }

    func match() -> SignalMatch {
        // What is 30 dB below the average of the sounding parts is a pause of the speaker.
        let threshold = max(Self.quietReference, Self.rms(sent, 0, sent.count) / 18)
        var correlations = 0.0
        var windows = 0
        var lag = shift
        var energies = (sent: 0.0, received: 0.0)
        var silentFrames: [(start: Int, isSilent: Bool)] = []
        var start = 0
        while start + Self.windowSamples <= sent.count {
            defer { start += Self.windowSamples }
            guard Self.rms(sent, start, Self.windowSamples) > threshold else { continue }
            guard start + lag >= 0, start + lag + Self.windowSamples <= received.count else { continue }
            let (found, correlation) = bestLag(at: start, near: lag)
            if correlation >= Self.trustedCorrelation { lag = found }
            correlations += Double(max(0, correlation))
            windows += 1
            compareFrames(
                from: start, lag: correlation >= Self.trustedCorrelation ? found : lag, threshold: threshold,
                energies: &energies, frames: &silentFrames)
        }
        guard windows > 0 else { return .none }
        let level: Double =
            if energies.received <= 0 || energies.sent <= 0 { -120 } else {
                min(120, max(-120, 10 * log10(energies.received / energies.sent)))
            }
        return SignalMatch(
            score: correlations / Double(windows), offset: Double(shift) / Double(Self.rate), levelDifference: level,
            comparedSeconds: Double(windows * Self.windowSamples) / Double(Self.rate), gaps: Self.gaps(silentFrames))
    }

    /// Sorts the frames of a window into heard and silent, and sums the energy of those that were heard.
    private func compareFrames(
        from start: Int, lag: Int, threshold: Float, energies: inout (sent: Double, received: Double),
        frames: inout [(start: Int, isSilent: Bool)]
    ) {
        for frame in stride(from: start, to: start + Self.windowSamples, by: Self.frameSamples) {
            let position = frame + lag
            guard position >= 0, position + Self.frameSamples <= received.count else { continue }
            let expected = Self.rms(sent, frame, Self.frameSamples)
            guard expected > threshold else {
                frames.append((position, false))
                continue
            }
            let actual = Self.rms(received, position, Self.frameSamples)
            let isSilent = actual < min(Self.quietHeard, expected / 30)
            frames.append((position, isSilent))
            if !isSilent {
                energies.sent += Double(expected) * Double(expected)
                energies.received += Double(actual) * Double(actual)
            }
        }
    }

    private static func gaps(_ frames: [(start: Int, isSilent: Bool)]) -> [SignalMatch.Gap] {
        var gaps: [SignalMatch.Gap] = []
        var first: Int?
        var length = 0
        func close() {
            if let first, length >= shortestGapFrames {
                gaps.append(
                    SignalMatch.Gap(
                        start: Double(first) / Double(rate), duration: Double(length * frameSamples) / Double(rate)))
            }
        }
        var previousEnd: Int?
        for frame in frames {
            // Windows may have shifted a little against each other; more than a window apart is another gap.
            let continues = previousEnd.map { abs(frame.start - $0) <= wideSearch } ?? false
            if frame.isSilent && (first == nil || continues) {
                if first == nil { first = frame.start }
                length += 1
            } else {
                close()
                first = frame.isSilent ? frame.start : nil
                length = frame.isSilent ? 1 : 0
            }
            previousEnd = frame.start + frameSamples
        }
        close()
        return gaps
    }

    /// The shift near `lag` at which the window at `start` correlates best.
    private func bestLag(at start: Int, near lag: Int) -> (lag: Int, correlation: Float) {
        let near = search(at: start, around: lag, radius: Self.narrowSearch)
        if near.correlation >= Self.goodCorrelation { return near }
        return search(at: start, around: lag, radius: Self.wideSearch)
    }

    private func search(at start: Int, around lag: Int, radius: Int) -> (lag: Int, correlation: Float) {
        let length = Self.windowSamples
        let lowest = max(lag - radius, -start)
        let highest = min(lag + radius, received.count - start - length)
        guard lowest <= highest, let reference = sent.baseAddress, let heard = received.baseAddress else {
            return (lag, 0)
        }
        let window = reference + start
        let energy = Self.product(window, window, length)
        var best = (lag: lag, correlation: -Float.infinity)
        var heardEnergy = Self.product(heard + start + lowest, heard + start + lowest, length)
        for candidate in lowest...highest {
            let position = start + candidate
            let divisor = (energy * max(heardEnergy, 1)).squareRoot()
            let correlation = Self.product(window, heard + position, length) / max(divisor, 1)
            if correlation > best.correlation { best = (candidate, correlation) }
            // Slides the energy along instead of summing it anew.
            if position + length < received.count {
                let entering = received[position + length]
                heardEnergy += entering * entering - received[position] * received[position]
            }
        }
        return (best.lag, betweenSamples(at: start, lag: best.lag, energy: energy, best: best.correlation))
    }

    /// The correlation at the best delay between two samples of 8 kHz: half a sample off costs high tones half of
    /// their correlation. The correlation of signals is itself band-limited, so it is interpolated (windowed sinc).
    private func betweenSamples(at start: Int, lag: Int, energy: Float, best: Float) -> Float {
        let reach = 4
        let length = Self.windowSamples
        guard let reference = sent.baseAddress, let heard = received.baseAddress, start + lag >= reach,
            start + lag + length + reach <= received.count
        else { return min(best, 1) }
        let window = reference + start
        let position = heard + start + lag
        let divisor = max((energy * max(Self.product(position, position, length), 1)).squareRoot(), 1)
        var highest = best
        var peaks = [Float](repeating: 0, count: 8)
        for shift in -reach...reach {
            let correlation = Self.product(window, position + shift, length) / divisor
            for step in 1..<8 {
                // Delays of −½ to ½ sample.
                let distance = Double(shift) - Double(step - 4) / 8
                let angle = Double.pi * distance
                let sinc = distance == 0 ? 1 : sin(angle) / angle
                peaks[step] += correlation * Float(sinc * (0.5 + 0.5 * cos(angle / Double(reach + 1))))
            }
        }
        for peak in peaks { highest = max(highest, peak) }
        return min(highest, 1)
    }

    private static func product(_ a: UnsafePointer<Float>, _ b: UnsafePointer<Float>, _ count: Int) -> Float {
        // Eight sums, so that the compiler may use vector instructions.
        var sums = SIMD8<Float>.zero
        var index = 0
        while index + 8 <= count {
            let left = UnsafeRawPointer(a + index).loadUnaligned(as: SIMD8<Float>.self)
            let right = UnsafeRawPointer(b + index).loadUnaligned(as: SIMD8<Float>.self)
            sums += left * right
            index += 8
        }
        var sum = sums.sum()
        while index < count {
            sum += a[index] * b[index]
            index += 1
        }
        return sum
    }

    private static func rms(_ samples: UnsafeBufferPointer<Float>, _ start: Int, _ count: Int) -> Float {
        guard let base = samples.baseAddress, count > 0 else { return 0 }
        return (product(base + start, base + start, count) / Float(count)).squareRoot()
    }
}
