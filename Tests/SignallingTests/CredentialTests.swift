import Primitives
import SIP
import Testing

@testable import Signalling

/// Who gets a token or a digest, and who never does, whatever he asks for.
struct CredentialTests {
    private static let bearer = "Bearer realm=\"example.org\", scope=\"call\""
    private static let digest = "Digest realm=\"example.org\", nonce=\"abc\", algorithm=SHA-256, qop=\"auth\""

    /// The credentials in what was sent since, by method.
    private func credentials(_ messages: [SIPMessage]) -> [String] {
        messages.flatMap { message in
            ["Authorization", "Proxy-Authorization"].flatMap { name in
                message.headers.all(name).map { "\(message.method?.rawValue ?? "") \(name) \($0.prefix { $0 != " " })" }
            }
        }
    }

    /// A registered agent with a token; the first hop has asked for it when `isProxyAsking`.
    private func registered(isProxyAsking: Bool, flow: SIPFlow = LoneAgent.flow) throws -> LoneAgent {
        var lone = LoneAgent(flow: flow)
        lone.act { $0.credentialsChanged([.bearer(token: "canary")], at: $1) }
        lone.act { $0.start(at: $1) }
        var challenge = lone.response(isProxyAsking ? 407 : 401, to: try #require(lone.sent.last))
        challenge.headers[isProxyAsking ? "Proxy-Authenticate" : "WWW-Authenticate"] = Self.bearer
        try lone.receive(challenge)
        lone.act { $0.credentialsChanged([.bearer(token: "canary")], at: $1) }
        try lone.acceptRegistration()
        return lone
    }

    @Test(arguments: [401, 407]) func calleeThatAsksForTheTokenGetsNothing(status: Int) throws {
        var lone = try registered(isProxyAsking: false)
        lone.sent = []
        let (record, invite) = try lone.calling()
        var challenge = lone.response(status, to: invite, tag: "peer")
        challenge.headers[status == 401 ? "WWW-Authenticate" : "Proxy-Authenticate"] = Self.bearer
        try lone.receive(challenge)
        #expect(record.reason == .forbidden)
        #expect(credentials(lone.sent) == [])
    }

    @Test func proxyThatAskedAtTheRegistrationGetsTheTokenWhenItAsks() throws {
        var lone = try registered(isProxyAsking: true)
        lone.sent = []
        let (record, invite) = try lone.calling()
        #expect(credentials(lone.sent) == [])
        var challenge = lone.response(407, to: invite, tag: "proxy")
        challenge.headers["Proxy-Authenticate"] = Self.bearer
        try lone.receive(challenge)
        #expect(credentials(lone.sent) == ["INVITE Proxy-Authorization Bearer"])
        let second = try #require(lone.sent.last { $0.method == .invite })
        try lone.receive(lone.response(200, to: second, tag: "peer", body: LoneAgent.offer))
        #expect(record.events == ["answered"])
        lone.sent = []
        // In the call it is the peer who might ask.
        lone.act { $0.hangUp(record.handle, at: $1) }
        let bye = try #require(lone.sent.last)
        #expect(bye.method == .bye)
        for status in [401, 407] {
            var refusal = lone.response(status, to: bye)
            refusal.headers["WWW-Authenticate"] = Self.bearer
            refusal.headers["Proxy-Authenticate"] = Self.digest
            try lone.receive(refusal)
        }
        lone.advance(by: .seconds(40))
        #expect(credentials(lone.sent.filter { $0.method != .register }) == [])
    }

    @Test func calleeWhoAsksTwiceIsRefused() throws {
        var lone = try registered(isProxyAsking: true)
        let (record, invite) = try lone.calling()
        var challenge = lone.response(407, to: invite, tag: "proxy")
        challenge.headers["Proxy-Authenticate"] = Self.bearer
        try lone.receive(challenge)
        challenge = lone.response(407, to: try #require(lone.sent.last { $0.method == .invite }), tag: "proxy")
        challenge.headers["Proxy-Authenticate"] = Self.bearer
        try lone.receive(challenge)
        #expect(record.reason == .forbidden)
        #expect(lone.sent.count { $0.method == .invite } == 2)
    }

    @Test func realmOfTheRegistrarsChallengeIsOurs() throws {
        var lone = LoneAgent { $0.credentials = [.digest(username: "bob", password: "canary")] }
        lone.act { $0.start(at: $1) }
        var challenge = lone.response(401, to: try #require(lone.sent.last))
        challenge.headers["WWW-Authenticate"] = "Digest realm=\"asterisk\", nonce=\"n\", qop=\"auth\""
        try lone.receive(challenge)
        try lone.acceptRegistration()
        lone.sent = []
        let (_, invite) = try lone.calling()
        challenge = lone.response(407, to: invite, tag: "proxy")
        challenge.headers["Proxy-Authenticate"] = "Digest realm=\"asterisk\", nonce=\"m\", qop=\"auth\""
        try lone.receive(challenge)
        #expect(credentials(lone.sent) == ["INVITE Proxy-Authorization Digest"])
        // Another one is not, although we have a password.
        challenge = lone.response(407, to: try lone.calling().invite, tag: "proxy")
        challenge.headers["Proxy-Authenticate"] = "Digest realm=\"elsewhere\", nonce=\"m\", qop=\"auth\""
        lone.sent = []
        try lone.receive(challenge)
        #expect(credentials(lone.sent) == [])
    }

    @Test(arguments: [
        (SIPTransport.udp, "192.0.2.1", false), (.tcp, "192.0.2.1", false), (.ws, "192.0.2.1", false),
        (.tls, "192.0.2.1", true), (.wss, "192.0.2.1", true), (.udp, "127.0.0.1", true), (.tcp, "::1", true),
    ])
    func tokenNeverLeavesInTheClear(transport: SIPTransport, host: String, isSent: Bool) throws {
        let flow = SIPFlow(transport: transport, remote: TransportAddress(host: host, port: 5060), connection: 1)
        var lone = LoneAgent(flow: flow)
        lone.act { $0.credentialsChanged([.bearer(token: "canary")], at: $1) }
        lone.act { $0.start(at: $1) }
        for status in [401, 407] {
            guard let register = lone.sent.last else { break }
            var challenge = lone.response(status, to: register)
            challenge.headers[status == 401 ? "WWW-Authenticate" : "Proxy-Authenticate"] = Self.bearer
            try lone.receive(challenge)
            lone.act { $0.credentialsChanged([.bearer(token: "canary")], at: $1) }
        }
        lone.advance(by: .seconds(600))
        #expect(lone.sent.contains { $0.method == .register })
        let texts = try lone.sent.map { String(decoding: try $0.encoded(), as: UTF8.self) }
        #expect(texts.contains { $0.contains("canary") } == isSent)
    }
}
