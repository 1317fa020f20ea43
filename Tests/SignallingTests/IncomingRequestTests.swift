import Primitives
import SIP
import Testing

@testable import Signalling

/// What a user agent answers to requests that are no ordinary calls.
struct IncomingRequestTests {
    private func statuses(_ messages: [SIPMessage]) -> [Int] { messages.compactMap(\.status) }

    @Test(arguments: [
        ("v=0\r\nthis is no SDP\r\n", "application/sdp", 400),
        (LoneAgent.sdp(port: 4_000, formats: "97", extra: "a=rtpmap:97 speex/8000\r\n"), "application/sdp", 488),
        (LoneAgent.sdp(port: 0), "application/sdp", 488),
        ("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n", "application/sdp", 488),
        (LoneAgent.offer, "text/plain", 415), (LoneAgent.offer, "application/sdpx", 415),
        ("--b\r\n", "multipart/mixed;boundary=b", 415),
    ])
    func unusableOffersAreRefusedBeforeAnythingRings(body: String, type: String, status: Int) throws {
        var lone = LoneAgent()
        let answers = try lone.receive(lone.request(.invite, body: body, type: type))
        #expect(statuses(answers) == [status])
        #expect(answers.first?.to?.tag != nil)
        if status == 415 { #expect(answers.first?.headers["Accept"] == "application/sdp") }
        #expect(lone.records.isEmpty)
        #expect(lone.agent.calls.isEmpty)
        lone.advance(by: .seconds(40))
        #expect(lone.agent.legs.isEmpty)
    }

    @Test func bodyTypeMayHaveParametersAndEncodingsAreRefused() throws {
        var lone = LoneAgent()
        let good = try lone.receive(
            lone.request(.invite, body: LoneAgent.offer, type: "Application/SDP ;charset=utf-8"))
        #expect(statuses(good) == [180])
        var packed = lone.request(.invite, callID: "call-2", body: LoneAgent.offer)
        packed.headers["Content-Encoding"] = "gzip"
        #expect(statuses(try lone.receive(packed)) == [415])
    }

    @Test(arguments: [
        ("text/plain", 406), ("", 406), ("application/sdpx", 406), ("text/plain, Application/SDP;level=1", 180),
        ("application/*;q=0.1", 180), ("*/*", 180),
    ])
    func whoTakesNoSessionDescriptionGetsNone(accept: String, status: Int) throws {
        var lone = LoneAgent()
        var invite = lone.request(.invite, body: LoneAgent.offer)
        invite.headers["Accept"] = accept
        #expect(statuses(try lone.receive(invite)) == [status])
        #expect(lone.records.isEmpty == (status != 180))
    }

    @Test func requiredExtensionsAreRefused() throws {
        var lone = LoneAgent()
        var invite = lone.request(.invite, body: LoneAgent.offer)
        invite.headers["Require"] = "100rel, precondition, Sec-Agree"
        let answers = try lone.receive(invite)
        #expect(statuses(answers) == [420])
        #expect(answers.first?.headers.values("Unsupported") == ["precondition", "Sec-Agree"])
        #expect(lone.records.isEmpty)
    }

    @Test func optionsUnknownMethodsAndUnknownDialogs() throws {
        var lone = LoneAgent()
        let options = try lone.receive(lone.request(.options))
        #expect(statuses(options) == [200])
        #expect(options.first?.headers["Allow"] == UserAgent.allowedMethods)
        #expect(options.first?.headers["Supported"] == UserAgent.extensions.joined(separator: ", "))
        for type in ["application/sdp", "application/dtmf-relay", "message/sipfrag"] {
            #expect(options.first?.headers.values("Accept").contains(type) == true)
        }
        for (method, status) in [("MESSAGE", 405), ("PUBLISH", 405), ("FOO", 501), ("invite", 501)] {
            let answers = try lone.receive(lone.request(SIPMethod(rawValue: method)))
            #expect(statuses(answers) == [status], "\(method)")
            #expect(answers.first?.headers["Allow"] == UserAgent.allowedMethods)
        }
        let subscription = try lone.receive(lone.request(.subscribe))
        #expect(statuses(subscription) == [489])
        #expect(subscription.first?.headers["Allow-Events"] == "refer")
        #expect(statuses(try lone.receive(lone.request(.refer))) == [603])
        for method in [SIPMethod.notify, .info, .update, .prack] {
            #expect(statuses(try lone.receive(lone.request(method))) == [481], "\(method)")
        }
        for method in [SIPMethod.bye, .invite, .options, .info] {
            #expect(statuses(try lone.receive(lone.request(method, toTag: "unknown"))) == [481], "\(method.rawValue)")
        }
        #expect(statuses(try lone.receive(lone.request(.bye))) == [481])
        #expect(statuses(try lone.receive(lone.request(.cancel))) == [481])
        #expect(try lone.receive(lone.request(.ack, toTag: "unknown")).isEmpty)
        #expect(lone.records.isEmpty)
    }

    @Test(arguments: [nil, "z9hG4bK1"]) func aMethodOf600LettersMakesNoDialog(branch: String?) throws {
        let long = SIPMethod(rawValue: String(repeating: "A", count: 600))
        var lone = LoneAgent()
        var request = lone.request(long, body: LoneAgent.offer)
        request.topVia?.branch = branch
        #expect(statuses(try lone.receive(request)) == [501])
        // The method in CSeq only.
        request = lone.request(.invite, body: LoneAgent.offer)
        request.topVia?.branch = branch
        request.cseq = SIPCSeq(number: 1, method: long)
        #expect(statuses(try lone.receive(request)) == [400])
        #expect(lone.records.isEmpty)
        #expect(lone.agent.calls.isEmpty)
    }

    @Test func requestsWithinACall() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        #expect(statuses(try lone.receive(lone.request(.options, toTag: tag))) == [200])
        #expect(statuses(try lone.receive(lone.request(.message, toTag: tag))) == [405])
        #expect(statuses(try lone.receive(lone.request("FOO", toTag: tag))) == [501])
        #expect(statuses(try lone.receive(lone.request(.subscribe, toTag: tag))) == [489])
        #expect(statuses(try lone.receive(lone.request(.options, toTag: tag, sequence: 50))) == [500])
        #expect(statuses(try lone.receive(lone.request(.bye, toTag: tag, sequence: 50))) == [500])
        #expect(statuses(try lone.receive(lone.request(.bye, fromTag: "other", toTag: tag))) == [481])
        #expect(record.termination == nil)
        #expect(statuses(try lone.receive(lone.request(.bye, toTag: tag))) == [200])
        #expect(record.reason == .hungUp)
        #expect(statuses(try lone.receive(lone.request(.bye, toTag: tag))) == [481])
        lone.advance(by: .seconds(33))
        #expect(lone.agent.calls.isEmpty && lone.agent.legs.isEmpty)
    }

