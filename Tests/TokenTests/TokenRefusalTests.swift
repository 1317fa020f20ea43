import Crypto
import Testing

@testable import Token

@Suite struct TokenRefusalTests {
    @Test func theForgeryItselfIsAccepted() throws {
        // Else the tests below could pass for the wrong reason.
        #expect(refusal(try forge()) == nil)
    }

    @Test(arguments: ["none", "None", "NONE", "nOnE"])
    func unsigned(_ algorithm: String) throws {
        let signed = try forge(header: #"{"alg":"\#(algorithm)","kid":"hkdfv1-20180102"}"#)
        let bare = signed.split(separator: ".").prefix(2).joined(separator: ".") + "."
        for text in [signed, bare] {
            let error = try #require(refusal(text))
            #expect(error.code == .algorithm)
            #expect(error.message.contains("not signed"))
        }
    }

    @Test(arguments: ["RS256", "HS384", "HS512", "hs256", "", "HS256 "])
    func otherAlgorithms(_ algorithm: String) throws {
        #expect(refusal(try forge(header: #"{"alg":"\#(algorithm)","kid":"hkdfv1-20180102"}"#))?.code == .algorithm)
    }

    @Test(arguments: [
        #""crit":["exp"]"#, #""crit":[]"#, #""jku":"https://evil.example/keys""#, #""x5u":"https://evil.example""#,
        #""jwk":{"kty":"oct","k":"AAAA"}"#, #""x5c":[]"#, #""zip":"DEF""#, #""b64":false"#, #""typ":"at+jwt""#,
    ])
    func headersThatAreNeverObeyed(_ member: String) throws {
        #expect(refusal(try forge(header: #"{"alg":"HS256","kid":"hkdfv1-20180102",\#(member)}"#))?.code == .header)
    }

    @Test(arguments: [
        "../../key", "hkdfv1-", "hkdfv1-2018010", "hkdfv1-201801022", "hkdfv2-20180102", "HKDFV1-20180102",
        "hkdfv1-2018-1-2", "hkdfv1-2018010\u{663}", "20180102", "",
    ])
    func keyIDsOfAnotherForm(_ keyID: String) throws {
        let error = try #require(refusal(try forge(header: #"{"alg":"HS256","kid":"\#(keyID)"}"#)))
        #expect(error.code == .keyID)
        #expect(error.message.contains("YYYYMMDD"))
    }

    @Test func keyIDOfAnotherDay() throws {
        // Signed under either day's key: both are refused, and called by the cause.
        for day in ["20180102", "20180101"] {
            let text = try forge(header: #"{"alg":"HS256","kid":"hkdfv1-20180101"}"#, day: day)
            let error = try #require(refusal(text))
            #expect(error.code == .keyID)
            #expect(error.message.contains("2018-01-02T03:04:05Z"))
            #expect(error.hint?.contains("hkdfv1-20180102") == true)
        }
        // The right id, but the key of the day before.
        #expect(refusal(try forge(day: "20180101"))?.code == .signature)
    }

    @Test func keyIDMissingOrNoText() throws {
        #expect(refusal(try forge(header: #"{"alg":"HS256"}"#))?.code == .missingClaim)
        #expect(refusal(try forge(header: #"{"alg":"HS256","kid":20180102}"#))?.code == .claimType)
        #expect(refusal(try forge(header: #"{"kid":"hkdfv1-20180102"}"#))?.code == .missingClaim)
        #expect(refusal(try forge(header: #"{"alg":null,"kid":"hkdfv1-20180102"}"#))?.code == .claimType)
    }

    @Test func tamperedClaims() throws {
        let parts = Published.guide.split(separator: ".").map(String.init)
        let original = String(decoding: try base64URLDecode(parts[1]), as: UTF8.self)
        for (old, new) in [("users/foo", "users/bar"), ("1514862845", "1514862846"), ("39f20a94b34e", "39f20a94b34f")] {
            let claims = original.replacing(old, with: new)
            #expect(claims != original)
            let text = [parts[0], base64URLEncode(Array(claims.utf8)), parts[2]].joined(separator: ".")
            #expect(refusal(text)?.code == .signature)
        }
    }

    @Test func everyBitOfTheSignatureCounts() throws {
        let parts = Published.guide.split(separator: ".").map(String.init)
        let signature = try base64URLDecode(parts[2])
        for bit in 0..<256 {
            var changed = signature
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(refusal("\(parts[0]).\(parts[1]).\(base64URLEncode(changed))")?.code == .signature)
        }
        for length in [1, 16, 31] {
            #expect(
                refusal("\(parts[0]).\(parts[1]).\(base64URLEncode(Array(signature.prefix(length))))")?.code
                    == .signature)
        }
        let empty = try #require(refusal("\(parts[0]).\(parts[1])."))
        #expect(empty.code == .signature)
        #expect(empty.message.contains("empty"))
    }

    @Test func anotherApplication() throws {
        let other = "00000000-0000-0000-0000-000000000001"
        let text = try RegistrationToken.sign(
            applicationKey: other, applicationSecret: Published.secret(), userID: "foo",
            issuedAt: Published.issuedAt, nonce: "n")
        #expect(refusal(text)?.code == .unknownApplication)
        let wrong = try ApplicationSecret(bytes: [UInt8](repeating: 1, count: 16))
        #expect(throws: TokenError.self) {
            try RegistrationToken.verify(text, secrets: { _ in wrong }, now: Published.issuedAt)
        }
    }

