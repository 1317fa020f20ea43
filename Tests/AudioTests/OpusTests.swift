import Primitives
import Testing

@testable import Audio

@Suite struct OpusTests {
    @Test func speechPassesAtThirtyTwoKilobits() throws {
        let encoder = try OpusEncoder()
        let reference = babble(seconds: 4, seed: 2)
        let heard = through(encoder, try OpusDecoder(), reference)
        let match = SignalMatch.compare(reference: reference, heard: heard)
        #expect(match.score > 0.9)
        #expect(match.gaps.isEmpty)
        #expect(abs(match.offset - Double(encoder.lookahead) / 48_000) < 0.002)
        #expect(abs(match.levelDifference) < 1)
    }

    @Test func bitrateIsKept() throws {
        let encoder = try OpusEncoder()
        encoder.setBitrate(24_000)
        let samples = babble(seconds: 10, seed: 3)
        var bytes = 0
        var payload = [UInt8](repeating: 0, count: OpusEncoder.maximumPayloadBytes)
        for start in stride(from: 0, to: samples.count, by: 960) {
            bytes += samples[start..<start + 960].withUnsafeBufferPointer { frame in
                payload.withUnsafeMutableBufferPointer { encoder.encode(frame, into: $0) }
            }
        }
        #expect((12_000...30_000).contains(bytes * 8 / 10))
    }

    @Test func redundancyMendsSingleLosses() throws {
        var configuration = OpusEncoder.Configuration()
        configuration.expectedLoss = 20
        let reference = babble(seconds: 6, seed: 4)
        func score(useFEC: Bool) throws -> Double {
            let heard = through(
                try OpusEncoder(configuration), try OpusDecoder(), reference, useFEC: useFEC, lost: { $0 % 5 == 3 })
            return SignalMatch.compare(reference: reference, heard: heard).score
        }
        let mended = try score(useFEC: true)
        let concealed = try score(useFEC: false)
        #expect(mended > concealed + 0.01)
        #expect(mended > 0.9)
    }

    @Test func concealmentFadesToSilence() throws {
        let heard = through(
            try OpusEncoder(), try OpusDecoder(), babble(seconds: 2, seed: 5), lost: { $0 >= 50 })
        #expect(heard.count == 96_000)
        #expect(rootMeanSquare(heard[72_000...]) < 100)
    }

    @Test func discontinuousTransmissionSendsLittle() throws {
        var configuration = OpusEncoder.Configuration()
        configuration.discontinuousTransmission = true
        let encoder = try OpusEncoder(configuration)
        let silence = [Int16](repeating: 0, count: 960)
        var payload = [UInt8](repeating: 0, count: 1_275)
        var sent = 0
        for _ in 0..<200 {
            let bytes = silence.withUnsafeBufferPointer { frame in
                payload.withUnsafeMutableBufferPointer { encoder.encode(frame, into: $0) }
            }
            if bytes > 0 { sent += 1 }
        }
        #expect((1...60).contains(sent))
    }

    @Test func wrongFramesAndBuffersAreRefused() throws {
        let encoder = try OpusEncoder()
        var payload = [UInt8](repeating: 0, count: 1_275)
        let wrong = [Int16](repeating: 0, count: 959).withUnsafeBufferPointer { frame in
            payload.withUnsafeMutableBufferPointer { encoder.encode(frame, into: $0) }
        }
        #expect(wrong == 0)
        var configuration = OpusEncoder.Configuration()
        configuration.frameSamples = 961
        #expect(throws: AudioError.self) { try OpusEncoder(configuration) }
        configuration.frameSamples = 960
        configuration.complexity = 11
        #expect(throws: AudioError.self) { try OpusEncoder(configuration) }
    }

    @Test func hostilePacketsNeverTrap() throws {
        let decoder = try OpusDecoder()
        var random = RandomSource.seeded(11)
        var packets: [[UInt8]] = [[]]
        for toc in UInt8.min...UInt8.max {
            packets.append([toc])
            // Code 3 with every frame count, 48 and more among them, with and without padding and VBR.
            for count in [0, 1, 47, 48, 49, 63, 0x7F, 0xBF, 0xFF] as [UInt8] {
                packets.append([toc | 3, count])
                packets.append([toc | 3, count] + [UInt8](repeating: 0xFF, count: 300))
            }
        }
        for _ in 0..<3_000 {
            let length = Int.random(in: 1...400, using: &random)
            packets.append((0..<length).map { _ in UInt8.random(in: 0...255, using: &random) })
        }
        packets.append([UInt8](repeating: 0xFF, count: 65_536))
        var samples = [Int16](repeating: 0, count: OpusDecoder.maximumFrameSamples)
        for packet in packets {
            for room in [0, 119, 120, 959, 960, 5_760] {
                let (decoded, mended) = samples.withUnsafeMutableBufferPointer { buffer in
                    packet.withUnsafeBufferPointer { payload in
                        let target = UnsafeMutableBufferPointer(rebasing: buffer[0..<room])
                        return (decoder.decode(payload, into: target), decoder.decodeFEC(payload, into: target))
                    }
                }
                #expect((0...room).contains(decoded))
                #expect(mended == room)
            }
        }
    }

    @Test func aHundredAndTwentyMillisecondsFit() throws {
        // SILK narrow-band 60 ms frames, code 1: two equal frames of nothing but a byte each.
        let packet: [UInt8] = [3 << 3 | 1, 0, 0]
        let decoder = try OpusDecoder()
        var samples = [Int16](repeating: 1, count: OpusDecoder.maximumFrameSamples)
        let decoded = samples.withUnsafeMutableBufferPointer { buffer in
            packet.withUnsafeBufferPointer { decoder.decode($0, into: buffer) }
        }
        #expect(decoded == 5_760)
    }
}
