import SIP
import Testing

@Suite("Published digest examples")
struct DigestVectorTests {
    @Test("RFC 2617 section 3.5")
    func rfc2617() {
        let secret = DigestInput.secret(
            algorithm: .md5, username: "Mufasa", realm: "testrealm@host.com", password: "Circle Of Life")
        #expect(secret == "939e7578ed9e3c518a452acee763bce9")
        let input = DigestInput(
            algorithm: .md5, realm: "testrealm@host.com", nonce: "dcd98b7102dd2f0e8b11d0f600bfb0c093", method: "GET",
            uri: "/dir/index.html", quality: (nonceCount: "00000001", clientNonce: "0a4f113b"))
        #expect(input.response(secret: secret) == "6629fae49393a05397450978507c4ef1")
    }

    @Test(
        "RFC 7616 section 3.9.1",
        arguments: [
            (DigestAlgorithm.md5, "8ca523f5e9506fed4657c9700eebdbec"),
            (.sha256, "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ])
    func rfc7616(algorithm: DigestAlgorithm, response: String) {
        let secret = DigestInput.secret(
            algorithm: algorithm, username: "Mufasa", realm: "http-auth@example.org", password: "Circle of Life")
        let input = DigestInput(
            algorithm: algorithm, realm: "http-auth@example.org", nonce: "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
            method: "GET", uri: "/dir/index.html",
            quality: (nonceCount: "00000001", clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"))
        #expect(input.response(secret: secret) == response)
    }

    @Test("without qop, as RFC 2069 servers want it (erratum 749 of that RFC)")
    func rfc2069() {
        let secret = DigestInput.secret(
            algorithm: .md5, username: "Mufasa", realm: "testrealm@host.com", password: "CircleOfLife")
        let input = DigestInput(
            algorithm: .md5, realm: "testrealm@host.com", nonce: "dcd98b7102dd2f0e8b11d0f600bfb0c093", method: "GET",
            uri: "/dir/index.html", quality: nil)
        #expect(input.response(secret: secret) == "1949323746fe6a43ef61f9606e7febea")
    }

    @Test("RFC 7616 section 3.9.2: SHA-512-256 with a hashed user name")
    func rfc7616UserHash() {
        // The RFC's own figures are wrong (erratum 4897): these were computed from its formulas with Python's hashlib.
        let username = "J\u{e4}s\u{f8}n Doe"
        let (realm, algorithm) = ("api@example.org", DigestAlgorithm.sha512256)
        #expect(
            DigestInput.userHash(algorithm: algorithm, username: username, realm: realm)
                == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b")
        let secret = DigestInput.secret(
            algorithm: algorithm, username: username, realm: realm, password: "Secret, or not?")
        let input = DigestInput(
            algorithm: algorithm, realm: realm, nonce: "5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK",
            method: "GET", uri: "/doe.json",
            quality: (nonceCount: "00000001", clientNonce: "NTg6RKcb9boFIAS3KrFK9BGeh+niz/sm"))
        #expect(
            input.response(secret: secret) == "7a4e1192babbba02e91182d2895bfdbf7adafc6e48d4e517ca301974843d840c")
    }

    @Test("names of algorithms")
    func names() {
        #expect(DigestAlgorithm(name: nil) == .md5)
        #expect(DigestAlgorithm(name: "md5") == .md5)
        #expect(DigestAlgorithm(name: "sha-256") == .sha256)
        #expect(DigestAlgorithm(name: "SHA-256-SESS") == .sha256Session)
        #expect(DigestAlgorithm(name: "SHA-512-256") == .sha512256)
        #expect(DigestAlgorithm(name: "SHA-3") == nil)
    }
}