    @Test func badBase64() throws {
        let parts = Published.guide.split(separator: ".").map(String.init)
        let signature = parts[2]
        // The last of 43 characters carries 4 bits; 'o' and 'p' differ in the two that belong to no byte.
        #expect(signature.hasSuffix("o"))
        for bad in [
            signature + "=", signature.dropLast() + "p", signature.dropLast() + "+", signature + "AA=", "A",
            "É" + signature,
            signature + "\n", " " + signature,
        ] {
            #expect(refusal("\(parts[0]).\(parts[1]).\(bad)")?.code == .base64, "\(bad)")
        }
        #expect(refusal("\(parts[0])=.\(parts[1]).\(signature)")?.code == .base64)
        #expect(refusal("\(parts[0]).\(parts[1])==.\(signature)")?.code == .base64)
    }

    @Test func otherNumbersOfParts() {
        for text in ["", ".", "a.b", "a.b.c.d", Published.guide + ".", "..", Published.guide.replacing(".", with: ",")]
        {
            #expect(refusal(text)?.code == .malformed, "\(text)")
        }
    }

    @Test(arguments: ["iss", "sub", "iat", "exp", "nonce"])
    func missingClaims(_ name: String) throws {
        let text = try forge(
            claims: claims(
                iss: name == "iss" ? nil : "\"//rtc.sinch.com/applications/\(Published.applicationKey)\"",
                sub: name == "sub" ? nil : "\"//rtc.sinch.com/applications/\(Published.applicationKey)/users/foo\"",
                iat: name == "iat" ? nil : "1514862245", exp: name == "exp" ? nil : "1514862845",
                nonce: name == "nonce" ? nil : "\"n\""))
        let error = try #require(refusal(text))
        #expect(error.code == .missingClaim)
        #expect(error.message.contains("'\(name)'"))
    }

    @Test(arguments: [
        #","exp":1514862846"#, #","exp":1514862845"#, #","\u0065xp":1514862846"#, #","nonce":"m""#, #","x":1,"x":2"#,
        #","x":{"a":1,"a":2}"#,
    ])
    func duplicateClaims(_ extra: String) throws {
        #expect(refusal(try forge(claims: claims(extra: extra)))?.code == .duplicateClaim)
    }

    @Test func duplicateHeaderMember() throws {
        let header = #"{"alg":"HS256","kid":"hkdfv1-20180102","alg":"none"}"#
        #expect(refusal(try forge(header: header))?.code == .duplicateClaim)
    }

