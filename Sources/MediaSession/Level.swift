/// Sound levels.
enum Level {
    /// The root mean square of a frame, 0…1 of full scale.
    static func rootMeanSquare(_ samples: UnsafeBufferPointer<Int16>) -> Double {
        guard !samples.isEmpty else { return 0 }
        var sum: Int64 = 0
        for sample in samples { sum &+= Int64(sample) &* Int64(sample) }
        return (Double(sum) / Double(samples.count)).squareRoot() / 32_768
    }
}
