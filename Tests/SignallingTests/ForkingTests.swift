import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// A caller whose call reaches several devices: early media of each, 199, and several answers.
struct ForkingTests {
    @Test func earlyMediaOfEachDevice() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        try lone.receive(lone.response(180, to: invite, tag: "a"))
        try lone.receive(lone.response(183, to: invite, tag: "b", body: LoneAgent.sdp(port: 40_000)))
        try lone.receive(lone.response(183, to: invite, tag: "c", body: LoneAgent.sdp(port: 41_000)))
        #expect(record.events == ["progressed", "rang", "earlyMedia 1", "earlyMedia 2"])
        // The same again is nothing new; another description of the same device is.
        try lone.receive(lone.response(183, to: invite, tag: "b", body: LoneAgent.sdp(port: 40_000)))
        try lone.receive(lone.response(183, to: invite, tag: "b", body: LoneAgent.sdp(port: 40_010, version: 2)))
        #expect(record.events.suffix(1) == ["earlyMedia 1"] && record.events.count == 5)
        // 199: that one is out. Its media end once, and do not come back.
        try lone.receive(lone.response(199, to: invite, tag: "c"))
        try lone.receive(lone.response(199, to: invite, tag: "c"))
        try lone.receive(lone.response(183, to: invite, tag: "c", body: LoneAgent.sdp(port: 41_002, version: 2)))
        #expect(record.events.suffix(2) == ["earlyMedia 1", "earlyMediaEnded 2"])
        // A device that was silent answers, with a description of its own.
        try lone.receive(lone.response(200, to: invite, tag: "a", body: LoneAgent.sdp(port: 44_000)))
        #expect(record.events.last == "answered" && record.media.last?.remoteRTPPort == 44_000)
        #expect(lone.agent.calls[record.handle]?.forks.isEmpty == true)
        #expect(lone.agent.calls[record.handle]?.dialog?.remoteTag == "a")
    }

    @Test func severalAnswersKeepOne() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        try lone.receive(lone.response(183, to: invite, tag: "a", body: LoneAgent.sdp(port: 40_000)))
        try lone.receive(lone.response(200, to: invite, tag: "b", body: LoneAgent.sdp(port: 41_000)))
        for tag in ["a", "c", "d"] {
            let sent = try lone.receive(lone.response(200, to: invite, tag: tag, body: LoneAgent.offer))
            #expect(sent.map(\.method) == [.ack, .bye])
            #expect(sent.allSatisfy { $0.to?.tag == tag })
            // Repeated: acknowledged once more, but hung up only once.
            let again = try lone.receive(lone.response(200, to: invite, tag: tag, body: LoneAgent.offer))
            #expect(again.map(\.method) == [.ack])
        }
        #expect(record.events == ["progressed", "earlyMedia 0", "answered"])
        #expect(record.media.last?.remoteRTPPort == 41_000)
    }

    /// However many devices a hostile proxy invents, no more than a few are remembered.
    @Test func floodOfDevices() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        for number in 0..<500 {
            try lone.receive(lone.reliable(183, number: 1, to: invite, tag: "t\(number)", body: LoneAgent.offer))
        }
        #expect(record.events.filter { $0.hasPrefix("earlyMedia") }.count == CallDialog.maximumForks)
        #expect(lone.agent.calls[record.handle]?.forks.count == CallDialog.maximumForks)
        #expect(lone.all(.prack).count == CallDialog.maximumForks)
        // A device that was not remembered can answer all the same.
        try lone.receive(lone.response(200, to: invite, tag: "t400", body: LoneAgent.sdp(port: 45_000)))
        #expect(record.media.last?.remoteRTPPort == 45_000 && record.isAnswered)
    }

    @Test func earlyMediaThenAnswerWithoutDescription() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        try lone.receive(lone.response(183, to: invite, tag: "a", body: LoneAgent.sdp(port: 40_000)))
        try lone.receive(lone.response(200, to: invite, tag: "a"))
        #expect(record.events == ["progressed", "earlyMedia 0", "answered"])
        #expect(record.media.first == record.media.last)
        // Without any description there is nothing to talk over.
        let (mute, second) = try lone.calling()
        try lone.receive(lone.response(180, to: second, tag: "a"))
        try lone.receive(lone.response(200, to: second, tag: "a"))
        #expect(mute.reason == .media)
    }

    /// Another description in the 2xx than in the 183: the last one counts, be the first one reliable or not.
    @Test(arguments: [true, false])
    func answerThatDiffersFromEarlyMedia(isReliable: Bool) throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        let early =
            isReliable
            ? lone.reliable(183, number: 1, to: invite, tag: "a", body: LoneAgent.sdp(port: 40_000))
            : lone.response(183, to: invite, tag: "a", body: LoneAgent.sdp(port: 40_000))
        try lone.receive(early)
        try lone.receive(lone.response(200, to: invite, tag: "a", body: LoneAgent.sdp(port: 42_000, formats: "8")))
        #expect(record.events == ["progressed", "earlyMedia 0", "answered"])
        #expect(record.media.last?.remoteRTPPort == 42_000 && record.media.last?.codec.name == "PCMA")
    }

    /// The callee changes early media by UPDATE; what its 2xx repeats of the first answer is out of date then.
    @Test func updateBeforeTheAnswer() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        let offer = LoneAgent.sdp(port: 46_000, version: 2)
        try lone.receive(lone.response(183, to: invite, tag: "a", body: LoneAgent.sdp(port: 40_000)))
        let early = lone.requestBack(.update, in: invite, tag: "a", body: offer)
        #expect(try lone.receive(early).first?.status == 491, "our offer has no reliable answer yet")
        try lone.receive(lone.reliable(183, number: 1, to: invite, tag: "a", body: LoneAgent.sdp(port: 40_000)))
        let update = lone.requestBack(.update, in: invite, tag: "a", body: offer)
        let answer = try #require(try lone.receive(update).first)
        #expect(answer.status == 200 && answer.text.contains("m=audio 30000") && answer.contacts.count == 1)
        #expect(record.events.last == "earlyMedia 0" && record.media.last?.remoteRTPPort == 46_000)
        try lone.receive(lone.response(200, to: invite, tag: "a", body: LoneAgent.sdp(port: 40_000)))
        #expect(record.isAnswered && record.media.last?.remoteRTPPort == 46_000)
    }

    @Test func earlyMediaAndRefusal() throws {
        var lone = LoneAgent()
        lone.act { $0.credentialsChanged([.digest(username: "bob", password: "pw")], at: $1) }
        let (record, invite) = try lone.calling()
        try lone.receive(lone.response(183, to: invite, tag: "a", body: LoneAgent.offer))
        // A challenge ends the early dialogs of the first INVITE; those of the second one are others.
        var challenge = lone.response(407, to: invite, tag: "proxy")
        challenge.headers["Proxy-Authenticate"] = "Digest realm=\"example.org\", nonce=\"n\", qop=\"auth\""
        try lone.receive(challenge)
        #expect(record.events == ["progressed", "earlyMedia 0", "earlyMediaEnded 0"])
        let second = try #require(lone.last(.invite))
        try lone.receive(lone.response(183, to: second, tag: "a", body: LoneAgent.offer))
        #expect(record.events.last == "earlyMedia 1")
        try lone.receive(lone.response(486, to: second, tag: "a"))
        #expect(record.reason == .busy)
    }

    @Test func deviceThatHangsUpWhileItRings() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        try lone.receive(lone.response(183, to: invite, tag: "a", body: LoneAgent.offer))
        let bye = lone.requestBack(.bye, in: invite, tag: "a")
        #expect(try lone.receive(bye).map(\.status) == [200])
        #expect(record.events == ["progressed", "earlyMedia 0", "earlyMediaEnded 0"], "the INVITE goes on")
        try lone.receive(lone.response(200, to: invite, tag: "b", body: LoneAgent.offer))
        #expect(record.isAnswered)
    }

    @Test func cancelledCallStillAcknowledges() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        try lone.receive(lone.response(100, to: invite))
        lone.act { $0.hangUp(record.handle, at: $1) }
        #expect(lone.last(.cancel) != nil)
        try lone.receive(lone.reliable(183, number: 3, to: invite, tag: "a", body: LoneAgent.offer))
        #expect(lone.all(.prack).count == 1, "otherwise the callee repeats it")
        #expect(record.events == ["ended"])
        try lone.receive(lone.response(487, to: invite, tag: "a"))
        lone.advance(by: .seconds(70))
        #expect(lone.agent.calls.isEmpty && lone.agent.legs.isEmpty)
    }
}