    @Test(arguments: [
        ("\"1514862845\"", "a string"), ("1514862845.0", "a fraction"), ("1.514862845e9", "a fraction"),
        ("1e308", "1e308"), ("1E400", "1E400"), ("99999999999999999999", "too large"), ("true", "a boolean"),
        ("null", "null"), ("[1514862845]", "an object or array"), ("-1", "-1"), ("1514862845000", "milliseconds"),
        ("9223372036854775807", "9223372036854775807"), ("-9223372036854775808", "-9223372036854775808"),
    ])
    func expiryThatIsNoTime(_ wrong: (json: String, reason: String)) throws {
        for name in ["exp", "iat"] {
            let text = try forge(
                claims: name == "exp" ? claims(exp: wrong.json) : claims(iat: wrong.json))
            let error = try #require(refusal(text))
            #expect(error.code == .claimType)
            #expect(error.description.contains(wrong.reason))
            #expect(error.message.contains("'\(name)'"))
        }
        #expect(
            refusal(try forge(claims: claims(extra: #","sinch:rtc:instance:exp":\#(wrong.json)"#)))?.code == .claimType)
        #expect(refusal(try forge(claims: claims(extra: #","nbf":\#(wrong.json)"#)))?.code == .claimType)
    }

    @Test(arguments: [
        "https://rtc.sinch.com/applications/a32e5a8d-f7d8-411c-9645-9038e8dd051d", "//rtc.sinch.com/applications/",
        "//rtc.sinch.com/applications/a32e5a8d", "//evil.example/applications/a32e5a8d-f7d8-411c-9645-9038e8dd051d",
        "//rtc.sinch.com/applications/a32e5a8d-f7d8-411c-9645-9038e8dd051d/", "",
    ])
    func issuersThatAreNoApplication(_ issuer: String) throws {
        #expect(refusal(try forge(claims: claims(iss: "\"\(issuer)\"")))?.code == .issuer)
    }

    @Test(arguments: [
        "//rtc.sinch.com/applications/00000000-0000-0000-0000-000000000000/users/foo",
        "//rtc.sinch.com/applications/a32e5a8d-f7d8-411c-9645-9038e8dd051d/users/",
        "//rtc.sinch.com/applications/a32e5a8d-f7d8-411c-9645-9038e8dd051d/users/foo/bar",
        "//rtc.sinch.com/applications/a32e5a8d-f7d8-411c-9645-9038e8dd051d/users/f\\u0000o",
        "//rtc.sinch.com/applications/a32e5a8d-f7d8-411c-9645-9038e8dd051d", "foo", "",
    ])
    func subjectsThatAreNoUser(_ subject: String) throws {
        #expect(refusal(try forge(claims: claims(sub: "\"\(subject)\"")))?.code == .subject)
    }

    @Test func audience() throws {
        #expect(refusal(try forge(claims: claims(extra: #","aud":"elsewhere""#)))?.code == .audience)
    }

    @Test func lifetimes() throws {
        #expect(refusal(try forge(claims: claims(exp: "1514862305"))) == nil)
        for exp in ["1514862304", "1514862245", "1514862244", "0"] {
            #expect(refusal(try forge(claims: claims(exp: exp)))?.code == .lifetime)
        }
        let shortest = Published.issuedAt + 172_800
        #expect(refusal(try forge(claims: claims(extra: #","sinch:rtc:instance:exp":\#(shortest)"#))) == nil)
        let short = try forge(claims: claims(extra: #","sinch:rtc:instance:exp":\#(shortest - 1)"#))
        #expect(refusal(short)?.code == .lifetime)
    }

    @Test func expiryWithLeeway() {
        let expiry = Published.issuedAt + 600
        #expect(refusal(Published.guide, now: expiry - 1, leeway: 0) == nil)
        #expect(refusal(Published.guide, now: expiry, leeway: 0)?.code == .expired)
        #expect(refusal(Published.guide, now: expiry + 59) == nil)
        #expect(refusal(Published.guide, now: expiry + 60)?.code == .expired)
        // No more than a minute is granted, whatever is asked; and a negative one is none.
        #expect(refusal(Published.guide, now: expiry + 60, leeway: .max)?.code == .expired)
        #expect(refusal(Published.guide, now: expiry - 1, leeway: .min) == nil)
        #expect(refusal(Published.guide, now: .max)?.code == .expired)
    }

    @Test func expiredMessageShowsBothTimes() throws {
        let error = try #require(refusal(Published.guide, now: Published.issuedAt + 1_200))
        #expect(error.message == "the token expired at 2018-01-02T03:14:05Z, it is 2018-01-02T03:24:05Z now")
    }

    @Test func notYetValid() throws {
        #expect(refusal(Published.guide, now: Published.issuedAt - 60) == nil)
        let error = try #require(refusal(Published.guide, now: Published.issuedAt - 61))
        #expect(error.code == .notYetValid)
        #expect(error.message == "the token is valid from 2018-01-02T03:04:05Z, it is 2018-01-02T03:03:04Z now")
        #expect(refusal(Published.guide, now: .min)?.code == .notYetValid)
        let later = try forge(claims: claims(extra: #","nbf":1514862400"#))
        #expect(refusal(later)?.code == .notYetValid)
        #expect(refusal(later, now: 1_514_862_400) == nil)
    }

    @Test func registrationThatHasEnded() throws {
        let end = Published.issuedAt + 172_800
        let text = try forge(
            claims: claims(exp: String(end + 10_000), extra: #","sinch:rtc:instance:exp":\#(end)"#))
        #expect(refusal(text, now: end + 59) == nil)
        let error = try #require(refusal(text, now: end + 60))
        #expect(error.code == .expired)
        #expect(error.message.contains("registration"))
    }

    @Test func hugeTokens() throws {
        // Just within the limit is read, beyond it not; a megabyte is not even looked at.
        let padding = String(repeating: "x", count: 5_500)
        #expect(refusal(try forge(claims: claims(extra: #","x":"\#(padding)""#))) == nil)
        #expect(refusal(try forge(claims: claims(extra: #","x":"\#(padding)\#(padding)""#)))?.code == .tooLarge)
        #expect(refusal(String(repeating: "a", count: 1_048_576))?.code == .tooLarge)
        #expect(refusal(String(repeating: ".", count: 8_192))?.code == .malformed)
    }

    @Test func messagesDoNotCarryTerminalSequences() throws {
        let error = try #require(refusal(try forge(claims: claims(iss: #""\u001b[2Jevil\n""#))))
        #expect(error.code == .issuer)
        #expect(error.message.utf8.allSatisfy { $0 >= 0x20 })
        let long = try #require(
            refusal(try forge(claims: claims(iss: "\"" + String(repeating: "é", count: 1_000) + "\""))))
        #expect(long.message.utf8.count < 1_000)
    }

    @Test func parseReadsWhatVerifyRefuses() throws {
        // For looking at a token: neither signature nor algorithm nor times count.
        let text = try forge(header: #"{"alg":"none"}"#).split(separator: ".").prefix(2).joined(separator: ".") + "."
        let token = try RegistrationToken.parse(text)
        #expect(token.header.algorithm == "none")
        #expect(token.userID == "foo")
    }
}
