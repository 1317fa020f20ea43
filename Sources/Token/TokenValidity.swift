import Crypto

/// When a token may be used, by its own account: read from any signed JWT (RFC 7519), whoever issued it.
///
/// Says nothing about whether the token is authentic: for renewing one's own token in time, and for diagnosis.
public struct TokenValidity: Sendable, Equatable {
    /// From when on, Unix seconds: the later of `nbf` and `iat`; nil when it has neither.
    public var start: Int64?
    /// Until when, Unix seconds (`exp`); nil when it does not say.
    public var end: Int64?

    /// Reads the claims of a compact token; nil when it is no JWT. Times outside the years 1970 to 9999 are ignored.
    public init?(of token: String) {
        let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard token.utf8.count <= RegistrationToken.maxBytes, parts.count == 3,
            let bytes = try? base64URLDecode(String(Substring(parts[1]))),
            let claims = try? JSONReader.object(bytes)
        else { return nil }
        func time(_ name: String) -> Int64? {
            guard case .integer(let seconds)? = claims[name], CivilDate.unixTimes.contains(seconds) else { return nil }
            return seconds
        }
        let starts = [time("nbf"), time("iat")].compactMap(\.self)
        start = starts.max()
        end = time("exp")
    }
}

/// The Unix time of a date as SIP and HTTP write it (RFC 3261 section 20.17): `Mon, 30 Nov 2026 09:00:00 GMT`.
public func unixTime(internetDate text: String) -> Int64? {
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let words = text.split { $0 == " " || $0 == "," }
    guard words.count == 6, words[5] == "GMT" || words[5] == "UTC",
        let day = Int64(words[1]), let month = months.firstIndex(of: String(words[2])), let year = Int64(words[3])
    else { return nil }
    let clock = words[4].split(separator: ":", omittingEmptySubsequences: false).map { Int64($0) ?? -1 }
    guard (1970...9999).contains(year), (1...31).contains(day), clock.count == 3, (0...23).contains(clock[0]),
        (0...59).contains(clock[1]), (0...60).contains(clock[2])
    else { return nil }
    // Days in years that begin on 1 March, as `CivilDate` counts them the other way round.
    let marchYear = month < 2 ? year - 1 : year
    let monthFromMarch = Int64(month < 2 ? month + 10 : month - 2)
    let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
    let days = marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + dayOfYear - 719_468
    return days * 86_400 + clock[0] * 3_600 + clock[1] * 60 + clock[2]
}
