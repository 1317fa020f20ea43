import Crypto
import Primitives
import SIP
import Token

/// Challenges as a registrar may send them, and credentials as a client may.
@Sendable func fuzzCredentials(_ bytes: [UInt8]) throws {
    let text = String(decoding: bytes.filter { $0 != 0x0D && $0 != 0x0A && $0 != 0 }, as: UTF8.self)
    for (status, name) in [(401, "WWW-Authenticate"), (407, "Proxy-Authenticate")] {
        var authenticator = Authenticator(
            credentials: [.bearer(token: "a.b.c"), .digest(username: "alice", password: "secret")], random: .seeded(1))
        var register = request(.register)
        let original = register
        var response = register.response(status: status)
        response.headers.append(name, text)
        for challenge in Challenge.challenges(in: response) { _ = challenge.hashValue }
        let result = authenticator.authorize(&register, after: response)
        if result == .retry {
            try expect(register.cseq?.number == 2, "a retry needs the next number")
        } else {
            try expect(register == original, "not to be sent again, but changed")
        }
        guard let printed = try? register.encoded(), let again = try? SIPMessage.parse(printed) else {
            throw Finding(description: "the credentials for a challenge are not printed: \(text.debugDescription)")
        }
        try expect(again.validate() == nil, "the credentials for a challenge make the request invalid")
        var next = request(.register)
        authenticator.preauthorize(&next)
        try expect((try? next.encoded()) != nil, "credentials before the challenge are not printed")
    }
    var verifier = DigestVerifier(realm: "example.com", random: .seeded(1))
    for name in ["Authorization", "Proxy-Authorization"] {
        var register = request(.register)
        register.headers.append(name, text)
        let isProxy = name == "Proxy-Authorization"
        _ = Challenge.bearerToken(in: register, isProxy: isProxy)
        let verdict = verifier.verify(register, isProxy: isProxy, at: .zero) { _, _ in "0123456789abcdef" }
        if case .accepted = verdict { throw Finding(description: "accepted: \(text.debugDescription)") }
    }
}

private func request(_ method: SIPMethod) -> SIPMessage {
    var request = SIPMessage(request: method, uri: SIPURI(user: nil, host: "example.com"))
    request.prependVia(SIPVia(transport: "TLS", host: "192.0.2.1", branch: "z9hG4bK1"))
    request.maxForwards = 70
    var from = SIPAddress(uri: SIPURI(user: "alice", host: "example.com"))
    request.to = from
    from.tag = "1"
    request.from = from
    request.callID = "1"
    request.cseq = SIPCSeq(number: 1, method: method)
    return request
}

/// A registration token as text; and header and claims, separated by NUL, signed with the right key, so that what comes
/// after the signature is tried, too.
@Sendable func fuzzToken(_ bytes: [UInt8]) throws {
    let secretBytes = Array("0123456789abcdef".utf8)
    let now: Int64 = 1_700_000_000
    func verify(_ text: String) throws {
        _ = try? RegistrationToken.parse(text)
        let secret = try ApplicationSecret(bytes: secretBytes)
        guard let token = try? RegistrationToken.verify(text, secrets: { _ in secret }, now: now) else { return }
        try expect(token.header.algorithm == "HS256", "accepted with another algorithm: \(text)")
        let claims = token.claims
        try expect(claims.expiry > now - 120, "accepted after its time: \(text)")
    }
    try verify(String(decoding: bytes, as: UTF8.self))
    let pieces = bytes.pieces(separatedBy: [0])
    guard pieces.count == 2 else { return }
    let text = base64URLEncode(pieces[0]) + "." + base64URLEncode(pieces[1])
    let key = hmacSHA256(key: secretBytes, Array("20231114".utf8))
    try verify(text + "." + base64URLEncode(hmacSHA256(key: key, Array(text.utf8))))
}
