import Glibc
import Primitives
import Testing

@testable import Audio

/// Builds WAV files chunk by chunk.
struct WAVBuilder {
    var bytes: [UInt8] = []

    static func number<Value: FixedWidthInteger>(_ value: Value) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }

    static func format(
        code: UInt16 = 1, channels: Int = 1, rate: Int = 48_000, bits: Int = 16, extensible: Bool = false
    ) -> [UInt8] {
        let align = channels * bits / 8
        var body = number(extensible ? UInt16(0xFFFE) : code) + number(UInt16(truncatingIfNeeded: channels))
        body += number(UInt32(truncatingIfNeeded: rate)) + number(UInt32(truncatingIfNeeded: rate * align))
        body += number(UInt16(truncatingIfNeeded: align)) + number(UInt16(truncatingIfNeeded: bits))
        if extensible {
            body += number(UInt16(22)) + number(UInt16(bits)) + number(UInt32(0)) + number(code)
            body += [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]
        }
        return body
    }

    static func chunk(_ tag: String, _ body: [UInt8], size: UInt32? = nil) -> [UInt8] {
        Array(tag.utf8) + number(size ?? UInt32(body.count)) + body + (body.count % 2 == 1 ? [0] : [])
    }

    /// A whole file; `riffSize` nil: the right one.
    static func file(_ chunks: [[UInt8]], riffSize: UInt32? = nil, riff: String = "RIFF") -> [UInt8] {
        let body = Array("WAVE".utf8) + chunks.flatMap { $0 }
        return Array(riff.utf8) + number(riffSize ?? UInt32(body.count)) + body
    }

    static func samples(_ values: [Int16]) -> [UInt8] { values.flatMap { number($0) } }
}

@Suite struct WAVReaderTests {
    typealias W = WAVBuilder
    let scratch = Scratch()

    func read(_ bytes: [UInt8], loops: Bool = false) throws -> [Int16] {
        let reader = try WAVReader(path: scratch.write(bytes, to: "in.wav"), loops: loops)
        reader.start()
        return reader.everything()
    }

    @Test func sixteenBitIsExact() throws {
        let samples = babble(seconds: 0.31, seed: 1)
        #expect(try read(W.file([W.chunk("fmt ", W.format()), W.chunk("data", W.samples(samples))])) == samples)
    }

    @Test func everyEncodingGivesTheSame() throws {
        let samples: [Int16] = [0, 256, -256, 16_384, -16_384, 32_512, -32_768, 1_280]
        let encodings: [(code: UInt16, bits: Int, encode: (Int16) -> [UInt8])] = [
            (1, 8, { [UInt8(truncatingIfNeeded: (Int($0) >> 8) + 128)] }),
            (1, 24, { W.number(Int32($0) << 8).dropLast() + [] }),
            (1, 32, { W.number(Int32($0) << 16) }),
            (3, 32, { W.number((Float($0) / 32_768).bitPattern) }),
            (3, 64, { W.number((Double($0) / 32_768).bitPattern) }),
        ]
        for (code, bits, encode) in encodings {
            for extensible in [false, true] {
                let format = W.format(code: code, bits: bits, extensible: extensible)
                let file = W.file([W.chunk("fmt ", format), W.chunk("data", samples.flatMap(encode))])
                #expect(try read(file) == samples, "\(bits) bits, code \(code), extensible \(extensible)")
            }
        }
    }

    @Test func floatsOutOfRangeAreClamped() throws {
        let values: [Float] = [.nan, .infinity, -.infinity, 5, -5, .signalingNaN, 1e-30]
        let file = W.file([
            W.chunk("fmt ", W.format(code: 3, bits: 32)), W.chunk("data", values.flatMap { W.number($0.bitPattern) }),
        ])
        #expect(try read(file) == [0, 32_767, -32_768, 32_767, -32_768, 0, 0])
    }

    @Test(arguments: 1...8)
    func channelsAreAveraged(channels: Int) throws {
        let frame = (1...channels).map { Int16($0 * 1_000) }
        let data = (0..<700).flatMap { _ in frame }
        let file = W.file([W.chunk("fmt ", W.format(channels: channels)), W.chunk("data", W.samples(data))])
        #expect(try read(file) == [Int16](repeating: Int16((channels + 1) * 500), count: 700))
    }

