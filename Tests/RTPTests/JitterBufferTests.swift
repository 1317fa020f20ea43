import Primitives
import Testing

@testable import RTP

@Suite struct JitterBufferTests {
    @Test func playsInOrderAfterTheFloor() {
        var simulation = PlayoutSimulation()
        simulation.send(count: 50, sequence: 65_520, timestamp: 0xFFFF_F000) { _, _ in 20 }
        simulation.run(until: 1_000)
        #expect(simulation.sequence == (0..<UInt16(simulation.sequence.count)).map { 65_520 &+ $0 })
        #expect(simulation.sequence.count >= 46)
        let first = simulation.played.first { if case .packet = $0.output { true } else { false } }
        #expect(first.map { $0.time >= 35 && $0.time < 60 } == true)
        #expect(first?.firstBytes == [0xFF, 0xF0])
    }

    @Test func putsReorderedPacketsRightAndDropsDuplicates() {
        var simulation = PlayoutSimulation()
        // Every third packet is overtaken by the next; the floor is enough to wait for it after it was seen once.
        simulation.send(count: 500) { index, _ in index % 3 == 0 ? 45 : 20 }
        simulation.packets += simulation.packets.map { packet in
            var copy = packet
            copy.arrival = packet.arrival.map { $0 + 1 }
            return copy
        }
        simulation.run(until: 10_100)
        let statistics = simulation.buffer.statistics
        #expect(statistics.received == 1_000)
        #expect(statistics.duplicated + statistics.late >= 499)
        #expect(statistics.played + statistics.lost + statistics.discarded == 500)
        #expect(simulation.sequence == simulation.sequence.sorted())
        #expect(Set(simulation.sequence).count == simulation.sequence.count)
        #expect(simulation.concealed(from: 1_000, to: 9_900) == 0)
    }

    @Test func aLostPacketIsConcealedWithTheBytesOfTheNext() {
        // With less delay than a frame, the next packet would not be there yet.
        var simulation = PlayoutSimulation(configuration: .init(clockRate: 48_000, floor: .milliseconds(30)))
        simulation.send(count: 200) { index, _ in [50, 90, 91].contains(index) ? nil : 20 }
        simulation.run(until: 3_900)
        #expect(simulation.buffer.statistics.lost == 3)
        #expect(simulation.buffer.statistics.late == 0)
        let losses = simulation.played.filter { if case .lost = $0.output { true } else { false } }
        #expect(losses.map(\.output) == [.lost(fecLength: 4), .lost(fecLength: nil), .lost(fecLength: 4)])
        #expect(losses.first?.firstBytes == [0, 51])
        #expect(losses.last?.firstBytes == [0, 92])
        #expect(simulation.sequence.contains(51) && simulation.sequence.contains(92))
    }

    @Test func randomLossIsCountedOnce() {
        var random = RandomSource.seeded(11)
        var simulation = PlayoutSimulation()
        simulation.send(count: 5_000) { _, _ in random.unitInterval() < 0.1 ? nil : 20 + 5 * random.unitInterval() }
        simulation.run(until: 99_900)
        let dropped = simulation.packets.count { $0.arrival == nil }
        let statistics = simulation.buffer.statistics
        #expect(abs(Int(statistics.lost) - dropped) <= 5)
        #expect(abs(Int(statistics.concealed) - dropped) <= 10)
        #expect(statistics.late == 0)
    }

    @Test func anotherSourceTakesOverWithItsSecondPacket() {
        var simulation = PlayoutSimulation()
        simulation.send(count: 100) { _, _ in 20 }
        simulation.send(from: 2_000, count: 100, sequence: 9_000, timestamp: 77, ssrc: 2) { _, _ in 20 }
        simulation.run(until: 4_000)
        #expect(simulation.buffer.statistics.resets == 1)
        #expect(simulation.sequence.filter { $0 >= 9_000 }.count >= 95)
    }

