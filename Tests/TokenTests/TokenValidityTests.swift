import Crypto
import Testing

@testable import Token

/// The times that a token names, whoever issued it, and dates as SIP writes them.
struct TokenValidityTests {
    private func validity(_ claims: String) -> TokenValidity? {
        TokenValidity(of: "e30." + base64URLEncode(Array(claims.utf8)) + ".c2ln")
    }

    @Test func times() {
        let all = validity("{\"iat\":100,\"nbf\":200,\"exp\":900,\"aud\":[\"x\",{\"y\":1}]}")
        #expect(all?.start == 200)
        #expect(all?.end == 900)
        #expect(validity("{}") != nil)
        #expect(validity("{}")?.end == nil)
        for odd in ["\"900\"", "900.5", "-1", "1e308", "99999999999999999999", "null", "253402300800"] {
            #expect(validity("{\"exp\":\(odd)}")?.end == nil, "\(odd)")
        }
    }

    @Test(arguments: [
        "", "a.b", "a.b.c.d", "e30.!!.c", "e30.W10.c", "opaque-token", String(repeating: "a", count: 9_000),
    ])
    func noTokenAtAll(text: String) {
        #expect(TokenValidity(of: text) == nil)
    }

    @Test func datesRoundTrip() {
        #expect(unixTime(internetDate: "Thu, 01 Jan 1970 00:00:00 GMT") == 0)
        #expect(unixTime(internetDate: "Tue, 29 Feb 2000 23:59:59 GMT") == 951_868_799)
        #expect(unixTime(internetDate: "Sun,  6 Nov 1994 08:49:37 GMT") == 784_111_777)
        #expect(unixTime(internetDate: "Fri, 31 Dec 9999 23:59:59 GMT") == 253_402_300_799)
        for odd in [
            "", "now", "Mon, 30 Nov 2026 09:00:00 CET", "Mon, 30 Nov 2026 24:00:00 GMT", "Mon, 0 Nov 2026 09:00:00 GMT",
            "Mon, 30 Nob 2026 09:00:00 GMT", "Mon, 30 Nov 99999999999999999999 09:00:00 GMT",
            "Mon, 30 Nov 2026 09:00 GMT",
        ] {
            #expect(unixTime(internetDate: odd) == nil, "\(odd)")
        }
    }
}
