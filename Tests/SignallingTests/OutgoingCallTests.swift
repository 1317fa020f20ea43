import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// What a caller does with responses that a well-behaved proxy would not send, or not often.
struct OutgoingCallTests {
    private static let challenge = "Digest realm=\"example.org\", nonce=\"abc\", algorithm=MD5, qop=\"auth\""

    /// A peer's challenge gets nothing: neither the token nor, from another realm, a digest.
    @Test(arguments: ["Bearer realm=\"example.org\", scope=\"register\"", OutgoingCallTests.challenge])
    func challengesGetNoToken(value: String) throws {
        var lone = LoneAgent()
        lone.act { $0.credentialsChanged([.bearer(token: "secret.token.value")], at: $1) }
        let (record, invite) = try lone.calling()
        var response = lone.response(401, to: invite, tag: "peer")
        response.headers["WWW-Authenticate"] = value
        try lone.receive(response)
        #expect(record.reason == .forbidden)

        let (running, _) = try lone.established()
        lone.act { $0.hangUp(running.handle, at: $1) }
        let bye = try #require(lone.sent.last)
        #expect(bye.method == .bye)
        for status in [401, 407] {
            var refusal = lone.response(status, to: bye)
            refusal.headers[status == 401 ? "WWW-Authenticate" : "Proxy-Authenticate"] = value
            try lone.receive(refusal)
        }
        lone.advance(by: .seconds(40))
        let texts = try lone.sent.map { String(decoding: try $0.encoded(), as: UTF8.self) }
        #expect(!texts.contains { $0.contains("secret") || $0.contains("Authorization") })
        #expect(lone.agent.calls.isEmpty && lone.agent.legs.isEmpty)
    }

    @Test func digestAnswersTheDomainsChallengeOnly() throws {
        var lone = LoneAgent()
        lone.act { $0.credentialsChanged([.digest(username: "bob", password: "pw")], at: $1) }
        let (record, invite) = try lone.calling()
        var response = lone.response(407, to: invite, tag: "proxy")
        response.headers["Proxy-Authenticate"] = Self.challenge
        try lone.receive(response)
        let second = try #require(lone.sent.last { $0.method == .invite })
        #expect(second.headers["Proxy-Authorization"]?.contains("username=\"bob\"") == true)
        #expect(second.cseq?.number == 2)
        #expect(second.from?.tag == invite.from?.tag)
        #expect(second.vias.count == 1 && second.topVia?.branch != invite.topVia?.branch)
        try lone.receive(lone.response(200, to: second, tag: "peer", body: LoneAgent.offer))
        #expect(record.events == ["answered"])
        let ack = try #require(lone.sent.last)
        #expect(ack.method == .ack && ack.cseq?.number == 2)
        #expect(ack.headers["Proxy-Authorization"] != nil)
        lone.act { $0.hangUp(record.handle, at: $1) }
        #expect(lone.sent.last?.cseq?.number == 3)

        let (foreign, other) = try lone.calling()
        var strange = lone.response(401, to: other, tag: "x")
        strange.headers["WWW-Authenticate"] =
            "Digest realm=\"evil.example\", nonce=\"abc\", algorithm=MD5, qop=\"auth\""
        let sent = try lone.receive(strange)
        #expect(foreign.reason == .forbidden)
        #expect(sent.map(\.method) == [.ack])
    }

    @Test func answerWithoutTagIsOneCall() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        var answer = lone.response(200, to: invite, body: LoneAgent.offer)
        answer.to = invite.to
        try lone.receive(answer)
        let again = try lone.receive(answer)
        #expect(record.events == ["answered"])
        #expect(again.map(\.method) == [.ack])
    }

    @Test func unusableAnswersEndTheCallProperly() throws {
        for body in [nil, "nonsense", LoneAgent.sdp(port: 0), LoneAgent.sdp(port: 4_000, formats: "99")] {
            var lone = LoneAgent()
            let (record, invite) = try lone.calling()
            let sent = try lone.receive(lone.response(200, to: invite, tag: "peer", body: body))
            #expect(sent.map(\.method) == [.ack, .bye])
            #expect(record.events == ["ended"])
            #expect(record.reason == .media)
        }
    }

    @Test func forksAreEndedOnceEach() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        try lone.receive(lone.response(200, to: invite, tag: "a", body: LoneAgent.offer))
        for _ in 0..<3 {
            for tag in ["b", "c"] { try lone.receive(lone.response(200, to: invite, tag: tag, body: LoneAgent.offer)) }
        }
        let acks = lone.sent.filter { $0.method == .ack }.compactMap { $0.to?.tag }
        #expect(acks == ["a", "b", "c", "b", "c", "b", "c"])
        #expect(lone.sent.filter { $0.method == .bye }.compactMap { $0.to?.tag } == ["b", "c"])
        // No end of devices: the memory has one.
        for number in 0..<1_000 {
            try lone.receive(lone.response(200, to: invite, tag: "t\(number)", body: LoneAgent.offer))
        }
        #expect(lone.agent.answeredInvites.values.first?.acknowledgements.count == AnsweredInvite.maximumAnswers)
        #expect(record.events == ["answered"])
        lone.advance(by: .seconds(70))
        #expect(lone.agent.answeredInvites.isEmpty && lone.agent.legs.isEmpty)
        #expect(lone.agent.calls.count == 1)
    }

    @Test func provisionalResponsesInEveryOrder() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        for (status, expected) in [
            (100, []), (183, ["progressed"]), (181, ["progressed"]), (180, ["progressed", "rang"]),
            (180, ["progressed", "rang"]), (183, ["progressed", "rang"]),
        ] {
            try lone.receive(lone.response(status, to: invite, tag: status == 100 ? nil : "t\(status)"))
            #expect(record.events == expected)
        }
        try lone.receive(lone.response(302, to: invite, tag: "t"))
        #expect(record.reason == .failed)
        #expect(record.termination?.sipStatus == 302)
    }

    @Test func cancelledCallWhoseAnswerIsStrangeEndsOnce() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        try lone.receive(lone.response(180, to: invite, tag: "peer"))
        lone.act { $0.hangUp(record.handle, reason: "SIP;cause=408;text=\"no answer\"", at: $1) }
        var answer = lone.response(200, to: invite, tag: "peer", body: LoneAgent.offer)
        answer.callID = "another"
        try lone.receive(answer)
        // It is no answer, so the CANCEL's time runs out (9.1).
        lone.advance(by: .seconds(40))
        #expect(record.events == ["progressed", "rang", "ended"])
        #expect(lone.agent.calls.isEmpty)
    }

    @Test func lateFinalAfterALateProvisional() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        lone.act { $0.hangUp(record.handle, at: $1) }
        lone.advance(by: .seconds(20))
        // Only now the CANCEL may go, and the answer that crosses it comes when the user is long gone.
        let sent = try lone.receive(lone.response(180, to: invite, tag: "peer"))
        #expect(sent.map(\.method) == [.cancel])
        lone.advance(by: .seconds(20))
        let crossed = try lone.receive(lone.response(200, to: invite, tag: "peer", body: LoneAgent.offer))
        #expect(crossed.map(\.method) == [.ack, .bye])
        lone.advance(by: .seconds(70))
        #expect(lone.agent.calls.isEmpty && lone.agent.legs.isEmpty)
    }
}
