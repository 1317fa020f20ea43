import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// How calls end: what each status and Reason means, who gets credentials, and hanging up at every moment.
struct CallEndTests {
    @Test func everyStatusHasAMeaning() {
        let table: [CallEndReason: [Int]] = [
            .forbidden: [401, 402, 403, 407, 428, 433, 436, 437, 438, 470, 494],
            .noSuchUser: [404, 410, 414, 416, 484, 485, 604],
            .timeout: [408, 504], .noAnswer: [480], .busy: [486, 600], .canceled: [487],
            .media: [406, 415, 488, 493, 580, 606], .network: [430], .declined: [603, 607, 608],
        ]
        for status in 300..<700 {
            let expected = table.first { $0.value.contains(status) }?.key ?? .failed
            let termination = CallTermination(status: status, phrase: "", hasRung: false)
            #expect(termination.reason == expected, "\(status)")
            #expect(termination.sipStatus == status && !termination.isLocal)
        }
        #expect(CallTermination(status: 408, phrase: "", hasRung: true).reason == .noAnswer)
    }

    /// Causes of the telephone network, which a gateway puts beside a status that says little (RFC 3398, 8.2.6.1).
    @Test(arguments: [
        (500, "Q.850;cause=1;text=\"unallocated\"", CallEndReason.noSuchUser), (503, "Q.850;cause=17", .busy),
        (480, "Q.850 ; cause=19", .noAnswer), (480, "q.850;cause=21", .declined), (500, "Q.850;cause=28", .noSuchUser),
        (500, "SIP;cause=500, Q.850;cause=57", .forbidden), (500, "Q.850;cause=88", .media),
        (503, "Q.850;cause=102", .timeout), (500, "Q.850;cause=41", .failed), (500, "Q.850;cause=x", .failed),
        (500, "Q.850", .failed), (500, ";;;", .failed), (404, "Q.850;cause=17", .noSuchUser),
        (486, "Q.850;cause=1", .busy),
    ])
    func telephoneCauses(status: Int, reason: String, expected: CallEndReason) throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        var refusal = lone.response(status, to: invite, tag: "peer")
        refusal.headers["Reason"] = reason
        try lone.receive(refusal)
        #expect(record.reason == expected)
        #expect(record.termination?.sipStatus == status)
    }

    @Test(arguments: [
        ("SIP;cause=200;text=\"Call completed elsewhere\"", CallEndReason.otherDeviceAnswered),
        ("SIP ;cause=200", .otherDeviceAnswered), ("Q.850;cause=26", .otherDeviceAnswered),
        ("Q.850;cause=16, SIP;cause=200", .otherDeviceAnswered), ("SIP;cause=487", .canceled),
        ("SIP;cause=600;text=\"Busy Everywhere\"", .canceled), ("Q.850;cause=200", .canceled), ("junk", .canceled),
    ])
    func reasonOfACancel(reason: String, expected: CallEndReason) throws {
        var lone = LoneAgent()
        let invite = lone.request(.invite, body: LoneAgent.offer)
        try lone.receive(invite)
        let record = try #require(lone.records.last)
        var cancel = lone.request(.cancel, sequence: invite.cseq?.number)
        cancel.vias = invite.vias
        cancel.headers["Reason"] = reason
        #expect(try lone.receive(cancel).map(\.status) == [200, 487])
        #expect(record.reason == expected)
    }

    @Test func reasonOfAByeIsTold() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.answered()
        var bye = lone.requestBack(.bye, in: invite)
        bye.headers.append("Reason", "Q.850;cause=16;text=\"Normal; clearing\"")
        try lone.receive(bye)
        #expect(record.reason == .hungUp && record.termination?.phrase == "Normal; clearing")
        #expect(record.termination?.sipStatus == nil)
    }

    @Test func ourReasonsAreSent() throws {
        var lone = LoneAgent()
        let reason = "SIP;cause=200;text=\"done\""
        let (record, _) = try lone.answered()
        lone.act { $0.hangUp(record.handle, reason: reason, at: $1) }
        #expect(lone.last(.bye)?.headers["Reason"] == reason)
        let (other, invite) = try lone.calling()
        try lone.receive(lone.response(180, to: invite, tag: "a"))
        lone.act { $0.hangUp(other.handle, reason: reason, at: $1) }
        #expect(lone.last(.cancel)?.headers["Reason"] == reason)
        // And when the CANCEL crosses the answer.
        try lone.receive(lone.response(200, to: invite, tag: "a", body: LoneAgent.offer))
        #expect(lone.all(.bye).count == 2 && lone.last(.bye)?.headers["Reason"] == reason)
        // A callee who hangs up before the ACK.
        let incoming = lone.request(.invite, callID: "late", body: LoneAgent.offer)
        try lone.receive(incoming)
        let third = try #require(lone.records.last)
        lone.act { $0.answer(third.handle, media: LoneAgent.media, at: $1) }
        let tag = lone.sent.last?.to?.tag
        lone.act { $0.hangUp(third.handle, reason: reason, at: $1) }
        #expect(lone.all(.bye).count == 2)
        try lone.receive(lone.request(.ack, callID: "late", toTag: tag, sequence: incoming.cseq?.number))
        #expect(lone.all(.bye).count == 3 && lone.last(.bye)?.headers["Reason"] == reason)
    }

    /// A BYE that comes before the ACK of the answer ends the call all the same.
    @Test(arguments: [LoneAgent.offer, nil])
    func byeBeforeTheAck(body: String?) throws {
        var lone = LoneAgent()
        let invite = lone.request(.invite, body: body)
        try lone.receive(invite)
        let record = try #require(lone.records.last)
        lone.act { $0.answer(record.handle, media: LoneAgent.media, at: $1) }
        let tag = lone.sent.last?.to?.tag
        #expect(try lone.receive(lone.request(.bye, toTag: tag)).map(\.status) == [200])
        #expect(record.events == ["incoming"] + (body == nil ? [] : ["answered"]) + ["ended"])
        #expect(try lone.receive(lone.request(.ack, toTag: tag, sequence: invite.cseq?.number)).isEmpty)
        lone.advance(by: .seconds(40))
        #expect(lone.sent.filter { $0.status == 200 }.count == 2, "the answer is not repeated for a call that is over")
    }

    // MARK: Challenges within a call

    private static let ours = "Digest realm=\"example.org\", nonce=\"abc\", algorithm=MD5, qop=\"auth\""

    private func registeredWithDigest() throws -> LoneAgent {
        var lone = LoneAgent()
        lone.act {
            $0.start(at: $1)
            $0.credentialsChanged(
                [.digest(username: "bob", password: "pw"), .bearer(token: "secret.token.value")], at: $1)
        }
        try lone.acceptRegistration()
        return lone
    }

    /// What each request of ours within a call is, and how to make it.
    private static let makers: [(SIPMethod, @Sendable (inout LoneAgent, CallHandle) -> Void)] = [
        (.invite, { lone, handle in lone.act { $0.hold(handle, at: $1) } }),
        (.update, { lone, handle in lone.advance(by: .seconds(100)) }),
        (
            .info,
            { lone, handle in
                lone.act {
                    $0.sendInDialog(InDialogRequest(method: .info), of: handle, at: $1)
                    $0.settle(at: $1)
                }
            }
        ),
        (.bye, { lone, handle in lone.act { $0.hangUp(handle, at: $1) } }),
    ]

    @Test(arguments: [
        (401, "WWW-Authenticate", CallEndTests.ours),
        (407, "Proxy-Authenticate", "Digest realm=\"evil.example\", nonce=\"abc\", qop=\"auth\""),
        (407, "Proxy-Authenticate", "Bearer realm=\"example.org\""), (401, "Proxy-Authenticate", CallEndTests.ours),
        (407, "WWW-Authenticate", CallEndTests.ours + "x"),
    ])
    func peersGetNoCredentials(status: Int, header: String, challenge: String) throws {
        for (method, make) in Self.makers {
            var lone = try registeredWithDigest()
            let (record, _) = try lone.answered {
                $0.headers["Session-Expires"] = "200;refresher=uac"
                $0.headers["Allow"] = "UPDATE"
            }
            make(&lone, record.handle)
            let request = try #require(lone.last(method), "\(method)")
            var refusal = lone.response(status, to: request)
            refusal.headers[header] = challenge
            try lone.receive(refusal)
            #expect(lone.last(method) == request || method == .invite, "\(method)")
            let texts = lone.sent.map { String(decoding: (try? $0.encoded()) ?? [], as: UTF8.self) }
            #expect(!texts.filter { !$0.hasPrefix("REGISTER") }.contains { $0.contains("uthorization") }, "\(method)")
        }
    }

    @Test func proxyOfOurOwnGetsADigestOnce() throws {
        for (method, make) in Self.makers {
            var lone = try registeredWithDigest()
            let (record, _) = try lone.answered {
                $0.headers["Session-Expires"] = "200;refresher=uac"
                $0.headers["Allow"] = "UPDATE"
            }
            make(&lone, record.handle)
            let first = try #require(lone.last(method))
            var challenge = lone.response(407, to: first)
            challenge.headers["Proxy-Authenticate"] = Self.ours
            try lone.receive(challenge)
            if method == .bye {
                // It is over without one: nobody collects digests by challenging a BYE.
                #expect(lone.last(.bye) == first)
                continue
            }
            let second = try #require(lone.last(method))
            #expect(second.headers["Proxy-Authorization"]?.hasPrefix("Digest username=\"bob\"") == true, "\(method)")
            #expect(second.cseq?.number == (first.cseq?.number ?? 0) + 1 && second.vias.count == 1)
            var again = lone.response(407, to: second)
            again.headers["Proxy-Authenticate"] = Self.ours
            try lone.receive(again)
            #expect(lone.last(method) == second || method == .invite, "\(method)")
            #expect(lone.all(method).filter { $0.headers.contains("Proxy-Authorization") }.count == 1)
        }
    }

    @Test func prackIsChallengedLikeTheOthers() throws {
        var lone = try registeredWithDigest()
        let (record, invite) = try lone.calling()
        try lone.receive(lone.reliable(180, number: 1, to: invite))
        var challenge = lone.response(407, to: try #require(lone.last(.prack)))
        challenge.headers["Proxy-Authenticate"] = Self.ours
        try lone.receive(challenge)
        let second = try #require(lone.last(.prack))
        #expect(second.headers.contains("Proxy-Authorization") && second.cseq?.number == 3)
        #expect(second.rack?.responseNumber == 1)
        var foreign = lone.response(401, to: second)
        foreign.headers["WWW-Authenticate"] = Self.ours
        #expect(try lone.receive(foreign).isEmpty)
        try lone.receive(lone.response(200, to: invite, tag: "peer", body: LoneAgent.offer))
        #expect(record.isAnswered)
    }
}
