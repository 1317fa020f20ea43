/// Reads the chunks of a RIFF/WAVE file up to the samples. Everything in it is untrusted: sizes are checked against
/// the file, and lies about the length of the samples are mended, since recordings that were never finished have them.
struct WAVHeaderParser {
    /// Why a file is refused; the caller puts the file's name before it.
    struct Failure: Error, Equatable {
        var reason: String
    }

    private static let maximumChunks = 1_000

    /// Finds format and samples.
    ///
    /// - Parameters:
    ///   - fileSize: Length of the file in bytes.
    ///   - read: Gives up to `length` bytes at `offset`; fewer at the end of the file.
    static func parse(
        fileSize: Int, read: (_ offset: Int, _ length: Int) -> [UInt8]
    ) throws(Failure) -> WAVFormat {
        let head = read(0, 12)
        guard head.count == 12, tag(head, at: 8) == "WAVE" else {
            throw Failure(reason: fileSize == 0 ? "the file is empty" : "it is no RIFF/WAVE file")
        }
        let isRF64 = tag(head, at: 0) == "RF64"
        guard isRF64 || tag(head, at: 0) == "RIFF" else { throw Failure(reason: "it is no RIFF/WAVE file") }
        let riffSize = Int(littleEndian32(head, at: 4))
        var format: WAVFormat?
        var longSize: Int?
        var offset = 12
        for _ in 0..<maximumChunks {
            let header = read(offset, 8)
            guard header.count == 8 else { break }
            let size = Int(littleEndian32(header, at: 4))
            let body = offset + 8
            switch tag(header, at: 0) {
            case "fmt ":
                format = try parseFormat(read(body, min(size, 40)))
            case "ds64":
                // RF64 (EBU Tech 3306): sizes of 64 bits, the samples' at offset 8.
                let sizes = read(body, min(size, 16))
                if sizes.count == 16 {
                    let low = UInt64(littleEndian32(sizes, at: 8))
                    longSize = Int(exactly: UInt64(littleEndian32(sizes, at: 12)) << 32 | low)
                }
            case "data":
                guard var found = format else { throw Failure(reason: "it has samples before a format (fmt chunk)") }
                let available = fileSize - body
                let isFinished = riffSize == fileSize - 8
                var bytes = size
                if size == 0xFFFF_FFFF { bytes = isRF64 ? longSize ?? available : available }
                if size == 0 && !isFinished { bytes = available }
                bytes = min(bytes, available)
                found.dataOffset = body
                found.dataBytes = bytes - bytes % found.bytesPerFrame
                guard found.dataBytes > 0 else { throw Failure(reason: "it holds no samples") }
                return found
            default:
                break
            }
            // Chunks are padded to even lengths; `size` has 32 bits, so the sum cannot overflow.
            offset = body + size + size % 2
            if offset >= fileSize { break }
        }
        throw Failure(reason: format == nil ? "it has no format (fmt chunk)" : "it holds no samples (data chunk)")
    }

    private static func parseFormat(_ bytes: [UInt8]) throws(Failure) -> WAVFormat {
        guard bytes.count >= 16 else { throw Failure(reason: "its format (fmt chunk) is cut short") }
        var code = littleEndian16(bytes, at: 0)
        let channels = Int(littleEndian16(bytes, at: 2))
        let rate = Int(littleEndian32(bytes, at: 4))
        let blockAlign = Int(littleEndian16(bytes, at: 12))
        let bits = Int(littleEndian16(bytes, at: 14))
        if code == 0xFFFE {
            // WAVE_FORMAT_EXTENSIBLE: the real code is the start of the sub-format's GUID.
            guard bytes.count >= 40 else { throw Failure(reason: "its extensible format is cut short") }
            code = littleEndian16(bytes, at: 24)
        }
        let encoding: WAVFormat.Encoding
        switch (code, bits) {
        case (1, 8), (1, 16), (1, 24), (1, 32): encoding = .integer
        case (3, 32), (3, 64): encoding = .float
        case (1, _), (3, _): throw Failure(reason: "samples of \(bits) bits are not supported")
        default: throw Failure(reason: "its samples are not PCM (format code \(code))")
        }
        guard (1...8).contains(channels) else {
            throw Failure(reason: "\(channels) channels are not supported (1 to 8)")
        }
        guard (8_000...192_000).contains(rate) else {
            throw Failure(reason: "a rate of \(rate) Hz is not supported (8000 to 192000)")
        }
        guard blockAlign == channels * bits / 8 else { throw Failure(reason: "its frame size is inconsistent") }
        return WAVFormat(
            encoding: encoding, bitsPerSample: bits, sampleRate: rate, channels: channels, dataOffset: 0, dataBytes: 0)
    }

    private static func tag(_ bytes: [UInt8], at offset: Int) -> String {
        String(decoding: bytes[offset..<offset + 4], as: UTF8.self)
    }

    private static func littleEndian16(_ bytes: [UInt8], at offset: Int) -> UInt16 {
        UInt16(bytes[offset]) | UInt16(bytes[offset + 1]) << 8
    }

    private static func littleEndian32(_ bytes: [UInt8], at offset: Int) -> UInt32 {
        UInt32(littleEndian16(bytes, at: offset)) | UInt32(littleEndian16(bytes, at: offset + 2)) << 16
    }
}
