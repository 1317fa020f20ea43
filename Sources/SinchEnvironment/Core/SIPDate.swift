/// The SIP date of a Unix time, as the Date header wants it (RFC 3261 section 20.17: RFC 1123 form, always GMT).
///
/// The calendar is computed here because a core may not ask the C library or Foundation: the algorithm counts days in
/// 400-year eras of the proleptic Gregorian calendar that start on 1 March, so that the leap day is a year's last.
/// Times outside the years 1 to 9999 are clamped to them.
func sipDate(unixTime: Int64) -> String {
    let clamped = min(max(unixTime, -62_135_596_800), 253_402_300_799)
    let days = floorDivide(clamped, 86_400)
    let second = clamped - days * 86_400

    // Days since 0000-03-01, which begins an era.
    let shifted = days + 719_468
    let era = floorDivide(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)

    // 1 January 1970 was a Thursday.
    let weekday = (days + 4) - floorDivide(days + 4, 7) * 7
    let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let clock = [second / 3_600, second / 60 % 60, second % 60].map { padded($0, to: 2) }.joined(separator: ":")
    return
        "\(weekdays[Int(weekday)]), \(padded(day, to: 2)) \(months[Int(month) - 1]) \(padded(year, to: 4)) \(clock) GMT"
}

private func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
    let quotient = value / divisor
    return value % divisor < 0 ? quotient - 1 : quotient
}

private func padded(_ value: Int64, to width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
}
