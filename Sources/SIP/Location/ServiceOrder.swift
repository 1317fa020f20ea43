import DNS
import Primitives

/// The order in which the servers of one service are tried (RFC 2782).
enum ServiceOrder {
    /// By priority; among servers of one priority at random, each with a chance in proportion to its weight.
    static func sorted(_ records: [SRVRecord], using random: inout RandomSource) -> [SRVRecord] {
        var sorted: [SRVRecord] = []
        for (_, group) in Dictionary(grouping: records, by: \.priority).sorted(by: { $0.key < $1.key }) {
            sorted += shuffled(group, using: &random)
        }
        return sorted
    }

    /// Those of weight zero stand first while drawing, so that they have a small chance only beside others.
    private static func shuffled(_ group: [SRVRecord], using random: inout RandomSource) -> [SRVRecord] {
        var rest = group.filter { $0.weight == 0 }.shuffled(using: &random) + group.filter { $0.weight != 0 }
        var sum = rest.reduce(0) { $0 + Int($1.weight) }
        var order: [SRVRecord] = []
        while !rest.isEmpty {
            let drawn = Int.random(in: 0...sum, using: &random)
            var running = 0
            let index =
                rest.firstIndex { record in
                    running += Int(record.weight)
                    return running >= drawn
                } ?? rest.startIndex
            let chosen = rest.remove(at: index)
            sum -= Int(chosen.weight)
            order.append(chosen)
        }
        return order
    }
}
