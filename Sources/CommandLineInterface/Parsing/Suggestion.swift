/// Finds what was probably meant by a word that is not known.
enum Suggestion {
    /// The nearest of the known words, nil when none is near: at most two typing errors, and fewer than half of the word.
    static func nearest(to word: String, among words: [String]) -> String? {
        let typed = Array(word.lowercased().utf8.prefix(64))
        var best: (word: String, distance: Int)?
        for candidate in words {
            let distance = Self.distance(typed, Array(candidate.lowercased().utf8))
            guard distance <= 2, distance * 2 < max(typed.count, candidate.utf8.count) else { continue }
            if best.map({ distance < $0.distance }) ?? true { best = (candidate, distance) }
        }
        return best?.word
    }

    /// Letters to insert, delete, replace or swap with their neighbour (optimal string alignment).
    static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for row in 1...left.count {
            var current = [row]
            for column in 1...right.count {
                let isSame = left[row - 1] == right[column - 1]
                var cost = min(
                    last[column] + 1, current[column - 1] + 1, last[column - 1] + (isSame ? 0 : 1))
                if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
                    cost = min(cost, beforeLast[column - 2] + 1)
                }
                current.append(cost)
            }
            beforeLast = last
            last = current
        }
        return last[right.count]
    }
}
