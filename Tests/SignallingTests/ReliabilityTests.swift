import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// Reliable provisional responses (RFC 3262), as caller and as callee, with every message lost, late or twice.
struct ReliabilityTests {
    // MARK: Caller

    @Test func callerAcknowledgesInOrder() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        #expect(invite.hasOption("100rel", in: "Supported"))
        try lone.receive(lone.reliable(180, number: 7, to: invite))
        let prack = try #require(lone.last(.prack))
        #expect(prack.headers["RAck"] == "7 1 INVITE")
        #expect(prack.cseq?.number == 2 && prack.to?.tag == "peer")
        // A repetition is no second one, and one that comes too early waits to be repeated.
        try lone.receive(lone.reliable(180, number: 7, to: invite))
        try lone.receive(lone.reliable(183, number: 9, to: invite, body: LoneAgent.offer))
        #expect(lone.all(.prack).count == 1)
        #expect(record.events == ["progressed", "rang"], "what came out of order is not looked at")
        try lone.receive(lone.reliable(183, number: 8, to: invite))
        try lone.receive(lone.reliable(183, number: 9, to: invite, body: LoneAgent.offer))
        #expect(lone.all(.prack).compactMap(\.rack?.responseNumber) == [7, 8, 9])
        #expect(record.events == ["progressed", "rang", "earlyMedia 0"])
        // An old one is dropped, too.
        try lone.receive(lone.reliable(183, number: 8, to: invite))
        #expect(lone.all(.prack).count == 3)
        // The answer came reliably: the 2xx needs none.
        try lone.receive(lone.response(200, to: invite, tag: "peer"))
        #expect(record.events.last == "answered")
        lone.act { $0.hangUp(record.handle, at: $1) }
        #expect(lone.last(.bye)?.cseq?.number == 5)
    }

    @Test func lostPrackIsRepeatedAndItsRefusalHurtsNobody() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        try lone.receive(lone.reliable(180, number: 1, to: invite))
        lone.advance(by: .milliseconds(1_600))
        #expect(lone.all(.prack).count == 3)
        let prack = try #require(lone.last(.prack))
        try lone.receive(lone.response(481, to: prack))
        #expect(record.termination == nil)
        try lone.receive(lone.response(200, to: invite, tag: "peer", body: LoneAgent.offer))
        #expect(record.isAnswered)
        #expect(lone.agent.calls[record.handle]?.unqueued.isEmpty == true)
    }

    @Test func eachForkHasItsOwnNumbers() throws {
        var lone = LoneAgent()
        let (_, invite) = try lone.calling()
        try lone.receive(lone.reliable(180, number: 5, to: invite, tag: "a"))
        try lone.receive(lone.reliable(180, number: 900, to: invite, tag: "b"))
        try lone.receive(lone.reliable(183, number: 6, to: invite, tag: "a"))
        #expect(lone.all(.prack).map { $0.to?.tag } == ["a", "b", "a"])
        #expect(lone.all(.prack).compactMap(\.cseq?.number) == [2, 2, 3])
        // The device that answers second is hung up with a CSeq above that of its PRACKs.
        try lone.receive(lone.response(200, to: invite, tag: "b", body: LoneAgent.offer))
        try lone.receive(lone.response(200, to: invite, tag: "a", body: LoneAgent.offer))
        let bye = try #require(lone.last(.bye))
        #expect(bye.to?.tag == "a" && bye.cseq?.number == 4)
    }

    @Test func unusableNumbersAreNotAcknowledged() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        for value in ["", "0", "-1", "4294967296", "abc"] {
            var response = lone.reliable(180, number: 1, to: invite)
            response.headers["RSeq"] = value
            try lone.receive(response)
        }
        try lone.receive(lone.reliable(180, number: .max, to: invite))
        try lone.receive(lone.reliable(180, number: 1, to: invite))
        #expect(lone.all(.prack).count == 1, "numbers do not wrap around")
        #expect(record.termination == nil)
    }

    @Test func delayedOfferIsAnsweredInThePrack() throws {
        var lone = LoneAgent()
        let handle = lone.act {
            $0.call(SIPURI(user: "alice", host: "example.org"), media: LoneAgent.media, offersMedia: false, at: $1)
        }
        let record = lone.record(handle)
        let invite = try #require(lone.last(.invite))
        #expect(invite.body.isEmpty && invite.contentType == nil)
        // An unreliable response cannot carry an offer.
        try lone.receive(lone.response(183, to: invite, tag: "peer", body: LoneAgent.offer))
        #expect(record.events == ["progressed"])
        try lone.receive(lone.reliable(183, number: 1, to: invite, body: LoneAgent.offer))
        #expect(lone.last(.prack)?.text.contains("m=audio 30000 RTP/AVP 0") == true)
        #expect(record.events == ["progressed", "earlyMedia 0"])
        try lone.receive(lone.response(200, to: invite, tag: "peer"))
        #expect(record.events.last == "answered")
        #expect(lone.last(.ack)?.body.isEmpty == true)
    }

    @Test(arguments: [true, false])
    func delayedOfferIsAnsweredInTheAck(isUsable: Bool) throws {
        var lone = LoneAgent()
        let handle = lone.act {
            $0.call(SIPURI(user: "alice", host: "example.org"), media: LoneAgent.media, offersMedia: false, at: $1)
        }
        let record = lone.record(handle)
        let invite = try #require(lone.last(.invite))
        let answer = lone.response(200, to: invite, tag: "peer", body: isUsable ? LoneAgent.offer : nil)
        try lone.receive(answer)
        #expect(lone.last(.ack)?.body.isEmpty == !isUsable)
        #expect(record.events == [isUsable ? "answered" : "ended"])
        #expect(lone.all(.bye).count == (isUsable ? 0 : 1))
        // The repeated 2xx gets the same ACK, answer included.
        let ack = try #require(lone.last(.ack))
        #expect(try lone.receive(answer).last == ack)
    }

    // MARK: Callee

    private func ringing(
        _ lone: inout LoneAgent, require: String? = nil, supported: String? = nil, body: String? = LoneAgent.offer
    ) throws -> (record: CallRecord, invite: SIPMessage) {
        var invite = lone.request(.invite, body: body)
        invite.headers["Require"] = require
        invite.headers["Supported"] = supported
        try lone.receive(invite)
        return (try #require(lone.records.last), invite)
    }

    private func prack(
        _ lone: inout LoneAgent, _ response: SIPMessage?, _ invite: SIPMessage, body: String? = nil
    ) throws -> SIPMessage {
        let response = try #require(response)
        var prack = lone.request(.prack, toTag: response.to?.tag, body: body)
        prack.rack = SIPRAck(responseNumber: try #require(response.rseq), cseq: try #require(invite.cseq))
        return prack
    }

    @Test func calleeRepeatsUntilThePrackComes() throws {
        var lone = LoneAgent()
        let (record, invite) = try ringing(&lone, require: "100rel")
        let ring = try #require(lone.sent.last)
        #expect(ring.status == 180 && ring.hasOption("100rel", in: "Require") && ring.rseq != nil)
        lone.advance(by: .milliseconds(3_600))
        let rings = lone.sent.filter { $0.status == 180 }
        #expect(rings.count == 4, "at 0, 0.5, 1.5 and 3.5 s")
        #expect(Set(rings.compactMap(\.rseq)).count == 1)
        let first = try prack(&lone, ring, invite)
        #expect(try lone.receive(first).map(\.status) == [200])
        #expect(try lone.receive(first).map(\.status) == [200], "a repetition gets the same answer")
        let second = try prack(&lone, ring, invite)
        #expect(try lone.receive(second).map(\.status) == [481], "another one acknowledges nothing")
        lone.advance(by: .seconds(30))
        #expect(lone.sent.filter { $0.status == 180 }.count == 4)
        // Each minute anew, with the next number.
        lone.advance(by: .seconds(30))
        #expect(lone.sent.last?.status == 180 && lone.sent.last?.rseq == ring.rseq.map { $0 + 1 })
        #expect(record.events == ["incoming"])
    }

    @Test func callIsGivenUpWhenNothingIsAcknowledged() throws {
        var lone = LoneAgent()
        let (record, _) = try ringing(&lone, require: "100rel")
        lone.advance(by: .seconds(31))
        #expect(record.termination == nil)
        lone.advance(by: .seconds(1))
        #expect(record.reason == .network)
        #expect(lone.sent.contains { $0.status == 504 })
    }

    @Test func answerDoesNotWaitForRinging() throws {
        var lone = LoneAgent()
        let (record, invite) = try ringing(&lone, require: "100rel")
        let ring = lone.sent.last
        lone.act { $0.answer(record.handle, media: LoneAgent.media, at: $1) }
        #expect(record.events == ["incoming", "answered"])
        // The PRACK comes late and is answered all the same; nothing was repeated.
        lone.advance(by: .milliseconds(700))
        #expect(lone.sent.filter { $0.status == 180 }.count == 1)
        let late = try prack(&lone, ring, invite)
        #expect(try lone.receive(late).first?.status == 200)
    }

    @Test(arguments: [false, true])
    func answerWaitsForEarlyMediaToBeAcknowledged(isLate: Bool) throws {
        var lone = LoneAgent()
        let (record, invite) = try ringing(&lone, supported: "100rel, timer")
        #expect(lone.sent.last?.rseq == nil, "plain ringing for who does not require more")
        lone.act { $0.startEarlyMedia(record.handle, media: LoneAgent.media, at: $1) }
        let early = try #require(lone.sent.last)
        #expect(early.status == 183 && early.rseq != nil && early.text.contains("m=audio 30000"))
        #expect(record.events == ["incoming", "earlyMedia 0"])
        let ack = try prack(&lone, early, invite)
        if !isLate { #expect(try lone.receive(ack).first?.status == 200) }
        lone.act { $0.answer(record.handle, media: LoneAgent.media, at: $1) }
        if isLate {
            #expect(record.events.last == "earlyMedia 0", "a 2xx must wait for the PRACK")
            #expect(try lone.receive(ack).map(\.status) == [200, 200])
        }
        #expect(record.events.last == "answered")
        let answer = try #require(lone.sent.last { $0.status == 200 && $0.cseq?.method == .invite })
        #expect(answer.body.isEmpty, "the answer was given already")
        try lone.receive(lone.request(.ack, toTag: answer.to?.tag, sequence: invite.cseq?.number))
        #expect(lone.agent.calls[record.handle]?.canOffer == true)
    }

    @Test func unreliableEarlyMediaIsSaidAgainInTheAnswer() throws {
        var lone = LoneAgent()
        let (record, _) = try ringing(&lone)
        lone.act { $0.startEarlyMedia(record.handle, media: LoneAgent.media, at: $1) }
        let early = try #require(lone.sent.last)
        #expect(early.status == 183 && early.rseq == nil)
        lone.act { $0.answer(record.handle, media: LoneAgent.media, at: $1) }
        let answer = try #require(lone.sent.last)
        #expect(answer.status == 200 && answer.body == early.body)
        #expect(record.events == ["incoming", "earlyMedia 0", "answered"])
    }

    @Test func reliableResponsesWaitForEachOther() throws {
        var lone = LoneAgent()
        let (record, invite) = try ringing(&lone, require: "100rel")
        let ring = lone.sent.last
        lone.act { $0.startEarlyMedia(record.handle, media: LoneAgent.media, at: $1) }
        #expect(lone.sent.last == ring, "one at a time")
        let first = try prack(&lone, ring, invite)
        let answers = try lone.receive(first)
        #expect(answers.map(\.status) == [200, 183])
        #expect(answers.last?.rseq == ring?.rseq.map { $0 + 1 })
    }

    @Test func delayedOfferInAReliableResponse() throws {
        var lone = LoneAgent()
        let (record, invite) = try ringing(&lone, require: "100rel", body: nil)
        #expect(lone.sent.isEmpty, "the first reliable response must have the offer, which is not known yet")
        lone.act { $0.startEarlyMedia(record.handle, media: LoneAgent.media, at: $1) }
        let early = try #require(lone.sent.last)
        #expect(early.status == 183 && early.text.contains("m=audio 30000"))
        #expect(record.events == ["incoming"])
        let ack = try prack(&lone, early, invite, body: LoneAgent.sdp(port: 41_000))
        #expect(try lone.receive(ack).map(\.status) == [200])
        #expect(record.events == ["incoming", "earlyMedia 0"])
        lone.act { $0.answer(record.handle, media: LoneAgent.media, at: $1) }
        #expect(record.events.last == "answered" && record.media.last?.remoteRTPPort == 41_000)
    }

    @Test func delayedOfferThatThePrackDoesNotAnswerEndsTheCall() throws {
        var lone = LoneAgent()
        let (record, invite) = try ringing(&lone, require: "100rel", body: nil)
        lone.act { $0.startEarlyMedia(record.handle, media: LoneAgent.media, at: $1) }
        let ack = try prack(&lone, lone.sent.last, invite)
        #expect(try lone.receive(ack).map(\.status) == [400, 488])
        #expect(record.reason == .media)
    }

    @Test func prackWithAnotherOffer() throws {
        var lone = LoneAgent()
        let (record, invite) = try ringing(&lone, require: "100rel")
        let first = try prack(&lone, lone.sent.last, invite)
        try lone.receive(first)
        lone.act { $0.startEarlyMedia(record.handle, media: LoneAgent.media, at: $1) }
        let second = try prack(&lone, lone.sent.last, invite, body: LoneAgent.sdp(port: 42_000, version: 2))
        let answer = try #require(try lone.receive(second).first)
        #expect(answer.status == 200 && answer.text.contains("m=audio 30000"))
        #expect(record.media.last?.remoteRTPPort == 42_000)
    }

    @Test func prackThatMeansNothing() throws {
        var lone = LoneAgent()
        let (record, invite) = try ringing(&lone, require: "100rel")
        let ring = try #require(lone.sent.last)
        let number = try #require(ring.rseq)
        for (value, status) in [
            ("", 400), ("x y z", 400), ("\(number)", 400), ("99999999999 1 INVITE", 400),
            ("\(number &+ 1) \(invite.cseq?.number ?? 0) INVITE", 481), ("\(number) 1 INVITE", 481),
            ("\(number) \(invite.cseq?.number ?? 0) UPDATE", 481),
        ] {
            var prack = lone.request(.prack, toTag: ring.to?.tag)
            prack.headers["RAck"] = value
            #expect(try lone.receive(prack).first?.status == status, "\(value)")
        }
        #expect(record.termination == nil)
    }
}
