/// Times in RFC 3339, in UTC: `2026-01-31T12:00:00Z`.
enum Timestamp {
    /// The time of whole seconds since 1970, for the years 0 to 9999; nil for others.
    static func text(unixSeconds: Int64) -> String? {
        guard (-62_167_219_200...253_402_300_799).contains(unixSeconds) else { return nil }
        let days = unixSeconds >= 0 ? unixSeconds / 86_400 : (unixSeconds - 86_399) / 86_400
        let second = unixSeconds - days * 86_400
        let date = civil(daysSince1970: days)
        return "\(pad(date.year, 4))-\(pad(date.month, 2))-\(pad(date.day, 2))T"
            + "\(pad(second / 3600, 2)):\(pad(second / 60 % 60, 2)):\(pad(second % 60, 2))Z"
    }

    /// The time of milliseconds since 1970, with milliseconds.
    static func text(unixMilliseconds: Int64) -> String? {
        let seconds = unixMilliseconds / 1000 - (unixMilliseconds % 1000 < 0 ? 1 : 0)
        return text(unixSeconds: seconds).map { "\($0.dropLast()).\(pad(unixMilliseconds - seconds * 1000, 3))Z" }
    }

    /// The Gregorian date of a day. Years are counted from March, so that the leap day is a year's last, and in eras of
    /// 400 years, which all have 146,097 days.
    private static func civil(daysSince1970 days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468  // days since 0000-03-01
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        )
    }

    private static func pad(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
