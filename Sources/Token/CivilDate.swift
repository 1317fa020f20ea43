/// A day of the Gregorian calendar in UTC, computed from Unix time without a time zone or locale: the vendor's rules for
/// tokens count days in UTC, and a device's local date is wrong near midnight.
struct CivilDate: Equatable, Sendable {
    let year: Int
    let month: Int
    let day: Int

    /// The Unix times that dates are computed for: 1970-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
    static let unixTimes: ClosedRange<Int64> = 0...253_402_300_799

    /// The day that a Unix time falls on; nil outside `unixTimes`.
    ///
    /// Counts in years that begin on 1 March, so that the leap day is a year's last, and in eras of 400 years, which all
    /// have 146 097 days.
    init?(unixTime: Int64) {
        guard Self.unixTimes.contains(unixTime) else { return nil }
        let daysFromEra0 = Int(unixTime / 86_400) + 719_468  // 0000-03-01 to 1970-01-01
        let era = daysFromEra0 / 146_097
        let dayOfEra = daysFromEra0 % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
    }

    /// `YYYYMMDD`.
    var compact: String { padded(year, 4) + padded(month, 2) + padded(day, 2) }
}

/// A Unix time for people: `2018-01-02T03:04:05Z`, or the bare number outside the years 1970 to 9999.
public func utcText(unixTime: Int64) -> String {
    guard let date = CivilDate(unixTime: unixTime) else { return "Unix time \(unixTime)" }
    let seconds = Int(unixTime % 86_400)
    return padded(date.year, 4) + "-" + padded(date.month, 2) + "-" + padded(date.day, 2) + "T"
        + padded(seconds / 3_600, 2) + ":" + padded(seconds / 60 % 60, 2) + ":" + padded(seconds % 60, 2) + "Z"
}

private func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
}
