import SIP
import Testing

@Suite("Challenges")
struct ChallengeTests {
    static func response(_ status: Int = 401, www: [String] = [], proxy: [String] = []) -> SIPMessage {
        var response = SIPMessage(status: status)
        for line in www { response.headers.append("WWW-Authenticate", line) }
        for line in proxy { response.headers.append("Proxy-Authenticate", line) }
        return response
    }

    @Test("a digest challenge with every parameter, in any order and case")
    func digest() throws {
        let line = """
            dIgEsT stale=TRUE, QOP="auth,auth-int", algorithm=SHA-256, opaque="o\\"q", nonce="n,1=2", Realm="a realm"
            """
        let challenge = try #require(Challenge.challenges(in: Self.response(www: [line])).first)
        #expect(challenge.scheme == .digest)
        #expect(challenge.realm == "a realm")
        #expect(challenge.nonce == "n,1=2")
        #expect(challenge.opaque == "o\"q")
        #expect(challenge.qop == ["auth", "auth-int"])
        #expect(challenge.algorithm == "SHA-256")
        #expect(challenge.stale)
        #expect(!challenge.isProxy)
    }

    @Test("a bearer challenge (RFC 8898)")
    func bearer() throws {
        let line = """
            Bearer realm="example.com", scope="sip", authz_server="https://auth.example.com/", error="invalid_token", \
            error_description="expired"
            """
        let challenge = try #require(Challenge.challenges(in: Self.response(407, proxy: [line])).first)
        #expect(challenge.scheme == .bearer)
        #expect(challenge.scope == "sip")
        #expect(challenge.authzServer == "https://auth.example.com/")
        #expect(challenge.error == "invalid_token")
        #expect(challenge.errorDescription == "expired")
        #expect(challenge.isProxy)
    }

    @Test(
        "several challenges on a line or on several, unknown schemes among them",
        arguments: [
            (["Digest realm=\"a\", nonce=\"1\", Bearer realm=\"b\""], ["digest a", "bearer b"]),
            (["Bearer realm=\"b\"", "Digest realm=\"a\", nonce=\"1\""], ["bearer b", "digest a"]),
            (["Negotiate, Digest realm=\"a\", nonce=\"1\""], ["Negotiate ", "digest a"]),
            (
                ["NTLM TlRMTVNTUAACAAAA==, Basic realm=\"c\", Digest realm=a, nonce=1"],
                ["NTLM ", "Basic c", "digest a"]
            ),
            ([",, Digest  realm = \"a\" ,, nonce=\"1\" , "], ["digest a"]),
            (["Digest realm=\"a, Bearer realm=\\\"x\\\"\", nonce=\"1\""], ["digest a, Bearer realm=\"x\""]),
            (["Bearer"], ["bearer "]),
            (["Digest realm=\"never closed"], ["digest "]),
            (["realm=\"nobody's\"", "\"\", =, Digest realm=\"a\""], ["digest a"]),
            ([""], []),
        ] as [([String], [String])])
    func several(lines: [String], expected: [String]) {
        let found = Challenge.challenges(in: Self.response(www: lines)).map { challenge in
            switch challenge.scheme {
            case .digest: "digest \(challenge.realm)"
            case .bearer: "bearer \(challenge.realm)"
            case .other(let name): "\(name) \(challenge.realm)"
            }
        }
        #expect(found == expected)
    }

    @Test("no text can trap the reader")
    func noise() {
        let alphabet = Array("Digest,= \"\\realm\tB/~")
        var state: UInt64 = 7
        for _ in 0..<3000 {
            var text = ""
            for _ in 0..<24 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                text.append(alphabet[Int(state >> 40) % alphabet.count])
            }
            let count = Challenge.challenges(in: Self.response(www: [text])).count
            #expect(count <= 24)
        }
    }

    @Test("a server reads the token of a request and writes its challenge")
    func server() throws {
        var request = LayerProbe.request(.register)
        #expect(Challenge.bearerToken(in: request) == nil)
        request.headers["Authorization"] = "bearer eyJh.eyJp-_~+/.c2ln=="
        #expect(Challenge.bearerToken(in: request) == "eyJh.eyJp-_~+/.c2ln==")
        #expect(Challenge.bearerToken(in: request, isProxy: true) == nil)
        let line = Challenge.bearerHeader(
            realm: "a\"b", error: "invalid_token", errorDescription: "the token has expired")
        let challenge = try #require(Challenge.challenges(in: Self.response(www: [line])).first)
        #expect(challenge.realm == "a\"b")
        #expect(challenge.error == "invalid_token")
        #expect(challenge.errorDescription == "the token has expired")
    }
}
