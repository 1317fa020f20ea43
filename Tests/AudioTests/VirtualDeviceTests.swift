import Primitives
import Testing

@testable import Audio

@Suite struct VirtualDeviceTests {
    @Test func toneHasItsFrequencyAndLevel() throws {
        let source = try makeSource(.tone(1_000))
        try source.start()
        let samples = source.samples(48_000)
        #expect(abs(amplitude(of: 1_000, in: samples) - ToneSource.amplitude) < 5)
        #expect(amplitude(of: 990, in: samples) < 5)
        #expect(source.readableFrames == nil)
        #expect(!source.isExhausted)
        #expect(source.counters.frames == 48_000)
    }

    @Test func silenceFillsTheBuffer() throws {
        let source = try makeSource(.silence)
        try source.start()
        var block = [Int16](repeating: 7, count: 480)
        let result = block.withUnsafeMutableBufferPointer { source.read(into: $0) }
        #expect(result.frames == 480)
        #expect(block.allSatisfy { $0 == 0 })
    }

    @Test func echoReturnsWhatItHeard() throws {
        let (source, sink) = try makeDevicePair(capture: .echo, playback: .echo)
        try source.start()
        try sink.start()
        #expect(source.samples(480).allSatisfy { $0 == 0 })
        let sent = sine(440, seconds: 0.01)
        sent.withUnsafeBufferPointer { sink.write($0) }
        #expect(source.samples(480) == sent)
        #expect(source.samples(480).allSatisfy { $0 == 0 })
    }

    @Test func echoKeepsTheNewestSixtyMilliseconds() throws {
        let (source, sink) = try makeDevicePair(capture: .echo, playback: .echo)
        try source.start()
        try sink.start()
        for block in 0..<20 {
            [Int16](repeating: Int16(block), count: 480).withUnsafeBufferPointer { sink.write($0) }
        }
        let heard = source.samples(6 * 480)
        #expect(heard.first == 14)
        #expect(heard.last == 19)
        #expect(sink.counters.droppedFrames == 14 * 480)
        #expect(source.samples(480).allSatisfy { $0 == 0 })
    }

    @Test func ringSurvivesAnySequence() {
        var random = RandomSource.seeded(7)
        var ring = SampleRing(capacity: 37)
        var model: [Int16] = []
        var value: Int16 = 0
        for _ in 0..<5_000 {
            if Bool.random(using: &random) {
                let block = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                    value &+= 1
                    return value
                }
                let dropped = block.withUnsafeBufferPointer { ring.write($0) }
                model += block
                #expect(dropped == max(0, model.count - 37))
                model.removeFirst(dropped)
            } else {
                var block = [Int16](repeating: 0, count: Int.random(in: 0...50, using: &random))
                let count = block.withUnsafeMutableBufferPointer { ring.read(into: $0) }
                #expect(Array(block.prefix(count)) == Array(model.prefix(block.count)))
                model.removeFirst(count)
            }
            #expect(ring.count == model.count)
        }
    }

    @Test func oneSecondIsAHundredBlocks() {
        var clock = BlockClock()
        var now = MonotonicTime(nanoseconds: 5)
        var random = RandomSource.seeded(3)
        var blocks = 0
        // Wake-ups early, late and missed; they must not add up.
        while now < MonotonicTime(nanoseconds: 5) + .milliseconds(999) {
            blocks += clock.blocksDue(at: now)
            now += .microseconds(Int.random(in: 1_000...30_000, using: &random))
        }
        blocks += clock.blocksDue(at: MonotonicTime(nanoseconds: 5) + .milliseconds(999))
        #expect(blocks == 100)
        #expect(clock.skippedBlocks == 0)
    }

    @Test func stallIsSkippedNotRushed() {
        var clock = BlockClock(maximumBurst: 6)
        let due = [0, 10_000, 10_000, 10_010].map { clock.blocksDue(at: .zero + .milliseconds($0)) }
        #expect(due == [1, 6, 0, 1])
        #expect(clock.skippedBlocks == 994)
    }

    @Test func recoveryIsBounded() {
        var budget = RecoveryBudget()
        var now = MonotonicTime.zero
        for _ in 0..<9 {
            let isExceeded = budget.isExceeded(byFailureAt: now)
            #expect(!isExceeded)
            now += .milliseconds(10)
        }
        let tenth = budget.isExceeded(byFailureAt: now)
        #expect(tenth)
        // Progress forgives, and so does time.
        budget.progressed()
        for _ in 0..<100 {
            let isExceeded = budget.isExceeded(byFailureAt: now)
            #expect(!isExceeded)
            now += .milliseconds(200)
        }
    }

    @Test func stallIsNoticedAndRestartedEachSecond() {
        var stall = StallDetector()
        var restarts: [Double] = []
        for milliseconds in stride(from: 0, through: 3_000, by: 10) {
            let now = MonotonicTime.zero + .milliseconds(milliseconds)
            if stall.observe(progress: milliseconds <= 100, at: now) { restarts.append(Double(milliseconds)) }
            #expect(stall.isStalled == (milliseconds > 300))
        }
        #expect(restarts == [1_100, 2_100])
        let isRestarted = stall.observe(progress: true, at: .zero + .seconds(4))
        #expect(!isRestarted)
        #expect(!stall.isStalled)
    }
}
