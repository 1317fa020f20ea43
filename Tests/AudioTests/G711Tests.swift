import Testing

@testable import Audio

@Suite struct G711Tests {
    /// Decoded values that the recommendation's tables give (scaled to 16 bits).
    @Test func tablesOfTheRecommendation() {
        #expect(G711.muLaw.decode(0x80) == 32_124)
        #expect(G711.muLaw.decode(0x00) == -32_124)
        #expect(G711.muLaw.decode(0xFF) == 0)
        #expect(G711.muLaw.decode(0x7F) == 0)
        #expect(G711.muLaw.decode(0xFE) == 8)
        #expect(G711.muLaw.decode(0x8F) == 16_764)
        #expect(G711.aLaw.decode(0xAA) == 32_256)
        #expect(G711.aLaw.decode(0x2A) == -32_256)
        #expect(G711.aLaw.decode(0xD5) == 8)
        #expect(G711.aLaw.decode(0x55) == -8)
        #expect(G711.aLaw.decode(0x85) == 4_224)
        #expect(G711.muLaw.encode(0) == 0xFF)
        #expect(G711.aLaw.encode(0) == 0xD5)
        #expect(G711.muLaw.encode(.max) == 0x80)
        #expect(G711.muLaw.encode(.min) == 0x00)
        #expect(G711.aLaw.encode(.max) == 0xAA)
        #expect(G711.aLaw.encode(.min) == 0x2A)
    }

    @Test(arguments: G711.allCases)
    func everyCodeSurvivesTranscoding(law: G711) {
        for byte in UInt8.min...UInt8.max {
            let again = law.encode(law.decode(byte))
            // µ-law has two zeroes, of which one is sent.
            #expect(again == byte || (law == .muLaw && byte == 0x7F && again == 0xFF))
        }
    }

    @Test(arguments: G711.allCases)
    func encodingIsMonotonicAndNearest(law: G711) {
        let values = Set((UInt8.min...UInt8.max).map { Int(law.decode($0)) }).sorted()
        var previous = Int.min
        for sample in Int16.min...Int16.max {
            let decoded = Int(law.decode(law.encode(sample)))
            #expect(decoded >= previous)
            previous = decoded
            let error = abs(decoded - Int(sample))
            // Never worse than half a step, plus what 14 (13) bits of input resolve.
            let step = Self.step(around: decoded, in: values)
            #expect(error <= step / 2 + 8 || abs(Int(sample)) > 32_124, "\(sample) became \(decoded)")
        }
    }

    /// G.712 asks for 33 dB signal to quantising distortion between −30 and 0 dBm0.
    @Test(arguments: G711.allCases, [400.0, 4_000, 20_000])
    func distortionIsLow(law: G711, peak: Double) {
        let samples = sine(1_020, seconds: 1, rate: 8_000, peak: peak)
        var noise = 0.0
        var signal = 0.0
        for sample in samples {
            let error = Double(law.decode(law.encode(sample))) - Double(sample)
            noise += error * error
            signal += Double(sample) * Double(sample)
        }
        #expect(signal / noise > 2_000)
    }

    @Test(arguments: G711.allCases)
    func codecCarriesSpeechBand(law: G711) throws {
        let encoder = try G711Encoder(law: law)
        let decoder = try G711Decoder(law: law)
        let output = through(encoder, decoder, sine(1_000, seconds: 1))
        #expect(output.count == 48_000)
        #expect(abs(amplitude(of: 1_000, in: output[4_800...]) - 10_000) < 500)
        let match = SignalMatch.compare(
            reference: babble(seconds: 3, seed: 1),
            heard: through(
                encoder, decoder, babble(seconds: 3, seed: 1)))
        #expect(match.score > 0.95)
    }

    @Test func concealmentContinuesAndFades() throws {
        let encoder = try G711Encoder(law: .aLaw)
        let decoder = try G711Decoder(law: .aLaw)
        // 20 ms lost in the middle: continues at nearly full level, in phase.
        let output = through(encoder, decoder, sine(200, seconds: 0.4), lost: { $0 == 10 })
        #expect(rootMeanSquare(output[9_700..<10_500]) > 4_000)
        // All lost from packet 10: silent after 60 ms.
        let faded = through(encoder, decoder, sine(200, seconds: 0.4), lost: { $0 >= 10 })
        #expect(rootMeanSquare(faded[(9_600 + 3_840)...]) < 20)
    }

    @Test func oddPayloadsAreHandled() throws {
        let decoder = try G711Decoder(law: .muLaw)
        var output = [Int16](repeating: 0, count: 12_000)
        for length in [0, 1, 7, 160, 2_000, 2_001, 9_000] {
            let payload = [UInt8](repeating: 0x12, count: length)
            let count = output.withUnsafeMutableBufferPointer { samples in
                payload.withUnsafeBufferPointer { decoder.decode($0, into: samples) }
            }
            #expect(count == (1...2_000 ~= length ? length * 6 : 0))
        }
        let tooSmall = output.withUnsafeMutableBufferPointer { samples in
            [UInt8](repeating: 1, count: 160).withUnsafeBufferPointer {
                decoder.decode($0, into: UnsafeMutableBufferPointer(rebasing: samples[0..<959]))
            }
        }
        #expect(tooSmall == 0)
    }

    private static func step(around value: Int, in values: [Int]) -> Int {
        guard let index = values.firstIndex(of: value) else { return 0 }
        let below = index > 0 ? value - values[index - 1] : 0
        let above = index + 1 < values.count ? values[index + 1] - value : 0
        return max(below, above)
    }
}
