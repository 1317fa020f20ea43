/// The candidate that a misspelled name most likely means; nil when none is near.
///
/// Near is an edit distance of a third of the name's length, at least 1 and at most 3, in which exchanging two neighbours
/// is one edit; or one name containing the other. Upper and lower case do not count.
public func nearestName(to name: String, among candidates: some Sequence<String>) -> String? {
    let wanted = Array(name.lowercased().unicodeScalars.prefix(64))
    let limit = max(1, min(3, wanted.count / 3))
    var best: (name: String, distance: Int)?
    var containing: String?
    for candidate in candidates {
        let lower = candidate.lowercased()
        let distance = editDistance(wanted, Array(lower.unicodeScalars.prefix(64)))
        if distance <= limit, distance < best?.distance ?? .max { best = (candidate, distance) }
        if containing == nil, wanted.count >= 4, candidate.count >= 4,
            lower.contains(name.lowercased()) || name.lowercased().contains(lower)
        {
            containing = candidate
        }
    }
    return best?.name ?? containing
}

/// The number of insertions, deletions, replacements and exchanges of neighbours that lead from one text to the other
/// (optimal string alignment).
func editDistance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for (i, a) in left.enumerated() {
        var current = [i + 1]
        for (j, b) in right.enumerated() {
            var distance = min(last[j + 1] + 1, current[j] + 1, last[j] + (a == b ? 0 : 1))
            if i > 0, j > 0, a == right[j - 1], left[i - 1] == b { distance = min(distance, beforeLast[j - 1] + 1) }
            current.append(distance)
        }
        beforeLast = last
        last = current
    }
    return last[right.count]
}
