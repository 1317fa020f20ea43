import Primitives
import Testing

@testable import RTP

private func header(_ sequence: UInt16, _ timestamp: UInt32 = 0, ssrc: UInt32 = 1) -> RTPHeader {
    RTPHeader(payloadType: 0, sequenceNumber: sequence, timestamp: timestamp, ssrc: ssrc)
}

private func at(_ milliseconds: Int) -> MonotonicTime { MonotonicTime(nanoseconds: Int64(milliseconds) * 1_000_000) }

@Suite struct RTPReceiverStatisticsTests {
    /// A stream in which `lost` are missing, from packet 1 on (packet 0 is spent on probation).
    private func stream(_ numbers: [UInt16], from first: UInt16) -> RTPReceiverStatistics {
        var statistics = RTPReceiverStatistics(clockRate: 8_000)
        statistics.receive(header(first &- 1), at: .zero)
        for number in numbers { statistics.receive(header(number), at: .zero) }
        return statistics
    }

    @Test func twoPacketsInSequenceMakeASource() {
        var statistics = RTPReceiverStatistics(clockRate: 8_000)
        #expect(statistics.receive(header(10), at: .zero) == .probation)
        #expect(statistics.receive(header(12), at: .zero) == .probation)
        let none = statistics.reportBlock(at: .zero)
        #expect(none == nil)
        #expect(statistics.receive(header(13), at: .zero) == .restarted)
        #expect(statistics.receive(header(14), at: .zero) == .valid)
        #expect(statistics.received == 2)
        #expect(statistics.expected == 2)
        #expect(statistics.restarts == 0)
    }

    @Test func countsLossAcrossTheWrapAround() {
        var statistics = stream([65_534, 65_535, 1, 2], from: 65_534)
        #expect(statistics.extendedHighestSequence == 0x1_0002)
        #expect(statistics.expected == 5)
        #expect(statistics.cumulativeLost == 1)
        let block = statistics.reportBlock(at: .zero)
        #expect(block?.fractionLost == 51)
        #expect(block?.cumulativeLost == 1)
        // The interval begins again, the sum does not.
        statistics.receive(header(3), at: .zero)
        let block1 = statistics.reportBlock(at: .zero)
        #expect(block1?.fractionLost == 0)
        let block2 = statistics.reportBlock(at: .zero)
        #expect(block2?.cumulativeLost == 1)
    }

    @Test func duplicatesMakeTheLossNegative() {
        var statistics = stream([1, 2, 2, 2, 3], from: 1)
        #expect(statistics.cumulativeLost == -2)
        let block3 = statistics.reportBlock(at: .zero)
        #expect(block3?.fractionLost == 0)
        #expect(statistics.totalLost == 0)
    }

    @Test func reorderingIsNoRestart() {
        let statistics = stream([1, 2, 5, 4, 3, 6], from: 1)
        #expect(statistics.received == 6)
        #expect(statistics.cumulativeLost == 0)
    }

    @Test func aLargeJumpNeedsASecondPacket() {
        var statistics = stream([1, 2], from: 1)
        #expect(statistics.receive(header(20_000), at: .zero) == .outOfRange)
        #expect(statistics.receive(header(3), at: .zero) == .valid)
        #expect(statistics.receive(header(30_000), at: .zero) == .outOfRange)
        #expect(statistics.receive(header(30_001), at: .zero) == .restarted)
        #expect(statistics.received == 1)
        #expect(statistics.totalReceived == 4)
        #expect(statistics.restarts == 1)
    }

    @Test func anotherSourceNeedsTwoPacketsToo() {
        var statistics = stream([1, 2, 4], from: 1)
        #expect(statistics.receive(header(700, ssrc: 2), at: .zero) == .probation)
        #expect(statistics.receive(header(5), at: .zero) == .valid)
        #expect(statistics.receive(header(701, ssrc: 2), at: .zero) == .probation)
        #expect(statistics.receive(header(702, ssrc: 2), at: .zero) == .restarted)
        #expect(statistics.ssrc == 2)
        #expect(statistics.totalLost == 1)
    }

    @Test func lossIsHeldTo24Bits() {
        var statistics = RTPReceiverStatistics(clockRate: 8_000)
        statistics.receive(header(0), at: .zero)
        statistics.receive(header(1), at: .zero)
        var number: UInt16 = 1
        for _ in 0..<3_000 {
            number &+= 2_999
            statistics.receive(header(number), at: .zero)
        }
        #expect(statistics.cumulativeLost == 0x7F_FFFF)
        let block4 = statistics.reportBlock(at: .zero)
        #expect(block4?.fractionLost == 255)
    }

    @Test func jitterFollowsTheFormula() {
        var statistics = RTPReceiverStatistics(clockRate: 8_000)
        statistics.receive(header(0, 0), at: at(0))
        statistics.receive(header(1, 160), at: at(20))
        #expect(statistics.jitter == 0)
        // 10 ms late is 80 units: a sixteenth of it.
        statistics.receive(header(2, 320), at: at(50))
        #expect(statistics.jitter == 5)
        #expect(statistics.jitterDuration == .microseconds(625))
        // The same timestamp again is an event's next packet.
        statistics.receive(header(3, 320), at: at(500))
        #expect(statistics.jitter == 5)
        // Another time base is no delay.
        statistics.receive(header(4, 0x8000_0000), at: at(520))
        #expect(statistics.jitter == 5)
    }

    @Test func alternatingDelayConvergesOnTheDifference() {
        var statistics = RTPReceiverStatistics(clockRate: 48_000)
        for index in 0..<500 {
            statistics.receive(
                header(UInt16(index), UInt32(index * 960)), at: at(index * 20 + (index % 2 == 0 ? 0 : 4)))
        }
        // 4 ms are 192 units.
        #expect((188...193).contains(statistics.jitter))
    }

    @Test func refersToTheLastSenderReport() {
        var statistics = stream([1, 2], from: 1)
        let block5 = statistics.reportBlock(at: at(0))
        #expect(block5?.lastSenderReport == 0)
        let report = RTCPSenderReport(
            ssrc: 1, ntpTimestamp: NTPTimestamp(rawValue: 0x1234_5678_9ABC_DEF0), rtpTimestamp: 0, packetCount: 0,
            octetCount: 0)
        statistics.receive(report, at: at(1_000))
        let block = statistics.reportBlock(at: at(1_500))
        #expect(block?.lastSenderReport == 0x5678_9ABC)
        #expect(block?.delaySinceLastSenderReport == 0x8000)
        // A report of another source is not ours to refer to.
        var foreign = report
        foreign.ssrc = 9
        statistics.receive(foreign, at: at(1_600))
        let block6 = statistics.reportBlock(at: at(2_000))
        #expect(block6?.delaySinceLastSenderReport == 0x1_0000)
    }

    @Test func anyPacketsAreCountedWithoutTrapping() {
        var random = RandomSource.seeded(8)
        var statistics = RTPReceiverStatistics(clockRate: 48_000)
        var valid = 0
        var number: UInt16 = 0
        for _ in 0..<100_000 {
            number = random.next() % 8 == 0 ? UInt16(truncatingIfNeeded: random.next()) : number &+ 1
            let packet = header(
                number, UInt32(truncatingIfNeeded: random.next()), ssrc: random.next() % 50 == 0 ? 2 : 1)
            let now = MonotonicTime(nanoseconds: Int64(truncatingIfNeeded: random.next()))
            if statistics.receive(packet, at: now) == .valid { valid += 1 }
            if random.next() % 100 == 0 { _ = statistics.reportBlock(at: now) }
        }
        #expect(valid > 10_000)
    }
}
