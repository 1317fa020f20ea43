import Glibc

/// Cross-correlation by the fast Fourier transform.
enum Correlation {
    /// The shift of `second` against `first` at which the two resemble each other most, in samples: positive when the
    /// content of `first` comes later in `second`. 0 when nothing stands out.
    static func bestShift(_ first: [Float], _ second: [Float]) -> Int {
        guard !first.isEmpty, !second.isEmpty else { return 0 }
        var size = 1
        while size < first.count + second.count { size *= 2 }
        // Two real signals in one complex transform: z = a + ib.
        var real = first + [Float](repeating: 0, count: size - first.count)
        var imaginary = second + [Float](repeating: 0, count: size - second.count)
        transform(&real, &imaginary)
        // conj(A)·B from Z: A = (Z(k) + conj Z(−k))/2, B = (Z(k) − conj Z(−k))/2i.
        var productReal = [Float](repeating: 0, count: size)
        var productImaginary = [Float](repeating: 0, count: size)
        for bin in 0..<size {
            let mirror = bin == 0 ? 0 : size - bin
            let aReal = (real[bin] + real[mirror]) / 2
            let aImaginary = (imaginary[bin] - imaginary[mirror]) / 2
            let bReal = (imaginary[bin] + imaginary[mirror]) / 2
            let bImaginary = (real[mirror] - real[bin]) / 2
            productReal[bin] = aReal * bReal + aImaginary * bImaginary
            // Conjugated, so that the forward transform gives the inverse one's real part.
            productImaginary[bin] = -(aReal * bImaginary - aImaginary * bReal)
        }
        transform(&productReal, &productImaginary)
        var best = 0
        var bestValue: Float = 0
        // Small shifts first: of equal candidates (a tone has many) the nearest wins.
        for distance in 0..<max(first.count, second.count) {
            if distance < second.count, productReal[distance] > bestValue * 1.000_01 {
                bestValue = productReal[distance]
                best = distance
            }
            if distance > 0, distance < first.count, productReal[size - distance] > bestValue * 1.000_01 {
                bestValue = productReal[size - distance]
                best = -distance
            }
        }
        return best
    }

    /// In-place forward transform of a power of two of complex numbers (radix 2, decimation in time).
    private static func transform(_ real: inout [Float], _ imaginary: inout [Float]) {
        let size = real.count
        guard size > 1 else { return }
        var twiddleReal = [Float](repeating: 0, count: size / 2)
        var twiddleImaginary = twiddleReal
        for index in 0..<size / 2 {
            let angle = -2 * Double.pi * Double(index) / Double(size)
            twiddleReal[index] = Float(cos(angle))
            twiddleImaginary[index] = Float(sin(angle))
        }
        real.withUnsafeMutableBufferPointer { real in
            imaginary.withUnsafeMutableBufferPointer { imaginary in
                twiddleReal.withUnsafeBufferPointer { cosines in
                    twiddleImaginary.withUnsafeBufferPointer { sines in
                        butterflies(real, imaginary, cosines, sines)
                    }
                }
            }
        }
    }

    private static func butterflies(
        _ real: UnsafeMutableBufferPointer<Float>, _ imaginary: UnsafeMutableBufferPointer<Float>,
        _ cosines: UnsafeBufferPointer<Float>, _ sines: UnsafeBufferPointer<Float>
    ) {
        let size = real.count
        var reversed = 0
        for index in 1..<size {
            var bit = size >> 1
            while reversed & bit != 0 {
                reversed ^= bit
                bit >>= 1
            }
            reversed ^= bit
            if index < reversed {
                real.swapAt(index, reversed)
                imaginary.swapAt(index, reversed)
            }
        }
        var half = 1
        while half < size {
            let stride = size / (2 * half)
            var start = 0
            while start < size {
                for offset in 0..<half {
                    let low = start + offset
                    let high = low + half
                    let cosine = cosines[offset * stride]
                    let sine = sines[offset * stride]
                    let turnedReal = real[high] * cosine - imaginary[high] * sine
                    let turnedImaginary = real[high] * sine + imaginary[high] * cosine
                    real[high] = real[low] - turnedReal
                    imaginary[high] = imaginary[low] - turnedImaginary
                    real[low] += turnedReal
                    imaginary[low] += turnedImaginary
                }
                start += 2 * half
            }
            half *= 2
        }
    }
}
