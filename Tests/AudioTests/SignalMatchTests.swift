import Primitives
import Testing

@testable import Audio

@Suite struct SignalMatchTests {
    static let reference = babble(seconds: 6, seed: 21)

    @Test func identicalSignalsMatchCompletely() {
        let match = SignalMatch.compare(reference: Self.reference, heard: Self.reference)
        #expect(match.score > 0.999)
        #expect(match.offset == 0)
        #expect(abs(match.levelDifference) < 0.01)
        #expect(match.gaps.isEmpty)
        #expect(match.comparedSeconds > 4)
    }

    @Test func delayAndLevelAreMeasured() {
        let quiet = Self.reference.map { $0 / 4 }
        let match = SignalMatch.compare(
            reference: Self.reference, heard: [Int16](repeating: 0, count: 36_003) + quiet)
        #expect(match.score > 0.98)
        #expect(abs(match.offset - 0.75) < 0.001)
        #expect(abs(match.levelDifference + 12) < 0.3)
        #expect(match.gaps.isEmpty)
    }

    @Test func missingBeginningIsANegativeOffset() {
        let match = SignalMatch.compare(reference: Self.reference, heard: Array(Self.reference[48_000...]))
        #expect(match.score > 0.99)
        #expect(abs(match.offset + 1) < 0.001)
    }

    @Test func partOfTheReferenceIsEnough() {
        let match = SignalMatch.compare(reference: Self.reference, heard: Array(Self.reference[..<96_000]))
        #expect(match.score > 0.99)
        #expect(match.comparedSeconds < 2.1)
    }

    @Test func gapsAreFoundWhereTheyAre() {
        // A reference without pauses, so that every hole is one.
        let reference = zip(babble(seconds: 4, seed: 22), sine(310, seconds: 4, peak: 2_000)).map {
            Int16(clamping: Int($0) + Int($1))
        }
        var heard = reference
        for index in 48_000..<52_800 { heard[index] = 0 }
        for index in 120_000..<122_400 { heard[index] = 0 }
        let match = SignalMatch.compare(reference: reference, heard: heard)
        #expect(match.gaps.count == 2)
        #expect(abs((match.gaps.first?.start ?? 0) - 1) < 0.011)
        #expect(abs((match.gaps.first?.duration ?? 0) - 0.1) < 0.021)
        #expect(abs(match.gapSeconds - 0.15) < 0.041)
        #expect(match.longestGap > 0.07)
        #expect(match.score > 0.9)
    }

    @Test func lossAndJitterAdaptationCostLittle() throws {
        var configuration = OpusEncoder.Configuration()
        configuration.expectedLoss = 10
        var random = RandomSource.seeded(5)
        let heard = through(
            try OpusEncoder(configuration), try OpusDecoder(), Self.reference,
            lost: { _ in random.unitInterval() < 0.05 })
        // The jitter buffer inserts 20 ms after two seconds and takes them away after four.
        let adapted = heard[..<96_000] + heard[95_040..<96_000] + heard[96_000..<192_000] + heard[192_960...]
        let match = SignalMatch.compare(reference: Self.reference, heard: Array(adapted))
        #expect(match.score > 0.8)
    }

    @Test(arguments: 1...6)
    func unrelatedSignalsScoreLow(seed: UInt64) {
        let match = SignalMatch.compare(reference: Self.reference, heard: babble(seconds: 6, seed: 100 + seed))
        #expect(match.score < 0.45)
    }

    @Test func noiseAndToneScoreLow() {
        var random = RandomSource.seeded(9)
        let noise = (0..<288_000).map { _ in Int16.random(in: -8_000...8_000, using: &random) }
        #expect(SignalMatch.compare(reference: Self.reference, heard: noise).score < 0.3)
        #expect(SignalMatch.compare(reference: Self.reference, heard: sine(440, seconds: 6)).score < 0.3)
    }

    @Test func silenceMatchesNothing() {
        let silence = [Int16](repeating: 0, count: Self.reference.count)
        let match = SignalMatch.compare(reference: Self.reference, heard: silence)
        #expect(match.score == 0)
        #expect(match.levelDifference == -120)
        #expect(match.gapSeconds > 3)
        #expect(SignalMatch.compare(reference: silence, heard: Self.reference) == .none)
    }

    @Test func nothingIsComparedWithNothing() {
        #expect(SignalMatch.compare(reference: [], heard: []) == .none)
        #expect(SignalMatch.compare(reference: Self.reference, heard: []) == .none)
        #expect(SignalMatch.compare(reference: [1, 2, 3], heard: Self.reference) == .none)
    }

    @Test func toneMatchesItself() {
        let match = SignalMatch.compare(
            reference: sine(440, seconds: 2), heard: [Int16](repeating: 0, count: 9_600) + sine(440, seconds: 2))
        #expect(match.score > 0.95)
    }
}