    @Test func aStrayOrInterleavedSourceChangesNothing() {
        var simulation = PlayoutSimulation()
        simulation.send(count: 500) { _, _ in 20 }
        simulation.send(from: 7, count: 490, sequence: 9_000, timestamp: 77, ssrc: 2) { _, _ in 20 }
        simulation.run(until: 9_900)
        #expect(simulation.buffer.statistics.resets == 0)
        #expect(simulation.sequence.allSatisfy { $0 < 500 })
        #expect(simulation.concealed(from: 500, to: 9_900) == 0)
    }

    @Test(arguments: [
        (UInt16(100), UInt32(50_000_000)), (100, 4_000_000_000), (5_000, 96_000), (60_000, 96_000), (0, 0),
    ])
    func aJumpBeginsAnew(sequence: UInt16, timestamp: UInt32) {
        var simulation = PlayoutSimulation()
        simulation.send(count: 100) { _, _ in 20 }
        simulation.send(from: 2_000, count: 200, sequence: sequence, timestamp: timestamp) { _, _ in 20 }
        simulation.run(until: 6_000)
        let after = simulation.played.filter { $0.time > 2_300 && $0.time < 5_900 }
        let packets = after.filter { if case .packet = $0.output { true } else { false } }
        #expect(packets.count >= after.count - 3)
        #expect(packets.count > 170)
        #expect(simulation.buffer.statistics.resets <= 1)
        #expect(simulation.greatestDelay(from: 2_300, to: 6_000) < 50)
    }

    @Test func silenceSuppressionIsNoLoss() {
        var simulation = PlayoutSimulation()
        // Speech, 5 s without packets but with time passing, speech; then a packet each 400 ms.
        simulation.send(count: 100) { _, _ in 20 }
        simulation.send(from: 7_000, count: 100, sequence: 100, timestamp: 336_000) { _, _ in 20 }
        for index in 0..<20 {
            let start = 9_000 + Double(index) * 400
            simulation.send(
                from: start, count: 1, sequence: 200 + UInt16(index), timestamp: UInt32(start * 48)
            ) { _, _ in 20 }
        }
        simulation.run(until: 17_500)
        let statistics = simulation.buffer.statistics
        #expect(statistics.lost == 0)
        #expect(statistics.resets == 0)
        #expect(statistics.discarded == 0)
        #expect(simulation.sequence == Array(0..<220))
        #expect(simulation.greatestDelay(from: 7_000, to: 17_000) < 45)
        #expect(simulation.played.contains { $0.output == .waiting && $0.time > 4_000 && $0.time < 6_000 })
    }

    @Test(arguments: [300.0, 900, 5_000])
    func aPauseThatTheTimestampsDoNotShowIsNotKeptAsDelay(pause: Double) {
        var simulation = PlayoutSimulation()
        simulation.send(count: 100) { _, _ in 20 }
        simulation.send(from: 2_000 + pause, count: 500, sequence: 100, timestamp: 96_000) { _, _ in 20 }
        simulation.run(until: 11_900 + pause)
        #expect(simulation.greatestDelay(from: 3_000 + pause, to: 11_000 + pause) < 50)
        #expect(simulation.concealed(from: 2_500 + pause, to: 11_900 + pause) <= 2)
    }

    @Test func telephoneEventsInTheSequenceAreNoLoss() {
        var simulation = PlayoutSimulation()
        simulation.send(count: 100) { _, _ in 20 }
        simulation.send(from: 2_000, count: 12, sequence: 100, timestamp: 96_000) { _, _ in 20 }
        for index in 100..<112 {
            simulation.packets[index].isPlaceholder = true
            simulation.packets[index].header.timestamp = 96_000
        }
        simulation.send(from: 2_240, count: 100, sequence: 112, timestamp: 96_000 + 12 * 960) { _, _ in 20 }
        simulation.run(until: 4_200)
        let statistics = simulation.buffer.statistics
        #expect(statistics.lost == 0)
        #expect(statistics.resets == 0)
        #expect(simulation.sequence == Array(0..<100) + Array(112..<UInt16(112 + simulation.sequence.count - 100)))
        #expect(simulation.sequence.count > 190)
    }

