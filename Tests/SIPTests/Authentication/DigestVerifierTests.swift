import Primitives
import SIP
import Testing

@Suite("Digest verifier")
struct DigestVerifierTests {
    private static func secret(_ username: String, _ algorithm: DigestAlgorithm) -> String? {
        guard username == "alice" else { return nil }
        return DigestInput.secret(algorithm: algorithm, username: username, realm: "example.com", password: "secret")
    }

    private var verifier = DigestVerifier(realm: "example.com", random: .seeded(9))

    /// A client's answer to the verifier's challenge.
    private mutating func answered(
        password: String = "secret", username: String = "alice", isProxy: Bool = false, at now: MonotonicTime = .zero
    ) throws -> (request: SIPMessage, authenticator: Authenticator) {
        var authenticator = Authenticator(
            credentials: [.digest(username: username, password: password)], random: .seeded(1))
        var request = LayerProbe.received(.register)
        let challenge = verifier.challenge(request, isProxy: isProxy, toTag: "x", at: now)
        #expect(challenge.status == (isProxy ? 407 : 401))
        let result = authenticator.authorize(&request, after: challenge)
        #expect(result == .retry)
        return (request, authenticator)
    }

    @Test("client and server agree, on SHA-256 first", arguments: [false, true])
    mutating func agreement(isProxy: Bool) throws {
        let (request, _) = try answered(isProxy: isProxy)
        let header = try #require(request.headers[isProxy ? "Proxy-Authorization" : "Authorization"])
        #expect(header.contains("algorithm=SHA-256"))
        let verdict = verifier.verify(request, isProxy: isProxy, at: .zero, secret: Self.secret)
        #expect(verdict == .accepted(username: "alice"))
    }

    @Test("every offered algorithm works", arguments: DigestAlgorithm.allCases)
    func algorithms(algorithm: DigestAlgorithm) throws {
        var verifier = DigestVerifier(realm: "example.com", algorithms: [algorithm], random: .seeded(9))
        var authenticator = Authenticator(credentials: [.digest(username: "alice", password: "secret")])
        var request = LayerProbe.received(.register)
        let result = authenticator.authorize(&request, after: verifier.challenge(request, at: .zero))
        #expect(result == .retry)
        let verdict = verifier.verify(request, at: .zero, secret: Self.secret)
        #expect(verdict == .accepted(username: "alice"))
    }

