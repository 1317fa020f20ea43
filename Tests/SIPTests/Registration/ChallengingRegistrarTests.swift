import Primitives
import SIP
import Testing

/// Registrars that ask for credentials in every way there is, at the worst of times.
@Suite("Challenging registrars")
struct ChallengingRegistrarTests {
    private static let token = Credential.bearer(token: "first")
    private static let password = Credential.digest(username: "alice", password: "secret")
    private static let bearer = "Bearer realm=\"example.com\""
    private static let digest = "Digest realm=\"example.com\", nonce=\"n1\", qop=\"auth\", algorithm=SHA-256"

    /// The schemes of the credentials that the last REGISTER carries.
    private func carried(_ probe: RegistrationProbe, _ name: String = "Authorization") -> [String] {
        (probe.sent.last?.headers.all(name) ?? []).map { String($0.prefix { $0 != " " }) }
    }

    @Test(
        "one challenge among others is found, wherever it stands",
        arguments: [
            [bearer, digest], [digest, bearer], ["Negotiate", "NTLM abc==", digest, bearer],
            ["\(digest), Hawk id=\"1\", \(bearer)"], [", ,", "Basic realm=\"example.com\"", digest + " , " + bearer],
            ["Digest realm=\"example.com\", nonce=\"x\", algorithm=SHA-9", bearer, digest],
        ])
    func order(lines: [String]) {
        for (credential, scheme) in [(Self.token, "Bearer"), (Self.password, "Digest")] {
            var probe = RegistrationProbe()
            probe.start()
            probe.answer(401) { response in
                for line in lines { response.headers.append("WWW-Authenticate", line) }
            }
            #expect(probe.takeLog() == ["send 600", "needs credentials"] || lines[0].hasPrefix("Neg"))
            probe = RegistrationProbe()
            if scheme == "Digest" { probe.credentials(credential) }
            probe.start()
            if scheme == "Bearer" {
                // The token comes while the challenge is on its way: the answer carries it.
                probe.credentials(credential)
            }
            probe.answer(401) { response in
                for line in lines { response.headers.append("WWW-Authenticate", line) }
            }
            #expect(carried(probe) == [scheme])
            probe.answer(200)
            #expect(probe.takeLog() == ["send 600", "send 600", "registered 600"])
        }
    }