    @Test func withoutPullsTheOldestMakeRoom() {
        var buffer = JitterBuffer(configuration: .init(clockRate: 8_000, capacity: 50))
        #expect(buffer.configuration.capacity == 64)
        for index in 0..<1_000 {
            let header = RTPHeader(
                payloadType: 0, sequenceNumber: UInt16(index), timestamp: UInt32(index * 160), ssrc: 1)
            buffer.insert(header, payload: [1, 2].span, at: PlayoutSimulation.time(Double(index) * 20))
        }
        #expect(buffer.count == 64)
        #expect(buffer.statistics.discarded == 936)
        var room = [UInt8](repeating: 0, count: 1_500)
        guard case .packet(2, let header, 160) = buffer.pull(at: PlayoutSimulation.time(20_000), into: &room) else {
            Issue.record("nothing to play")
            return
        }
        #expect(header.sequenceNumber >= 989)
        buffer.reset()
        #expect(buffer.count == 0)
        #expect(buffer.pull(at: PlayoutSimulation.time(20_020), into: &room) == .waiting)
    }

    @Test func payloadsThatDoNotFitAreNotPlayed() {
        var buffer = JitterBuffer(configuration: .init(clockRate: 8_000, maxPayloadBytes: 100))
        let large = [UInt8](repeating: 1, count: 101)
        let header = RTPHeader(payloadType: 0, sequenceNumber: 1, timestamp: 0, ssrc: 1)
        buffer.insert(header, payload: large.span, at: .zero)
        #expect(buffer.statistics.discarded == 1)
        #expect(buffer.count == 0)
        buffer.insert(header, payload: large.span.extracting(first: 100), at: .zero)
        var room = [UInt8](repeating: 0, count: 99)
        #expect(buffer.pull(at: PlayoutSimulation.time(30), into: &room) == .lost(fecLength: nil))
    }

    @Test(arguments: [UInt64(1), 2, 3, 4])
    func randomArrivalsNeverTrap(seed: UInt64) {
        var random = RandomSource.seeded(seed)
        var buffer = JitterBuffer(configuration: .init(clockRate: seed % 2 == 0 ? 8_000 : 48_000))
        var room = [UInt8](repeating: 0, count: 1_500)
        let payload = [UInt8](repeating: 9, count: 1_600)
        var time: Int64 = 0
        var sequence: UInt16 = 0
        var timestamp: UInt32 = 0
        var played = 0
        for _ in 0..<100_000 {
            let chance = random.next() % 100
            // Mostly a stream; at times anything.
            sequence = chance < 90 ? sequence &+ UInt16(random.next() % 3) : UInt16(truncatingIfNeeded: random.next())
            timestamp =
                chance < 93 ? timestamp &+ UInt32(random.next() % 2_000) : UInt32(truncatingIfNeeded: random.next())
            let header = RTPHeader(
                marker: chance % 2 == 0, payloadType: UInt8(chance), sequenceNumber: sequence, timestamp: timestamp,
                ssrc: chance < 97 ? 5 : UInt32(random.next() % 3))
            switch random.next() % 1_000 {
            case 0: time = Int64(truncatingIfNeeded: random.next())
            case 1: time = random.next() % 2 == 0 ? .max : .min
            default: time = time &+ Int64(random.next() % 30_000_000)
            }
            let now = MonotonicTime(nanoseconds: time)
            if chance == 50 {
                buffer.insertPlaceholder(header, at: now)
            } else {
                let length = Int(random.next() % 20) == 0 ? Int(random.next() % 1_600) : 20
                buffer.insert(header, payload: payload.span.extracting(first: length), at: now)
            }
            buffer.isQuiet = chance % 7 == 0
            if random.next() % 3 != 0, case .packet = buffer.pull(at: now, into: &room) { played += 1 }
        }
        #expect(played > 1_000)
        #expect(buffer.count <= buffer.configuration.capacity)
        #expect(buffer.storage.count == buffer.configuration.capacity * 1_500)
        #expect(buffer.slots.count == buffer.configuration.capacity)
        let statistics = buffer.statistics
        #expect(statistics.received >= statistics.played + statistics.late + statistics.duplicated)
    }
}
