/// Numbers as SDP writes them: decimal digits and nothing else, so no sign, space or prefix.
enum SDPNumber {
    /// Any number of digits; what a `UInt64` cannot hold becomes its greatest value.
    static func saturating(_ text: some StringProtocol) -> UInt64? {
        guard !text.isEmpty else { return nil }
        var value: UInt64 = 0
        var isSaturated = false
        for byte in text.utf8 {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(byte &- 0x30))
            if overflow || carry { isSaturated = true }
            value = sum
        }
        return isSaturated ? .max : value
    }

    /// A number within `range`, else nil.
    static func integer(_ text: some StringProtocol, in range: ClosedRange<Int>) -> Int? {
        guard let value = saturating(text).flatMap({ Int(exactly: $0) }), range.contains(value) else { return nil }
        return value
    }

    /// A port, 0 to 65535.
    static func port(_ text: some StringProtocol) -> UInt16? {
        saturating(text).flatMap { UInt16(exactly: $0) }
    }

    /// A payload type, 0 to 127.
    static func payloadType(_ text: some StringProtocol) -> UInt8? {
        integer(text, in: 0...127).flatMap { UInt8(exactly: $0) }
    }
}

extension StringProtocol {
    /// The text without spaces and tabs around it.
    var trimmed: SubSequence {
        var rest = self[...]
        while let first = rest.first, first == " " || first == "\t" { rest = rest.dropFirst() }
        while let last = rest.last, last == " " || last == "\t" { rest = rest.dropLast() }
        return rest
    }
}