    @Test("several realms, of the proxy and of the registrar, are all answered, and known at the refresh")
    func realms() {
        var probe = RegistrationProbe()
        probe.credentials(Self.password)
        probe.start()
        probe.answer(407) { $0.headers["Proxy-Authenticate"] = "Digest realm=\"edge\", nonce=\"e\", qop=\"auth\"" }
        probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.digest }
        probe.answer(200)
        #expect(probe.takeLog() == ["send 600", "send 600", "send 600", "registered 600"])
        probe.runToTimeout()
        #expect(carried(probe) == ["Digest"])
        #expect(carried(probe, "Proxy-Authorization") == ["Digest"])
    }

    @Test("nonces that change with every answer: one more try, then refused; with stale two, then refused")
    func changingNonces() {
        for (suffix, tries) in [("", 1), (", stale=true", 2)] {
            var probe = RegistrationProbe()
            probe.credentials(Self.password)
            probe.start()
            for number in 0..<10 where probe.failures.isEmpty {
                probe.answer(401) {
                    $0.headers["WWW-Authenticate"] =
                        "Digest realm=\"example.com\", nonce=\"n\(number)\", qop=\"auth\"" + suffix
                }
            }
            let log = Array(repeating: "send 600", count: 1 + tries) + ["failed refused dead for good"]
            #expect(probe.takeLog() == log)
        }
    }

    @Test("realms that change with every answer end after two tries, too")
    func changingRealms() {
        var probe = RegistrationProbe()
        probe.credentials(Self.password)
        probe.start()
        for number in 0..<10 where probe.failures.isEmpty {
            let isProxy = number % 2 == 1
            probe.answer(isProxy ? 407 : 401) {
                $0.headers[isProxy ? "Proxy-Authenticate" : "WWW-Authenticate"] =
                    "Digest realm=\"r\(number)\", nonce=\"n\", qop=\"auth\""
            }
        }
        #expect(probe.takeLog() == ["send 600", "send 600", "send 600", "failed refused dead for good"])
    }

    @Test("401 and 407 in turn for a token end, too")
    func alternating() {
        var probe = RegistrationProbe()
        probe.credentials(Self.token)
        probe.start()
        for number in 0..<10 where probe.failures.isEmpty {
            let isProxy = number % 2 == 0
            probe.answer(isProxy ? 407 : 401) {
                $0.headers[isProxy ? "Proxy-Authenticate" : "WWW-Authenticate"] = Self.bearer
            }
        }
        #expect(probe.takeLog() == ["send 600", "send 600", "failed refused dead for good"])
    }

    @Test("a wrong password after a good time: the pauses grow to an hour, and the right one ends them at once")
    func changedPassword() {
        var probe = RegistrationProbe()
        probe.credentials(Self.password)
        probe.start()
        probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.digest }
        probe.answer(200)
        _ = probe.takeLog()
        var pauses: [Double] = []
        probe.runToTimeout()
        for number in 0..<40 {
            for _ in 0..<2 {
                probe.answer(401) {
                    $0.headers["WWW-Authenticate"] = Self.digest.replacing("n1", with: "other\(number)")
                }
            }
            #expect(probe.failures.last?.kind == .refused)
            let before = probe.seconds
            for _ in 0..<3 where probe.log.last != "send 600" { probe.runToTimeout() }
            #expect(probe.log.last == "send 600")
            pauses.append(probe.seconds - before)
        }
        for (index, pause) in pauses.enumerated() {
            let ceiling = min(60 * Double(1 << min(index, 20)), 3600)
            #expect((ceiling / 2 - 1e-6...ceiling + 1e-6).contains(pause), "\(index): \(pause)")
        }
        for _ in 0..<2 {
            probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.digest.replacing("n1", with: "last") }
        }
        #expect(probe.machine.nextAttempt != nil)
        _ = probe.takeLog()
        probe.credentials(.digest(username: "alice", password: "new secret"))
        #expect(probe.takeLog() == ["send 600"])
        probe.answer(200)
        #expect(probe.takeLog() == ["registered 600"])
    }

    @Test("a token that no longer works is asked for anew, and again after ever longer pauses, until one works")
    func agedTokens() {
        var probe = RegistrationProbe()
        probe.credentials(Self.token)
        probe.start()
        probe.answer(200)
        probe.runToTimeout()
        _ = probe.takeLog()
        for number in 0..<20 {
            probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.bearer + ", error=\"invalid_token\"" }
            if number > 0 {
                #expect(probe.log.last?.hasSuffix("retry") == true)
                for _ in 0..<3 where probe.log.last != "needs credentials" { probe.runToTimeout() }
            }
            #expect(probe.takeLog().last == "needs credentials")
            probe.credentials(.bearer(token: "token-\(number)"))
            #expect(probe.takeLog() == ["send 600"])
        }
        probe.answer(200)
        #expect(probe.takeLog() == ["registered 600"])
        #expect((1200...20 * 3600.0).contains(probe.seconds))
    }

    @Test("what a challenge says about the token is kept: the reason, who issues tokens, and the registrar's clock")
    func diagnosis() throws {
        var probe = RegistrationProbe()
        probe.credentials(Self.token)
        probe.start()
        probe.answer(401) {
            $0.headers["WWW-Authenticate"] =
                Self.bearer
                + ", error=\"invalid_token\", error_description=\"too \u{1b}[31mold\", token_error=\"expired\", "
                + "authz_server=\"https://issuer.example.net/\""
            $0.headers["Date"] = "Mon, 30 Nov 2026 09:00:00 GMT"
        }
        let failure = try #require(probe.failures.last)
        #expect(failure.tokenChallenge?.tokenError == "expired")
        #expect(failure.tokenChallenge?.authzServer == "https://issuer.example.net/")
        #expect(failure.date == "Mon, 30 Nov 2026 09:00:00 GMT")
        #expect(failure.reason == "the server did not accept the token: too  [31mold")
        // Nothing is sent because of it.
        probe.run(until: 100_000)
        #expect(probe.sent.count == 1)
    }

    @Test("nextnonce is used for the next request; a wrong proof of the server is a failure")
    func authenticationInfo() throws {
        var probe = RegistrationProbe()
        probe.credentials(Self.password)
        probe.start()
        probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.digest }
        probe.answer(200) { $0.headers["Authentication-Info"] = "nextnonce=\"n2\"" }
        probe.runToTimeout()
        let credentials = try #require(probe.sent.last?.headers["Authorization"])
        #expect(credentials.contains("nonce=\"n2\""))
        #expect(credentials.contains("nc=00000001"))
        _ = probe.takeLog()
        probe.answer(200) {
            $0.headers["Authentication-Info"] =
                "qop=auth, rspauth=\"\(String(repeating: "0", count: 64))\", nextnonce=\"evil\""
        }
        #expect(probe.takeLog() == ["failed refused alive retry"])
        #expect(probe.failures.last?.reason.contains("rspauth") == true)
        probe.runToTimeout()
        #expect(probe.sent.last?.headers["Authorization"]?.contains("evil") == false)
    }
}
