import Primitives
import SIP
import SinchEnvironment
import Testing
import Token

@Suite struct RegistrarTests {
    // MARK: Tokens

    private static let good = Forgery.payload()

    /// What is wrong, the token, and the kind that `RegistrationToken.verify` calls it.
    private static let refused: [(name: String, token: String, code: TokenError.Code)] = [
        ("not a token", "hello", .malformed),
        ("two parts", "e30.e30", .malformed),
        ("bad base64", Forgery.token(payload: good) + "=", .base64),
        ("payload is no JSON", Forgery.token(payload: "{"), .json),
        ("alg none", Forgery.token(header: #"{"alg":"none","kid":"hkdfv1-20231114"}"#, payload: good), .algorithm),
        ("alg RS256", Forgery.token(header: #"{"alg":"RS256","kid":"hkdfv1-20231114"}"#, payload: good), .algorithm),
        ("kid of another scheme", Forgery.token(header: #"{"alg":"HS256","kid":"v2"}"#, payload: good), .keyID),
        (
            "kid of another day",
            Forgery.token(
                header: #"{"alg":"HS256","kid":"hkdfv1-20231113"}"#, payload: good, signingDay: "20231113"), .keyID
        ),
        ("wrong secret", Forgery.token(payload: good, secret: Array(repeating: 7, count: 16)), .signature),
        (
            "unknown application",
            Forgery.token(payload: Forgery.payload(application: "11111111-2222-4333-8444-555555555555")),
            .unknownApplication
        ),
        (
            "expired",
            Forgery.token(payload: Forgery.payload(issuedAt: World.unixStart - 700, expiry: World.unixStart - 100)),
            .expired
        ),
        (
            "not yet valid",
            Forgery.token(
                payload: Forgery.payload(
                    issuedAt: World.unixStart + 300,
                    expiry: World.unixStart + 900)), .notYetValid
        ),
        ("too short a life", Forgery.token(payload: Forgery.payload(expiry: World.unixStart + 30)), .lifetime),
        ("no nonce", Forgery.token(payload: Forgery.payload(nonce: "")), .missingClaim),
        ("claim twice", Forgery.token(payload: Forgery.payload(extra: #","exp":9999999999"#)), .duplicateClaim),
        ("exp is text", Forgery.token(payload: good.replacingExpiry()), .claimType),
    ]

    @Test(arguments: refused.indices) func badTokenIs401AndSaysWhy(index: Int) throws {
        let (name, token, code) = Self.refused[index]
        var world = try World()
        var alice = world.client("alice", port: 40_001)
        try world.deliver(alice.register(token: token), from: alice.flow)
        let answer = try #require(world.takeResponses(alice.flow).first)
        #expect(answer.status == 401, "\(name)")
        let expected = #expect(throws: TokenError.self) {
            try RegistrationToken.verify(
                token,
                secrets: {
                    $0 == World.application ? try? ApplicationSecret(bytes: World.secret(World.application)) : nil
                }, now: world.unixTime)
        }
        #expect(expected?.code == code, "\(name)")
        let challenge = try #require(Challenge.challenges(in: answer).first)
        #expect(challenge.realm == World.realm)
        #expect(challenge.scope == "register")
        #expect(challenge.error == "invalid_token")
        #expect(challenge.errorDescription?.isEmpty == false, "\(name)")
        #expect(
            challenge.errorDescription?.filter(\.isLetter) == expected?.message.filter { $0.isLetter && $0.isASCII },
            "\(name)")
        #expect(answer.headers["Date"]?.hasSuffix("GMT") == true)
        #expect(world.core.registrationCount == 0)
    }

    @Test func missingTokenIs401WithoutError() throws {
        var world = try World()
        var alice = world.client("alice", port: 40_001)
        for scheme in [nil, "Digest username=\"alice\"", "Bearer", "Basic YTpi"] as [String?] {
            var request = alice.register(token: nil)
            if let scheme { request.headers.append("Authorization", scheme) }
            try world.deliver(request, from: alice.flow)
            let answer = try #require(world.takeResponses(alice.flow).first)
            #expect(answer.status == 401)
            #expect(answer.headers["WWW-Authenticate"] == #"Bearer realm="sinchctl.localhost", scope="register""#)
        }
    }

    @Test func otherUsersTokenIs403AndTwoTokensAre400() throws {
        var world = try World()
        var alice = world.client("alice", port: 40_001)
        try world.deliver(alice.register(token: try world.token(for: alice, user: "bob")), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [403])
        var request = alice.register(token: try world.token(for: alice))
        request.headers.append("Authorization", "Bearer abc")
        try world.deliver(request, from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [400])
        // User names are case-sensitive.
        try world.deliver(alice.register(token: try world.token(for: alice, user: "Alice")), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [403])
        #expect(world.core.registrationCount == 0)
    }

    @Test func tokenIsGoodUntilItExpiresAndAMinuteMore() throws {
        var world = try World()
        var alice = world.client("alice", port: 40_001)
        let token = try world.token(for: alice)
        try world.advance(by: .seconds(659))
        try world.deliver(alice.register(token: token), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [200])
        try world.advance(by: .seconds(2))
        try world.deliver(alice.register(token: token), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [401])
        // The registration itself stands.
        #expect(world.core.registrationCount == 1)
    }

    @Test func tokenLimitsTheRegistrationOfItsDevice() throws {
        var world = try World { $0.maxExpires = 1_000_000 }
        var alice = world.client("alice", port: 40_001)
        let limit = world.unixTime + 200_000
        let payload = Forgery.payload(extra: #","sinch:rtc:instance:exp":\#(limit)"#)
        var request = alice.register(token: Forgery.token(payload: payload))
        request.expires = 900_000
        try world.deliver(request, from: alice.flow)
        let answer = try #require(world.takeResponses(alice.flow).first)
        #expect(answer.status == 200)
        #expect(answer.contacts.first?.parameters["expires"] == "200000")
    }

    // MARK: Contacts

    @Test func answerListsAllDevicesWithTheTimeLeft() throws {
        var world = try World()
        _ = try world.registered("alice", port: 40_001)
        try world.advance(by: .milliseconds(10_500))
        var second = world.client("alice", .tcp, port: 40_002)
        var request = second.register(token: try world.token(for: second))
        request.expires = 100
        try world.deliver(request, from: second.flow)
        let answer = try #require(world.takeResponses(second.flow).first)
        #expect(answer.status == 200)
        #expect(answer.headers["Require"] == "outbound")
        #expect(answer.headers["Date"] == "Tue, 14 Nov 2023 22:13:35 GMT")
        let left = answer.contacts.map { $0.parameters["expires"] }
        #expect(left == ["100", "590"])
        #expect(answer.contacts[0].uri == second.contact.uri)
        #expect(answer.contacts[0].parameters["+sip.instance"] == "\"\(second.instance)\"")
        #expect(answer.to?.tag != nil)

        // A query changes nothing.
        var query = second.register(token: try world.token(for: second))
        query.contacts = []
        query.expires = nil
        try world.deliver(query, from: second.flow)
        #expect(world.takeResponses(second.flow).first?.contacts.count == 2)
    }

    @Test func expiresOfTheContactBeatsTheHeaderAndBoundsApply() throws {
        for (header, parameter, granted) in [
            (nil, nil, "600"), (100, nil, "100"), (100, "50", "50"), (99_999, nil, "3600"), (nil, "abc", "600"),
            (nil, "99999999999999999999", "600"),
        ] as [(Int?, String?, String)] {
            var world = try World()
            var alice = world.client("alice", port: 40_001)
            var request = alice.register(token: try world.token(for: alice))
            if let header { request.expires = header }
            var contact = alice.registrationContact
            contact.parameters["expires"] = parameter
            request.contacts = [contact]
            try world.deliver(request, from: alice.flow)
            let answer = try #require(world.takeResponses(alice.flow).first)
            #expect(answer.status == 200)
            #expect(answer.contacts.first?.parameters["expires"] == granted)
        }
    }

    @Test func tooShortIs423WithMinExpires() throws {
        var world = try World()
        var alice = world.client("alice", port: 40_001)
        var request = alice.register(token: try world.token(for: alice))
        request.expires = 29
        try world.deliver(request, from: alice.flow)
        let answer = try #require(world.takeResponses(alice.flow).first)
        #expect(answer.status == 423)
        #expect(answer.minExpires == 30)
        #expect(world.core.registrationCount == 0)
    }

    @Test func registrationRunsOutAndIsLogged() throws {
        var world = try World()
        var alice = world.client("alice", port: 40_001)
        try world.register(&alice, expires: 60)
        try world.advance(by: .seconds(50))
        try world.register(&alice, expires: 60)
        try world.advance(by: .seconds(59))
        #expect(world.core.registrationCount == 1)
        try world.advance(by: .seconds(2))
        #expect(world.core.registrationCount == 0)
        #expect(
            world.events.last
                == .unregistered(
                    user: "alice", application: World.application, contact: "sip:alice@127.0.0.1:40001",
                    reason: .expired, devicesLeft: 0))
        #expect(world.core.nextTimeout == nil)
    }

    @Test func starRemovesAllAndIsChecked() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        _ = try world.registered("alice", port: 40_002)
        for (expires, status, left) in [(nil, 400, 2), (60, 400, 2), (0, 200, 0)] as [(Int?, Int, Int)] {
            var request = alice.register(token: try world.token(for: alice))
            request.headers["Contact"] = "*"
            request.expires = expires
            try world.deliver(request, from: alice.flow)
            #expect(world.takeResponses(alice.flow).map(\.status) == [status])
            #expect(world.core.registrationCount == left)
        }
    }

    @Test func delayedRegisterDoesNotUndoALaterOne() throws {
        var world = try World()
        var alice = world.client("alice", port: 40_001)
        let first = alice.register(token: try world.token(for: alice))
        var removal = alice.register(token: try world.token(for: alice))
        removal.expires = 0
        let third = alice.register(token: try world.token(for: alice))
        try world.deliver(first, from: alice.flow)
        try world.deliver(third, from: alice.flow)
        _ = world.take(alice.flow)
        try world.deliver(removal, from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [500])
        #expect(world.core.registrationCount == 1)
        // Another Call-ID, as after a restart of the client, is not held to the order.
        var restarted = world.client("alice", port: 40_001)
        try world.register(&restarted)
        #expect(world.core.registrationCount == 1)
    }

    @Test func newFlowOfAnInstanceReplacesTheOldOne() throws {
        var world = try World()
        var alice = try world.registered("alice", .tcp, port: 40_001)
        let old = alice.flow
        alice.flow.connection += 100
        alice.flow.remote.port = 40_077
        try world.register(&alice)
        #expect(world.core.registrationCount == 1)
        // The end of the old connection does not matter any more.
        try world.fail(old)
        #expect(world.core.registrationCount == 1)
        try world.fail(alice.flow)
        #expect(world.core.registrationCount == 0)
    }

    @Test func refusalsOfWhatCannotBeRegistered() throws {
        let changes: [(Int, (inout SIPMessage) -> Void)] = [
            (420, { $0.headers.append("Require", "gruu, outbound") }),
            (404, { $0.requestURI = SIPURI(user: nil, host: "example.com") }),
            (404, { $0.to = SIPAddress(uri: SIPURI(user: "alice", host: "example.com")) }),
            (404, { $0.to = SIPAddress(uri: SIPURI(user: nil, host: World.realm)) }),
            (400, { $0.headers["Contact"] = "<mailto:alice@example.com>" }),
            (
                400,
                { request in
                    request.contacts = (1...11).map {
                        SIPAddress(uri: SIPURI(user: "alice", host: "127.0.0.1", port: $0))
                    }
                }
            ),
        ]
        for (status, change) in changes {
            var world = try World()
            var alice = world.client("alice", port: 40_001)
            var request = alice.register(token: try world.token(for: alice))
            change(&request)
            try world.deliver(request, from: alice.flow)
            let answer = try #require(world.takeResponses(alice.flow).first)
            #expect(answer.status == status)
            if status == 420 { #expect(answer.headers["Unsupported"] == "gruu") }
            #expect(world.core.registrationCount == 0)
        }
    }

    @Test func registrationsAreBounded() throws {
        var world = try World {
            $0.limits.maxRegistrations = 3
            $0.limits.maxContactsPerUser = 2
        }
        let first = try world.registered("alice", port: 40_001)
        _ = try world.registered("alice", port: 40_002)
        // A third device of one user takes the place of the one refreshed longest ago.
        _ = try world.registered("alice", port: 40_003)
        #expect(world.core.registrationCount == 2)
        #expect(
            world.events.contains(
                .unregistered(
                    user: "alice", application: World.application, contact: first.contact.uri.description,
                    reason: .displaced, devicesLeft: 2)))
        _ = try world.registered("bob", port: 40_004)
        var carol = world.client("carol", port: 40_005)
        try world.deliver(carol.register(token: try world.token(for: carol)), from: carol.flow)
        let answer = try #require(world.takeResponses(carol.flow).first)
        #expect(answer.status == 503)
        #expect(answer.retryAfter == 5)
        #expect(world.core.registrationCount == 3)
    }
}

extension String {
    fileprivate func replacingExpiry() -> String {
        guard let range = range(of: #""exp":"#) else { return self }
        return String(self[..<range.upperBound]) + "\"soon\"" + self[range.upperBound...].drop { $0.isNumber }
    }

    private func range(of text: String) -> Range<String.Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