    @Test("wrong password, unknown user, changed method, URI or realm are refused")
    mutating func refusals() throws {
        let refused = DigestVerifier.Verdict.refused(reason: "the user name or password is wrong")
        var (request, _) = try answered(password: "guess")
        var verdict = verifier.verify(request, at: .zero, secret: Self.secret)
        #expect(verdict == refused)
        (request, _) = try answered(username: "mallory")
        verdict = verifier.verify(request, at: .zero, secret: Self.secret)
        #expect(verdict == refused)
        (request, _) = try answered()
        var other = SIPMessage(request: .invite, uri: try #require(request.requestURI))
        other.headers["Authorization"] = request.headers["Authorization"]
        verdict = verifier.verify(other, at: .zero, secret: Self.secret)
        #expect(verdict == refused)
        other = request
        other.requestURI = SIPURI(user: "carol", host: "example.com")
        verdict = verifier.verify(other, at: .zero, secret: Self.secret)
        #expect(verdict == .refused(reason: "the Digest uri is not the request URI"))
        verdict = verifier.verify(LayerProbe.received(.register), at: .zero, secret: Self.secret)
        #expect(verdict == .missing)
        other = request
        other.headers["Authorization"] = request.headers["Authorization"]?.replacing("example.com\"", with: "else\"")
        verdict = verifier.verify(other, at: .zero, secret: Self.secret)
        #expect(verdict == .missing)
        // The right one still passes: none of the refused ones has used up its nonce.
        verdict = verifier.verify(request, at: .zero, secret: Self.secret)
        #expect(verdict == .accepted(username: "alice"))
    }

    @Test("a nonce expires, and the client's second try with `stale` succeeds")
    mutating func expiry() throws {
        var (request, authenticator) = try answered()
        let later = MonotonicTime.zero + .seconds(300)
        var verdict = verifier.verify(request, at: later - .milliseconds(1), secret: Self.secret)
        #expect(verdict == .accepted(username: "alice"))
        request = LayerProbe.received(.register)
        authenticator.preauthorize(&request)
        verdict = verifier.verify(request, at: later, secret: Self.secret)
        #expect(verdict == .stale)
        let result = authenticator.authorize(&request, after: verifier.challenge(request, stale: true, at: later))
        #expect(result == .retry)
        verdict = verifier.verify(request, at: later, secret: Self.secret)
        #expect(verdict == .accepted(username: "alice"))
    }

    @Test("a request cannot be replayed, the next count can be used")
    mutating func replay() throws {
        var (request, authenticator) = try answered()
        var verdict = verifier.verify(request, at: .zero, secret: Self.secret)
        #expect(verdict == .accepted(username: "alice"))
        verdict = verifier.verify(request, at: .zero, secret: Self.secret)
        #expect(verdict == .stale)
        request = LayerProbe.received(.register)
        authenticator.preauthorize(&request)
        verdict = verifier.verify(request, at: .zero, secret: Self.secret)
        #expect(verdict == .accepted(username: "alice"))
    }

    @Test("nonces cannot be made up, nor taken from another server")
    mutating func forgery() throws {
        var other = DigestVerifier(realm: "example.com", random: .seeded(10))
        var authenticator = Authenticator(credentials: [.digest(username: "alice", password: "secret")])
        var request = LayerProbe.received(.register)
        _ = authenticator.authorize(&request, after: other.challenge(request, at: .zero))
        var verdict = verifier.verify(request, at: .zero, secret: Self.secret)
        #expect(verdict == .stale)
        for nonce in ["", "0", String(repeating: "0", count: 64), String(repeating: "é", count: 32)] {
            request = LayerProbe.received(.register)
            request.headers["Authorization"] = """
                Digest username="alice", realm="example.com", nonce="\(nonce)", uri="sip:bob@example.com", \
                response="00", qop=auth, nc=00000001, cnonce="x", algorithm=MD5
                """
            verdict = verifier.verify(request, at: .zero, secret: Self.secret)
            #expect(verdict == .stale)
        }
    }

    @Test(
        "incomplete or weaker credentials are refused",
        arguments: ["qop=auth, ", "nc=00000001, ", "cnonce=", "algorithm=SHA-256, "])
    mutating func incomplete(part: String) throws {
        var (request, _) = try answered()
        let header = try #require(request.headers["Authorization"])
        let replacement = part.hasPrefix("algorithm") ? "algorithm=SHA-512-256, " : "x-"
        #expect(header.contains(part))
        request.headers["Authorization"] = header.replacing(part, with: replacement)
        let verdict = verifier.verify(request, at: .zero, secret: Self.secret)
        guard case .refused = verdict else {
            Issue.record("\(verdict)")
            return
        }
    }

    @Test("the memory of nonce counts is bounded")
    func bounded() throws {
        var verifier = DigestVerifier(realm: "example.com", algorithms: [.md5], random: .seeded(9))
        for number in 0..<5000 {
            let now = MonotonicTime.zero + .milliseconds(number)
            var authenticator = Authenticator(
                credentials: [.digest(username: "alice", password: "secret")], random: .seeded(1))
            var request = LayerProbe.received(.register)
            _ = authenticator.authorize(&request, after: verifier.challenge(request, at: now))
            let verdict = verifier.verify(request, at: now, secret: Self.secret)
            #expect(verdict == .accepted(username: "alice"))
        }
        #expect(verifier.rememberedNonces == 4096)
    }

    @Test("printing shows no key")
    func printing() {
        let verifier = DigestVerifier(realm: "example.com", random: .seeded(9))
        var dumped = ""
        dump(verifier, to: &dumped)
        #expect("\(verifier)" == "DigestVerifier(realm: example.com)")
        #expect(!dumped.contains("key"))
    }
}
