import DNS
import Primitives
import Testing

@testable import SIP

@Suite struct ServiceOrderTests {
    private func record(_ target: String, _ priority: UInt16, _ weight: UInt16) -> SRVRecord {
        SRVRecord(priority: priority, weight: weight, port: 5060, target: target)
    }

    /// How often each comes first in `rounds` draws.
    private func firsts(_ records: [SRVRecord], rounds: Int) -> [String: Int] {
        var random = RandomSource.seeded(2_782)
        var counts: [String: Int] = [:]
        for _ in 0..<rounds {
            counts[ServiceOrder.sorted(records, using: &random)[0].target, default: 0] += 1
        }
        return counts
    }

    @Test func loadIsSharedByWeight() {
        let rounds = 60_000
        let counts = firsts([record("a", 1, 60), record("b", 1, 30), record("c", 1, 10)], rounds: rounds)
        // The draw is over 0…100, and the first one's share is one greater than its weight.
        let shares = [("a", 61.0 / 101), ("b", 30.0 / 101), ("c", 10.0 / 101)]
        let chiSquare = shares.reduce(0.0) { sum, share in
            let expected = share.1 * Double(rounds)
            let difference = Double(counts[share.0] ?? 0) - expected
            return sum + difference * difference / expected
        }
        // Two degrees of freedom: 13.8 is passed once in a thousand; the seed is fixed.
        #expect(chiSquare < 13.8, "\(counts)")
    }

    @Test func theSecondIsDrawnByWeightToo() {
        var random = RandomSource.seeded(5)
        var seconds: [String: Int] = [:]
        for _ in 0..<20_000 {
            let order = ServiceOrder.sorted(
                [record("a", 1, 1_000), record("b", 1, 30), record("c", 1, 10)], using: &random)
            if order[0].target == "a" { seconds[order[1].target, default: 0] += 1 }
        }
        let ratio = Double(seconds["b"] ?? 0) / Double(seconds["c"] ?? 1)
        #expect((2.7...3.4).contains(ratio), "\(seconds)")
    }

    @Test func weightZeroIsRareBesideOthersAndFairAmongItself() {
        let beside = firsts([record("idle", 1, 0), record("busy", 1, 99)], rounds: 20_000)
        #expect((100...320).contains(beside["idle"] ?? 0), "one in a hundred: \(beside)")
        let among = firsts([record("a", 1, 0), record("b", 1, 0), record("c", 1, 0)], rounds: 30_000)
        for target in ["a", "b", "c"] { #expect((9_500...10_500).contains(among[target] ?? 0), "\(among)") }
    }

    @Test func priorityComesBeforeWeight() {
        var random = RandomSource.seeded(7)
        let records = [record("c", 20, .max), record("a", 0, 0), record("b", 10, 1), record("d", .max, .max)]
        for _ in 0..<200 {
            #expect(ServiceOrder.sorted(records, using: &random).map(\.target) == ["a", "b", "c", "d"])
        }
    }

    @Test func nothingIsLostOrDoubled() {
        var random = RandomSource.seeded(8)
        for count in 0..<64 {
            let records = (0..<count).map { record("t\($0)", UInt16($0 % 3), $0 % 2 == 0 ? .max : 0) }
            let sorted = ServiceOrder.sorted(records, using: &random)
            #expect(Set(sorted) == Set(records) && sorted.count == count)
        }
    }
}