    @Test(arguments: [8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 96_000, 192_000])
    func everyRateBecomesFortyEight(rate: Int) throws {
        let samples = sine(997, seconds: 0.5, rate: Double(rate))
        let heard = try read(
            W.file([W.chunk("fmt ", W.format(rate: rate)), W.chunk("data", W.samples(samples))]))
        #expect(abs(heard.count - 24_000) <= 60)
        #expect(abs(amplitude(of: 997, in: heard[2_400..<21_600]) - 10_000) < 300)
        // Aligned with the original: the resampler's delay is taken out.
        let expected = sine(997, seconds: 0.5)
        let error = zip(heard[2_400..<21_600], expected[2_400..<21_600]).map { Int16(clamping: Int($0) - Int($1)) }
        #expect(rootMeanSquare(error) < 700)
    }

    @Test func unknownAndOddChunksAreSkipped() throws {
        let samples: [Int16] = [1, 2, 3]
        let file = W.file([
            W.chunk("LIST", [1, 2, 3]), W.chunk("fmt ", W.format()), W.chunk("bext", [UInt8](repeating: 9, count: 601)),
            W.chunk("data", W.samples(samples)), W.chunk("id3 ", [7, 7, 7]),
        ])
        #expect(try read(file) == samples)
    }

    @Test(arguments: [UInt32(0), 0xFFFF_FFFF, 1_000_000], [UInt32(0), 0xFFFF_FFFF, 36])
    func unfinishedRecordingsPlayToTheEnd(dataSize: UInt32, riffSize: UInt32) throws {
        let samples: [Int16] = [1, 2, 3, 4, 5]
        let file = W.file(
            [W.chunk("fmt ", W.format()), W.chunk("data", W.samples(samples), size: dataSize)], riffSize: riffSize)
        #expect(try read(file) == samples)
        // Cut in the middle of a frame.
        #expect(try read(Array(file.dropLast())) == [1, 2, 3, 4])
    }

    @Test func longFilesHaveTheirOwnSizes() throws {
        let sizes = W.number(UInt64(0)) + W.number(UInt64(4)) + W.number(UInt64(2)) + W.number(UInt32(0))
        let file = W.file(
            [
                W.chunk("ds64", sizes), W.chunk("fmt ", W.format()),
                W.chunk("data", W.samples([5, 6]), size: 0xFFFF_FFFF), W.chunk("LIST", [1, 2]),
            ], riffSize: 0xFFFF_FFFF, riff: "RF64")
        #expect(try read(file) == [5, 6])
    }

    @Test func missingFilesAreNamed() {
        let error = #expect(throws: AudioError.self) { try WAVReader(path: scratch.file("none.wav")) }
        #expect(error?.code == .missing)
        #expect(error?.message.contains("none.wav") == true)
    }

