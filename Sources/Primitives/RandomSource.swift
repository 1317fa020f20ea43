/// Where a protocol core takes its random numbers from: the system in production, a seed in simulations.
///
/// `system` is the kernel's cryptographic generator, so identifiers that must not be guessed (tags, branches,
/// SSRCs) may come from here. `seeded` repeats the same sequence for the same seed (SplitMix64) and is for tests.
public enum RandomSource: RandomNumberGenerator, Sendable {
    /// The kernel's generator.
    case system
    /// A repeatable sequence; the value is the generator's state.
    case seeded(UInt64)

    /// The next 64 random bits.
    public mutating func next() -> UInt64 {
        switch self {
        case .system:
            var generator = SystemRandomNumberGenerator()
            return generator.next()
        case .seeded(let state):
            let advanced = state &+ 0x9E37_79B9_7F4A_7C15
            self = .seeded(advanced)
            var mixed = advanced
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    /// Lower-case hexadecimal digits, `bits` random bits rounded up to whole digits.
    public mutating func hexadecimal(bits: Int) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for _ in 0..<((bits + 3) / 4) {
            text.append(digits[Int(next() & 0xF)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// A random UUID in lower case (RFC 9562, version 4).
    public mutating func uuid() -> String {
        var digits = Array(hexadecimal(bits: 128))
        digits[12] = "4"
        digits[16] = ["8", "9", "a", "b"][Int(next() & 3)]
        let text = String(digits)
        var groups: [Substring] = []
        var rest = text[...]
        for length in [8, 4, 4, 4, 12] {
            groups.append(rest.prefix(length))
            rest = rest.dropFirst(length)
        }
        return groups.joined(separator: "-")
    }

    /// A number in [0, 1).
    public mutating func unitInterval() -> Double {
        Double(next() >> 11) * 0x1p-53
    }
}
