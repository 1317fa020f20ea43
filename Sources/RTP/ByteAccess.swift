extension Span<UInt8> {
    /// Two bytes in network order; the caller has checked the length.
    func bigEndian16(at offset: Int) -> UInt16 {
        UInt16(self[offset]) << 8 | UInt16(self[offset + 1])
    }

    /// Four bytes in network order; the caller has checked the length.
    func bigEndian32(at offset: Int) -> UInt32 {
        UInt32(bigEndian16(at: offset)) << 16 | UInt32(bigEndian16(at: offset + 2))
    }
}

extension MutableSpan<UInt8> {
    /// Writes two bytes in network order; the caller has checked the length.
    mutating func setBigEndian16(_ value: UInt16, at offset: Int) {
        self[offset] = UInt8(truncatingIfNeeded: value >> 8)
        self[offset + 1] = UInt8(truncatingIfNeeded: value)
    }

    /// Writes four bytes in network order; the caller has checked the length.
    mutating func setBigEndian32(_ value: UInt32, at offset: Int) {
        setBigEndian16(UInt16(truncatingIfNeeded: value >> 16), at: offset)
        setBigEndian16(UInt16(truncatingIfNeeded: value), at: offset + 2)
    }
}

extension [UInt8] {
    mutating func appendBigEndian(_ value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }

    mutating func appendBigEndian(_ value: UInt32) {
        appendBigEndian(UInt16(truncatingIfNeeded: value >> 16))
        appendBigEndian(UInt16(truncatingIfNeeded: value))
    }
}