    @Test(arguments: [
        ("empty", []), ("text", Array("hello world, this is no sound".utf8)),
        ("no format", W.file([W.chunk("data", [1, 2])])), ("no data", W.file([W.chunk("fmt ", W.format())])),
        ("data is empty", W.file([W.chunk("fmt ", W.format()), W.chunk("data", [])])),
        ("mp3 inside", W.file([W.chunk("fmt ", W.format(code: 0x55)), W.chunk("data", [1, 2])])),
        ("12 bits", W.file([W.chunk("fmt ", W.format(bits: 12)), W.chunk("data", [1, 2])])),
        ("no channel", W.file([W.chunk("fmt ", W.format(channels: 0)), W.chunk("data", [1, 2])])),
        ("9 channels", W.file([W.chunk("fmt ", W.format(channels: 9)), W.chunk("data", [1, 2])])),
        ("rate 0", W.file([W.chunk("fmt ", W.format(rate: 0)), W.chunk("data", [1, 2])])),
        ("rate 4 GHz", W.file([W.chunk("fmt ", W.format(rate: 0xFFFF_FFFF)), W.chunk("data", [1, 2])])),
        ("short format", W.file([W.chunk("fmt ", [1, 0, 1, 0]), W.chunk("data", [1, 2])])),
        ("big endian", W.file([W.chunk("fmt ", W.format()), W.chunk("data", [1, 2])], riff: "RIFX")),
    ])
    func unusableFilesSayWhy(what: String, bytes: [UInt8]) {
        let error = #expect(throws: AudioError.self) {
            try WAVReader(path: scratch.write(bytes, to: "\(what).wav"))
        }
        #expect(error?.code == .unusable)
        #expect(error?.hint?.contains("sox") == true)
    }

    @Test func directoriesAndDevicesAreRefused() {
        #expect(#expect(throws: AudioError.self) { try WAVReader(path: scratch.path) }?.code == .unusable)
        #expect(#expect(throws: AudioError.self) { try WAVReader(path: "/dev/zero") }?.code == .unusable)
    }

    @Test func silenceFollowsTheEnd() throws {
        let file = W.file([W.chunk("fmt ", W.format()), W.chunk("data", W.samples([7, 8]))])
        let reader = try WAVReader(path: scratch.write(file, to: "in.wav"))
        reader.start()
        #expect(!reader.isExhausted)
        #expect(reader.samples(480) == [7, 8] + [Int16](repeating: 0, count: 478))
        #expect(reader.isExhausted)
        #expect(reader.samples(480).allSatisfy { $0 == 0 })
        #expect(reader.counters.frames == 2)
        reader.start()
        #expect(reader.samples(480).prefix(2) == [7, 8])
    }

    @Test func loopsWithoutAGap() throws {
        let samples = (0..<600).map { Int16($0) }
        let file = W.file([W.chunk("fmt ", W.format()), W.chunk("data", W.samples(samples))])
        let reader = try WAVReader(path: scratch.write(file, to: "in.wav"), loops: true)
        reader.start()
        #expect(reader.samples(2_400) == samples + samples + samples + samples)
        #expect(!reader.isExhausted)
    }

    @Test(arguments: [48_000, 16_000])
    func streamedFilesSoundLikePreloadedOnes(rate: Int) throws {
        let samples = babble(seconds: 0.4, seed: 6)
        let path = scratch.write(
            W.file([W.chunk("fmt ", W.format(rate: rate)), W.chunk("data", W.samples(samples))]), to: "in.wav")
        let preloaded = try WAVReader(path: path)
        let streamed = try WAVReader(path: path, preloadLimit: 0)
        preloaded.start()
        streamed.start()
        #expect(streamed.everything() == preloaded.everything())
        // A file that is cut while it plays ends early, in silence.
        streamed.start()
        #expect(truncate(path, 44 + 960) == 0)
        let rest = streamed.everything()
        #expect(rest.count < 48_000 * 480 / rate + 500)
        #expect(rest.contains { $0 != 0 })
    }

    @Test func wholeFilesKeepTheirChannels() throws {
        let data: [Int16] = [1, -1, 2, -2, 3, -3]
        let file = W.file([W.chunk("fmt ", W.format(channels: 2)), W.chunk("data", W.samples(data))])
        let wave = try WAVFile(path: scratch.write(file, to: "in.wav"))
        #expect(wave.channels == [[1, 2, 3], [-1, -2, -3]])
    }

    @Test func hostileHeadersNeverTrap() {
        var random = RandomSource.seeded(77)
        let base = W.file([
            W.chunk("LIST", [1, 2, 3]), W.chunk("fmt ", W.format(channels: 2, extensible: true)),
            W.chunk("data", [UInt8](repeating: 3, count: 64)),
        ])
        let numbers: [UInt8] = [0, 1, 0x7F, 0x80, 0xFF, 0xFE]
        var readable = 0
        for _ in 0..<20_000 {
            var bytes = base
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                bytes[index] = numbers.randomElement(using: &random) ?? 0
            }
            bytes.removeLast(Int.random(in: 0...bytes.count, using: &random) / Int.random(in: 1...20, using: &random))
            let format = try? WAVHeaderParser.parse(fileSize: bytes.count) { offset, length in
                Array(bytes.dropFirst(max(0, offset)).prefix(max(0, length)))
            }
            guard let format else { continue }
            readable += 1
            #expect(format.dataBytes > 0 && format.dataOffset + format.dataBytes <= bytes.count)
            var output = [Int16](repeating: 0, count: 64)
            let frames = bytes[format.dataOffset..<format.dataOffset + format.dataBytes].withUnsafeBytes { raw in
                output.withUnsafeMutableBufferPointer { WAVSamples.mono(raw, format: format, into: $0) }
            }
            #expect(frames == min(64, format.frames))
        }
        #expect(readable > 500)
    }
}
