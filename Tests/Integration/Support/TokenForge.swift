import Crypto
import Glibc

/// Makes registration tokens of every kind, from good ones to those that no honest issuer makes.
struct TokenForge: Sendable {
    var applicationKey = KamailioNode.applicationKey
    var secret = KamailioNode.applicationSecret
    var user: String
    /// Seconds after now when the token is issued.
    var issued: Int64 = 0
    /// Seconds after now when it runs out.
    var expiry: Int64 = 600
    /// The day that the key is made for, in days after the one of issue; the header names it, too.
    var keyDay: Int64 = 0
    /// Members to add or replace, as JSON; nil removes one.
    var header: [(String, String?)] = []
    var claims: [(String, String?)] = []
    /// Changes the claims' text.
    var rewrite: @Sendable (String) -> String = { $0 }
    /// Changes the finished token.
    var finish: @Sendable (String) -> String = { $0 }

    init(user: String) { self.user = user }

    static var now: Int64 { Int64(time(nil)) }

    /// The UTC day of a time as YYYYMMDD.
    static func day(_ seconds: Int64) -> String {
        var moment = time_t(seconds)
        var parts = tm()
        gmtime_r(&moment, &parts)
        let number = (Int(parts.tm_year) + 1_900) * 10_000 + (Int(parts.tm_mon) + 1) * 100 + Int(parts.tm_mday)
        return String(number)
    }

    func token() -> String {
        let now = Self.now
        let day = Self.day(now + issued + keyDay * 86_400)
        let issuer = "//rtc.sinch.com/applications/" + applicationKey
        let head = Self.object([("alg", "\"HS256\""), ("kid", "\"hkdfv1-\(day)\"")], header)
        let body = Self.object(
            [
                ("iss", "\"\(issuer)\""), ("sub", "\"\(issuer)/users/\(user)\""), ("iat", String(now + issued)),
                ("exp", String(now + expiry)), ("nonce", "\"\(UInt64.random(in: 0 ... .max))\""),
            ], claims)
        let text = base64URLEncode(Array(head.utf8)) + "." + base64URLEncode(Array(rewrite(body).utf8))
        let key = hmacSHA256(key: (try? base64Decode(secret)) ?? [], Array(day.utf8))
        return finish(text + "." + base64URLEncode(hmacSHA256(key: key, Array(text.utf8))))
    }

    private static func object(_ members: [(String, String)], _ changes: [(String, String?)]) -> String {
        var members = members
        for (name, json) in changes {
            members.removeAll { $0.0 == name }
            if let json { members.append((name, json)) }
        }
        return "{" + members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}"
    }
}
