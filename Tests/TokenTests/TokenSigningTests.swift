import Primitives
import Testing

@testable import Token

@Suite struct TokenSigningTests {
    private func sign(
        key: String = Published.applicationKey, user: String = "foo", issuedAt: Int64 = Published.issuedAt,
        lifetime: Int64 = 600, nonce: String = "n", limit: Int64? = nil
    ) throws -> String {
        try RegistrationToken.sign(
            applicationKey: key, applicationSecret: Published.secret(), userID: user, issuedAt: issuedAt,
            lifetime: lifetime, nonce: nonce, instanceExpiry: limit)
    }

    private func code(_ body: () throws -> String) -> TokenError.Code? {
        do {
            _ = try body()
            return nil
        } catch {
            return (error as? TokenError)?.code
        }
    }

    @Test func userIDs() throws {
        let longest = String(repeating: "a", count: 255)
        for user in ["a", "AZaz09-_=", longest] {
            #expect(try verify(sign(user: user)).userID == user)
        }
        for user in ["", longest + "a", "a b", "a/b", "ä", "a@b", "a\r\nX: y", "a\u{0}", "a%41", "+46", "a.b"] {
            #expect(code { try sign(user: user) } == .userID, "\(user)")
        }
    }

    @Test func applicationKeys() {
        for key in ["", "key", Published.applicationKey + "0", "g32e5a8d-f7d8-411c-9645-9038e8dd051d", "\u{212a}"] {
            #expect(code { try sign(key: key) } == .applicationKey, "\(key)")
        }
        #expect(code { try sign(key: Published.applicationKey.uppercased()) } == nil)
    }

    @Test func lifetimes() {
        #expect(code { try sign(lifetime: 60) } == nil)
        for lifetime: Int64 in [59, 0, -600, .min, .max, 253_402_300_799] {
            #expect(code { try sign(lifetime: lifetime) } == .lifetime)
        }
    }

    @Test func registrationLimits() {
        #expect(code { try sign(limit: Published.issuedAt + 172_800) } == nil)
        for limit: Int64 in [Published.issuedAt + 172_799, 0, .min, .max] {
            #expect(code { try sign(limit: limit) } == .lifetime)
        }
    }

    @Test func timesOfIssueAndNonces() throws {
        for time: Int64 in [-1, .min, .max, 253_402_300_800] {
            #expect(code { try sign(issuedAt: time) } == .claimType)
        }
        #expect(code { try sign(nonce: "") } == .nonce)
        #expect(code { try sign(nonce: String(repeating: "n", count: 256)) } == .nonce)
        let odd = "a\"\\/\n\u{1}é"
        #expect(try verify(sign(nonce: odd)).claims.nonce == odd)
    }

    @Test func secrets() throws {
        for text in ["", "AAAA", "not base64!", Published.secretText + "\n", "ax8hTTQJF0OPXL32r1LHMA"] {
            #expect(throws: TokenError.self) { try ApplicationSecret(base64: text) }
        }
        #expect(try Published.secret().revealed() == Published.secretText)
        #expect(try Published.secret() == Published.secret())
        var random = RandomSource.seeded(1)
        let generated = ApplicationSecret.generate(random: &random)
        #expect(generated != ApplicationSecret.generate(random: &random))
        #expect(try ApplicationSecret(base64: generated.revealed()) == generated)
    }

    @Test func badSecretIsNotQuoted() {
        let error = #expect(throws: TokenError.self) { try ApplicationSecret(base64: "hunter2hunter2!") }
        #expect(error?.description.contains("hunter2") == false)
    }

    @Test func secretsNeverPrint() throws {
        struct Holder {
            var secret: ApplicationSecret
            var optional: ApplicationSecret?
            var list: [ApplicationSecret]
        }
        let secret = try Published.secret()
        let holder = Holder(secret: secret, optional: secret, list: [secret])
        var dumped = ""
        dump(holder, to: &dumped)
        dump(secret, to: &dumped)
        let texts = [
            dumped, "\(secret)", String(reflecting: secret), "\(holder)", String(reflecting: holder),
            "\(secret.customMirror.children.map { $0 })",
        ]
        for text in texts {
            #expect(!text.contains("ax8h"))
            // Nor as numbers: the first bytes are 107, 31, 33.
            #expect(!text.contains("107"))
            #expect(!text.lowercased().contains("6b1f"))
        }
        #expect("\(secret)".contains("not shown"))
    }

    @Test func tokensNeverPrint() throws {
        let token = try verify(Published.guide)
        var dumped = ""
        dump(token, to: &dumped)
        dump([token], to: &dumped)
        for text in [dumped, "\(token)", String(reflecting: token), "\(Optional(token) as Any)"] {
            #expect(!text.contains("EUltTTD4"))
            #expect(!text.contains("eyJ"))
        }
    }
}
