import Primitives
import Testing

@testable import RTP

/// What a network does to a packet, milliseconds.
enum Trace: String, CaseIterable, CustomTestStringConvertible {
    case still, uniform10, uniform40, normal10, heavyTail, spikes, shifting

    var testDescription: String { rawValue }

    func delay(_ index: Int, _ random: inout RandomSource) -> Double {
        switch self {
        case .still: 30
        case .uniform10: 30 + 10 * random.unitInterval()
        case .uniform40: 30 + 40 * random.unitInterval()
        case .normal10: max(0, 50 + 10 * random.normal())
        case .heavyTail: 20 + 8 / (0.05 + random.unitInterval())
        // Every second the radio is away for 80 ms: what is sent meanwhile comes at once afterwards.
        case .spikes: 20 + max(0, 80 - Double(index % 50) * 20)
        case .shifting: 30 + (index < 1_500 ? 5 : 60) * random.unitInterval()
        }
    }
}

@Suite struct JitterBufferAdaptationTests {
    @Test(arguments: Trace.allCases, [UInt64(1), 2, 3])
    func lateLossAndDelayAreNearTheOracle(trace: Trace, seed: UInt64) {
        var random = RandomSource.seeded(seed)
        var simulation = PlayoutSimulation()
        simulation.send(count: 3_000, sequence: 65_000, timestamp: 0xFFFF_0000) { index, _ in
            trace.delay(index, &random)
        }
        simulation.run(until: 60_000, pullFrom: Double(seed) * 5)
        let early = simulation.early
        let all = simulation.buffer.statistics
        let counted = Double(all.received - early.received)
        let late = Double(all.late - early.late)
        let concealed = Double(all.concealed - early.concealed)
        let steady = simulation.played.filter { $0.time > 10_000 && $0.time < 59_900 }
        let delay = steady.map(\.delay).reduce(0, +) / Double(steady.count)
        let oracle = max(20, simulation.oracle())
        #expect(late / counted <= 0.01)
        #expect(concealed / counted <= 0.02)
        #expect(all.resets == 0)
        if trace != .shifting {
            // Frames are 20 ms: the delay is somewhere in the frame above the target.
            #expect(delay < oracle + 15)
            #expect(delay > oracle - 10)
        }
    }

    @Test(arguments: [150.0, 500, 1_500, 4_000], [true, false])
    func aStallIsWorkedOffWithinTenSeconds(length: Double, isQuiet: Bool) {
        var random = RandomSource.seeded(7)
        var simulation = PlayoutSimulation()
        simulation.buffer.isQuiet = isQuiet
        // What is sent during the stall comes at once when it ends at 10 s.
        simulation.send(count: 1_500) { _, sent in
            let usual = 20 + 8 * random.unitInterval()
            // In order, a tenth of a millisecond apart.
            return sent > 10_000 - length && sent < 10_000 ? 10_030 - sent + (sent - 10_000 + length) / 200 : usual
        }
        simulation.run(until: 30_000)
        #expect(simulation.greatestDelay(from: 10_100, to: 30_000) < 225)
        #expect(simulation.greatestDelay(from: 20_000, to: 30_000) < 45)
        #expect(simulation.concealed(from: 10_500, to: 30_000) <= 2)
        #expect(simulation.sequence.last.map { $0 >= 1_495 } == true)
        #expect(simulation.sequence == simulation.sequence.sorted())
    }

    @Test func framesLeftOutAreHeardOneAtATime() {
        var simulation = PlayoutSimulation()
        simulation.send(count: 1_500) { _, sent in sent > 9_700 && sent < 10_000 ? 10_020 - sent : 20 }
        simulation.run(until: 30_000)
        var gaps: [(time: Double, size: Int)] = []
        var last: UInt16?
        for entry in simulation.played where entry.time > 10_400 {
            guard case .packet(_, let header, _) = entry.output else { continue }
            if let last, header.sequenceNumber != last &+ 1 {
                gaps.append((entry.time, Int(header.sequenceNumber &- last) - 1))
            }
            last = header.sequenceNumber
        }
        #expect(gaps.count >= 5)
        #expect(gaps.allSatisfy { $0.size == 1 })
        #expect(zip(gaps, gaps.dropFirst()).allSatisfy { $1.time - $0.time >= 60 })
    }

    @Test(arguments: [0.9995, 0.9999, 1.0001, 1.0005])
    func aSoundCardThatDriftsNeitherStarvesNorPilesUp(rate: Double) {
        var random = RandomSource.seeded(3)
        var simulation = PlayoutSimulation()
        simulation.send(count: 30_000) { _, _ in 20 + 10 * random.unitInterval() }
        simulation.run(until: 600_000, rate: rate)
        #expect(simulation.greatestDelay(from: 5_000, to: 600_000) < 48)
        // One frame each 20 ms of drift, and hardly more.
        let slips = abs(rate - 1) * 600_000 / 20
        let statistics = simulation.buffer.statistics
        #expect(abs(Double(statistics.concealed) - (rate > 1 ? slips : 0)) <= 4)
        #expect(abs(Double(statistics.discarded) - (rate < 1 ? slips : 0)) <= 4)
    }

    @Test(arguments: [10.0, 20, 40, 60], [8_000, 48_000])
    func packetTimesOtherThanTheConfigured(ptime: Double, clockRate: Int) {
        var random = RandomSource.seeded(5)
        var simulation = PlayoutSimulation(clockRate: clockRate)
        simulation.send(count: Int(20_000 / ptime), ptime: ptime) { _, _ in 20 + 10 * random.unitInterval() }
        simulation.run(until: 19_900)
        #expect(simulation.buffer.frameSamples == Int64(ptime) * Int64(clockRate) / 1_000)
        #expect(simulation.concealed(from: 1_000, to: 19_900) == 0)
        #expect(simulation.greatestDelay(from: 1_000, to: 19_900) < 30 + ptime * 1.2)
        #expect(simulation.buffer.statistics.discarded <= 1)
    }

    @Test func packetTimeChangesInTheCourseOfTheCall() {
        var simulation = PlayoutSimulation()
        simulation.send(count: 500) { _, _ in 20 }
        simulation.send(from: 10_000, count: 200, ptime: 60, sequence: 500, timestamp: 480_000) { _, _ in 20 }
        simulation.run(until: 22_000)
        #expect(simulation.buffer.frameSamples == 2_880)
        #expect(simulation.concealed(from: 500, to: 22_000) <= 3)
        #expect(simulation.sequence.count >= 697)
    }
}
