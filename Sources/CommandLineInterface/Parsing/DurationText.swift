/// Reads and writes lengths of time as people type them.
enum DurationText {
    /// Nanoseconds in each unit. A number alone means seconds.
    private static let units: [(suffix: String, nanoseconds: Double)] = [
        ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9), ("", 1e9),
    ]

    /// Reads `5`, `5s`, `500ms`, `1.5m`, `2h`; nil when it is none of these, or longer than ten years.
    static func parse(_ text: String) -> Duration? {
        let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let suffix = text.dropFirst(number.count)
        guard number.first != ".", number.last != ".", let unit = units.first(where: { $0.suffix == suffix }),
            let amount = Double(number)
        else { return nil }
        let nanoseconds = amount * unit.nanoseconds
        guard nanoseconds <= 10 * 366 * 86_400e9, let whole = Int64(exactly: nanoseconds.rounded()) else { return nil }
        return .nanoseconds(whole)
    }

    /// Writes a length of time with the largest unit that leaves no fraction: `90s`, `500ms`, `2m`, `48h`.
    static func text(seconds: Int) -> String {
        if seconds >= 3600, seconds % 3600 == 0 { return "\(seconds / 3600)h" }
        if seconds >= 60, seconds % 60 == 0 { return "\(seconds / 60)m" }
        return "\(seconds)s"
    }

    /// A length of time to a person's precision: `59s`, `10m`, `5h`, `12 days`.
    static func rounded(seconds: Int) -> String {
        switch seconds {
        case ..<120: "\(seconds)s"
        case ..<7200: "\(seconds / 60)m"
        case ..<172_800: "\(seconds / 3600)h"
        default: "\(seconds / 86_400) days"
        }
    }
}
