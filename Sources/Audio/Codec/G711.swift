/// The two laws of ITU-T G.711: 8 bits for each sample at 8 kHz.
public enum G711: String, Sendable, CaseIterable {
    /// µ-law, `PCMU`, static RTP payload type 0.
    case muLaw
    /// A-law, `PCMA`, static RTP payload type 8.
    case aLaw

    /// The byte that stands for silence.
    public var silence: UInt8 { self == .muLaw ? 0xFF : 0xD5 }

    /// Encodes one 16-bit sample.
    @inline(__always)
    public func encode(_ sample: Int16) -> UInt8 {
        Tables.encoder(self)[Int(UInt16(bitPattern: sample) >> 2)]
    }

    /// Decodes one byte to 16 bits.
    @inline(__always)
    public func decode(_ byte: UInt8) -> Int16 {
        Tables.decoder(self)[Int(byte)]
    }

    /// Encodes samples at 8 kHz; returns how many, the shorter of the two buffers.
    public func encode(_ samples: UnsafeBufferPointer<Int16>, into bytes: UnsafeMutableBufferPointer<UInt8>) -> Int {
        let table = Tables.encoder(self)
        let count = min(samples.count, bytes.count)
        for index in 0..<count { bytes[index] = table[Int(UInt16(bitPattern: samples[index]) >> 2)] }
        return count
    }

    /// Decodes to samples at 8 kHz; returns how many, the shorter of the two buffers.
    public func decode(_ bytes: UnsafeBufferPointer<UInt8>, into samples: UnsafeMutableBufferPointer<Int16>) -> Int {
        let table = Tables.decoder(self)
        let count = min(samples.count, bytes.count)
        for index in 0..<count { samples[index] = table[Int(bytes[index])] }
        return count
    }
}

/// Tables made once from the definition of the laws: 2 × 256 decoded values, 2 × 16,384 codes (for the top 14 bits of
/// a sample, which is all that µ-law resolves; A-law resolves 13).
private enum Tables {
    static let muLawDecoder: [Int16] = (0...255).map { expandMuLaw(UInt8($0)) }
    static let aLawDecoder: [Int16] = (0...255).map { expandALaw(UInt8($0)) }
    static let muLawEncoder: [UInt8] = codes(compressMuLaw)
    static let aLawEncoder: [UInt8] = codes(compressALaw)

    @inline(__always)
    static func decoder(_ law: G711) -> [Int16] { law == .muLaw ? muLawDecoder : aLawDecoder }
    @inline(__always)
    static func encoder(_ law: G711) -> [UInt8] { law == .muLaw ? muLawEncoder : aLawEncoder }

    static func codes(_ compress: (Int) -> UInt8) -> [UInt8] {
        (0...0x3FFF).map { compress(Int(Int16(truncatingIfNeeded: $0 << 2) >> 2)) }
    }

    /// G.711 table 2: sign, segment and step, all bits inverted; the 14-bit value is ((2 step + 33) << segment) − 33.
    static func expandMuLaw(_ byte: UInt8) -> Int16 {
        let code = ~byte
        let magnitude = ((2 * Int(code & 0x0F) + 33) << Int((code >> 4) & 0x07)) - 33
        return Int16((code & 0x80 != 0 ? -magnitude : magnitude) * 4)
    }

    /// G.711 table 1: even bits inverted; the 13-bit value is step × 2 + 1, with the leading one from segment 1 on.
    static func expandALaw(_ byte: UInt8) -> Int16 {
        let code = byte ^ 0x55
        let segment = Int((code >> 4) & 0x07)
        let mantissa = 2 * Int(code & 0x0F) + 1
        let magnitude = segment == 0 ? mantissa : (mantissa + 32) << (segment - 1)
        return Int16((code & 0x80 != 0 ? magnitude : -magnitude) * 8)
    }

    /// The µ-law code of a 14-bit value. Negative values mirror at −½ (one's complement), as ITU-T G.191 does it.
    static func compressMuLaw(_ value: Int) -> UInt8 {
        // The bias of 33 makes the decision values powers of two.
        let magnitude = min(value < 0 ? ~value : value, 8_158) + 33
        let segment = Int.bitWidth - 6 - magnitude.leadingZeroBitCount
        let step = (magnitude >> (segment + 1)) & 0x0F
        return ~(UInt8(segment << 4 | step) | (value < 0 ? 0x80 : 0))
    }

    /// The A-law code of a 14-bit value, of which 13 bits count.
    static func compressALaw(_ value: Int) -> UInt8 {
        let scaled = value >> 1
        let magnitude = min(scaled < 0 ? ~scaled : scaled, 4_095)
        let sign: UInt8 = scaled < 0 ? 0 : 0x80
        // Segments 0 and 1 share one step size, so the segment number falls out of the division.
        guard magnitude >= 64 else { return (UInt8(magnitude >> 1) | sign) ^ 0x55 }
        let segment = Int.bitWidth - 5 - magnitude.leadingZeroBitCount
        return (UInt8(segment << 4 | (magnitude >> segment) & 0x0F) | sign) ^ 0x55
    }
}