    @Test func byeEndsAnEarlyDialog() throws {
        var lone = LoneAgent()
        let answers = try lone.receive(lone.request(.invite, body: LoneAgent.offer))
        let tag = try #require(answers.first?.to?.tag)
        let bye = try lone.receive(lone.request(.bye, toTag: tag))
        #expect(statuses(bye) == [200, 487])
        #expect(lone.records.first?.reason == .canceled)
        #expect(lone.agent.calls.isEmpty)
    }

    @Test func maximumCalls() throws {
        var lone = LoneAgent { $0.maximumCalls = 2 }
        for number in 1...2 {
            let answers = try lone.receive(lone.request(.invite, callID: "c\(number)", body: LoneAgent.offer))
            #expect(statuses(answers) == [180])
        }
        #expect(statuses(try lone.receive(lone.request(.invite, callID: "c3", body: LoneAgent.offer))) == [486])
        let first = lone.records[0].handle
        lone.act { $0.hangUp(first, at: $1) }
        #expect(statuses(try lone.receive(lone.request(.invite, callID: "c4", body: LoneAgent.offer))) == [180])
    }

    @Test func inviteWithoutContactOrFromUserRings400() throws {
        var lone = LoneAgent()
        var invite = lone.request(.invite, body: LoneAgent.offer)
        invite.headers["Contact"] = nil
        #expect(statuses(try lone.receive(invite)) == [400])
        #expect(lone.records.isEmpty)
    }

    @Test func ringsEachMinuteAndHonoursExpires() throws {
        var lone = LoneAgent()
        var invite = lone.request(.invite, body: LoneAgent.offer)
        invite.expires = 130
        try lone.receive(invite)
        lone.advance(by: .seconds(129))
        #expect(lone.sent.filter { $0.status == 180 }.count == 3)
        #expect(Set(lone.sent.compactMap { $0.to?.tag }).count == 1)
        lone.advance(by: .seconds(1))
        #expect(lone.sent.last?.status == 487)
        #expect(lone.records.first?.reason == .noAnswer)
    }

    @Test func causesOfOtherProtocolsAreNoSIPStatus() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        var bye = lone.request(.bye, toTag: tag)
        bye.headers["Reason"] = "Q.850;cause=16;text=\"Normal; clearing\""
        try lone.receive(bye)
        #expect(record.termination?.sipStatus == nil)
        #expect(record.termination?.phrase == "Normal; clearing")

        let (second, secondTag) = try lone.established(callID: "call-2")
        var both = lone.request(.bye, callID: "call-2", toTag: secondTag)
        both.headers["Reason"] = "Q.850;cause=16, SIP ;cause=488 ;text=\"Not here\""
        try lone.receive(both)
        #expect(second.termination?.sipStatus == 488)
        #expect(second.termination?.phrase == "Not here")
    }

    @Test func earlyReInviteAndMergedInvite() throws {
        var lone = LoneAgent()
        let invite = lone.request(.invite, body: LoneAgent.offer)
        let tag = try #require(try lone.receive(invite).first?.to?.tag)
        let early = try lone.receive(lone.request(.invite, toTag: tag, body: LoneAgent.offer))
        #expect(statuses(early) == [500])
        #expect(early.first?.retryAfter.map { (0...10).contains($0) } == true)
        // The same INVITE over another path.
        var merged = invite
        merged.vias = [lone.via()]
        #expect(statuses(try lone.receive(merged)) == [482])
        #expect(lone.records.count == 1)
        // Over the same path it is only a repetition.
        #expect(statuses(try lone.receive(invite)) == [180])
    }
}
