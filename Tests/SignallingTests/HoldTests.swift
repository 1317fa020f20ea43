import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// Hold and resume against a scripted peer: what is sent, and what every refusal leads to.
struct HoldTests {
    private func answer(_ lone: inout LoneAgent, _ invite: SIPMessage?, _ direction: String, version: Int = 2) throws {
        let invite = try #require(invite)
        let body = LoneAgent.sdp(port: 40_000, version: version, extra: "a=\(direction)\r\n")
        #expect(try lone.receive(lone.response(200, to: invite, body: body)).first?.method == .ack)
    }

    @Test func holdAndResumeKeepTheCodec() throws {
        var lone = LoneAgent()
        let (record, first) = try lone.answered()
        #expect(first.text.contains("RTP/AVP 111") || first.text.contains("opus"))
        lone.act { $0.hold(record.handle, at: $1) }
        let hold = try #require(lone.last(.invite))
        #expect(hold.cseq?.number == 2 && hold.text.contains("a=sendonly"))
        #expect(hold.text.contains("m=audio 30000 RTP/AVP 0 "), "the codec in use comes first: \(hold.text)")
        #expect(record.events == ["answered"], "nothing is told before the peer agrees")
        try answer(&lone, hold, "recvonly")
        #expect(record.events == ["answered", "mediaChanged", "hold true false"])
        #expect(record.media.last?.direction == .sendonly)
        lone.act { $0.resume(record.handle, at: $1) }
        let resume = try #require(lone.last(.invite))
        #expect(resume.text.contains("a=sendrecv"))
        try answer(&lone, resume, "sendrecv", version: 3)
        #expect(record.events.suffix(2) == ["mediaChanged", "hold false false"])
        #expect(record.media.last == record.media.first)
        // What is so already is said again, and nothing is sent.
        lone.act { $0.resume(record.handle, at: $1) }
        #expect(record.events.last == "hold false false" && lone.last(.invite) == resume)
    }

    @Test func bothSidesHold() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.answered()
        func peer(_ direction: String, version: Int) throws -> SIPMessage {
            let offer = lone.requestBack(
                .invite, in: invite, body: LoneAgent.sdp(port: 40_000, version: version, extra: "a=\(direction)\r\n"))
            let answer = try #require(try lone.receive(offer).first)
            #expect(answer.status == 200)
            try lone.receive(lone.requestBack(.ack, in: invite, sequence: offer.cseq?.number))
            return answer
        }
        #expect(try peer("sendonly", version: 2).text.contains("a=recvonly"))
        #expect(record.events.last == "hold false true")
        lone.act { $0.hold(record.handle, at: $1) }
        #expect(lone.last(.invite)?.text.contains("a=inactive") == true)
        try answer(&lone, lone.last(.invite), "inactive", version: 3)
        #expect(record.events.last == "hold true true", "an inactive answer to an inactive offer says nothing new")
        // The peer takes us off hold, while we still hold it.
        #expect(try peer("sendrecv", version: 4).text.contains("a=sendonly"))
        #expect(record.events.last == "hold true false")
        // And holds again: nothing flows.
        #expect(try peer("sendonly", version: 5).text.contains("a=inactive"))
        #expect(record.events.last == "hold true true" && record.media.last?.direction == .inactive)
        lone.act { $0.resume(record.handle, at: $1) }
        #expect(lone.last(.invite)?.text.contains("a=sendrecv") == true)
        try answer(&lone, lone.last(.invite), "sendonly", version: 6)
        #expect(record.events.last == "hold false true" && record.media.last?.direction == .recvonly)
    }

    @Test(arguments: [488, 403, 404, 503, 600])
    func refusalLeavesTheCallAsItWas(status: Int) throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        let media = lone.agent.calls[record.handle]?.media
        lone.act { $0.hold(record.handle, at: $1) }
        let invite = try #require(lone.last(.invite))
        try lone.receive(lone.response(status, to: invite))
        #expect(record.events.count == 2 && record.events.last?.hasPrefix("changeFailed hold: \(status)") == true)
        #expect(lone.agent.calls[record.handle]?.media == media)
        lone.advance(by: .seconds(60))
        #expect(lone.last(.invite) == invite, "a refusal is final")
        // It may be asked for again, and succeed.
        lone.act { $0.hold(record.handle, at: $1) }
        try answer(&lone, lone.last(.invite), "recvonly")
        #expect(record.events.last == "hold true false")
    }

    @Test func silenceLeavesTheCallAsItWas() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        lone.act { $0.hold(record.handle, at: $1) }
        lone.advance(by: .seconds(33))
        #expect(record.events.last?.hasPrefix("changeFailed hold") == true)
        #expect(record.termination == nil && lone.agent.calls[record.handle]?.canOffer == true)
        // A peer that says "trying" and no more: the INVITE is cancelled after the same time.
        lone.act { $0.hold(record.handle, at: $1) }
        let invite = try #require(lone.last(.invite))
        try lone.receive(lone.response(100, to: invite))
        lone.advance(by: .seconds(32))
        let cancel = try #require(lone.last(.cancel))
        try lone.receive(lone.response(200, to: cancel))
        try lone.receive(lone.response(487, to: invite))
        #expect(record.events.count == 3 && record.events.last?.hasPrefix("changeFailed hold: 487") == true)
        #expect(record.termination == nil)
    }

    /// The CANCEL of a re-INVITE that took too long crosses its answer: what was agreed on counts.
    @Test func cancelCrossesTheAnswerToAChange() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        lone.act { $0.hold(record.handle, at: $1) }
        let invite = try #require(lone.last(.invite))
        try lone.receive(lone.response(100, to: invite))
        lone.advance(by: .seconds(32))
        #expect(lone.last(.cancel) != nil)
        try answer(&lone, invite, "recvonly")
        #expect(record.events.last == "hold true false" && record.termination == nil)
    }

    @Test func unusableAnswerLeavesTheCallAsItWas() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        let media = lone.agent.calls[record.handle]?.media
        for body in [nil, "junk", LoneAgent.sdp(port: 0), LoneAgent.sdp(port: 40_000, formats: "99")] {
            lone.act { $0.hold(record.handle, at: $1) }
            let invite = try #require(lone.last(.invite))
            #expect(try lone.receive(lone.response(200, to: invite, body: body)).first?.method == .ack)
            #expect(record.events.last?.hasPrefix("changeFailed hold") == true)
            #expect(lone.agent.calls[record.handle]?.media == media && record.termination == nil)
        }
    }

    @Test func dialogThatThePeerHasForgottenEnds() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        lone.act { $0.hold(record.handle, at: $1) }
        try lone.receive(lone.response(481, to: try #require(lone.last(.invite))))
        #expect(record.events.last == "ended" && record.termination?.sipStatus == 481)
        #expect(lone.last(.bye) != nil)
    }

    /// Both sides offer at once: who made the Call-ID waits 2.1 to 4 s, the other one up to 2 s.
    @Test(arguments: [true, false], 1...8)
    func glareIsTriedAgain(isOwner: Bool, round: Int) throws {
        var lone = LoneAgent()
        for _ in 0..<round { _ = lone.via() }
        let record: CallRecord
        if isOwner { record = try lone.answered().record } else { record = try lone.established().record }
        for _ in 0..<round { lone.act { agent, _ in _ = agent.random.next() } }
        lone.act { $0.hold(record.handle, at: $1) }
        let invite = try #require(lone.last(.invite))
        try lone.receive(lone.response(491, to: invite))
        #expect(lone.agent.calls[record.handle]?.canOffer == true, "meanwhile the peer may offer")
        if isOwner {
            lone.advance(by: .milliseconds(2_099))
            #expect(lone.last(.invite) == invite)
        }
        lone.advance(by: isOwner ? .milliseconds(1_901) : .seconds(2))
        let second = try #require(lone.last(.invite))
        #expect(second.cseq?.number == (invite.cseq?.number ?? 0) + 1 && second.text.contains("a=sendonly"))
        try answer(&lone, second, "recvonly")
        #expect(record.events.suffix(1) == ["hold true false"])
    }

    @Test func glareWithoutEndGivesUp() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        lone.act { $0.hold(record.handle, at: $1) }
        var last: SIPMessage?
        for _ in 0..<20 {
            guard let invite = lone.last(.invite), invite != last else { break }
            try lone.receive(lone.response(491, to: invite))
            last = invite
            lone.advance(by: .seconds(5))
        }
        #expect(Set(lone.all(.invite).map(\.cseq?.number)).count == 1 + OwnChange.maximumAttempts)
        #expect(record.events.last?.hasPrefix("changeFailed hold: 491") == true)
    }

    @Test(arguments: [("3", 3), ("0", 0), ("99999", 32), ("4;duration=5 (busy)", 4)])
    func peerThatIsNotReadyIsAskedLater(value: String, seconds: Int) throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        lone.act { $0.hold(record.handle, at: $1) }
        var refusal = lone.response(500, to: try #require(lone.last(.invite)))
        refusal.headers["Retry-After"] = value
        try lone.receive(refusal)
        if seconds > 0 {
            lone.advance(by: .milliseconds(seconds * 1_000 - 1))
            #expect(lone.all(.invite).count == 2)
        }
        lone.advance(by: .milliseconds(1))
        #expect(lone.all(.invite).count == 3)
    }

    /// A wish that is taken back while the first one waits is no wish: each gets its word.
    @Test func wishesOvertakeEachOther() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        lone.act { $0.hold(record.handle, at: $1) }
        lone.act { $0.resume(record.handle, at: $1) }
        #expect(lone.all(.invite).count == 2, "offers go one after the other")
        try answer(&lone, lone.last(.invite), "recvonly")
        #expect(record.events.last == "hold true false")
        #expect(lone.all(.invite).count == 3)
        try answer(&lone, lone.last(.invite), "sendrecv", version: 3)
        #expect(record.events.last == "hold false false")

        lone.act { $0.hold(record.handle, at: $1) }
        try lone.receive(lone.response(491, to: try #require(lone.last(.invite))))
        lone.act { $0.resume(record.handle, at: $1) }
        #expect(record.events.last == "hold false false")
        lone.advance(by: .seconds(10))
        #expect(lone.all(.invite).count == 4)
    }

    @Test func holdWaitsForThePeersChange() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.answered()
        let offer = lone.requestBack(.invite, in: invite, body: LoneAgent.sdp(port: 40_002, version: 2))
        #expect(try lone.receive(offer).first?.status == 200)
        lone.act { $0.hold(record.handle, at: $1) }
        #expect(lone.all(.invite).count == 1, "not before the ACK")
        let sent = try lone.receive(lone.requestBack(.ack, in: invite, sequence: offer.cseq?.number))
        #expect(sent.first?.method == .invite && sent.first?.text.contains("a=sendonly") == true)
        // And theirs is refused while ours is under way.
        let late = lone.requestBack(.invite, in: invite, body: LoneAgent.sdp(port: 40_004, version: 3))
        #expect(try lone.receive(late).first?.status == 491)
        let update = lone.requestBack(.update, in: invite, body: LoneAgent.sdp(port: 40_004, version: 3))
        #expect(try lone.receive(update).first?.status == 491)
        #expect(record.termination == nil)
    }

    @Test func holdBeforeTheAnswerFails() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.calling()
        lone.act { $0.hold(record.handle, at: $1) }
        #expect(record.events == ["changeFailed the call is not answered yet"])
        lone.act { $0.hangUp(record.handle, at: $1) }
        lone.act { $0.hold(record.handle, at: $1) }
        #expect(record.events.count == 2)
    }

    @Test func hangUpDuringAChange() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        lone.act { $0.hold(record.handle, at: $1) }
        let invite = try #require(lone.last(.invite))
        lone.act { $0.hangUp(record.handle, at: $1) }
        #expect(lone.last(.bye)?.cseq?.number == 3)
        // The answer crosses the BYE: it gets its ACK and means nothing any more.
        let sent = try lone.receive(lone.response(200, to: invite, body: LoneAgent.sdp(port: 40_000, version: 2)))
        #expect(sent.map(\.method) == [.ack])
        try lone.receive(lone.response(200, to: try #require(lone.last(.bye))))
        #expect(record.events == ["answered", "ended"])
        lone.advance(by: .seconds(70))
        #expect(lone.agent.calls.isEmpty && lone.agent.legs.isEmpty && lone.agent.answeredInvites.isEmpty)
    }

    @Test func reliableAnswerToAChange() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        lone.act { $0.hold(record.handle, at: $1) }
        let invite = try #require(lone.last(.invite))
        let body = LoneAgent.sdp(port: 40_000, version: 2, extra: "a=recvonly\r\n")
        let early = lone.reliable(183, number: 4, to: invite, body: body)
        #expect(try lone.receive(early).first?.headers["RAck"] == "4 2 INVITE")
        #expect(try lone.receive(early).isEmpty)
        #expect(try lone.receive(lone.response(200, to: invite)).first?.method == .ack)
        #expect(record.events == ["answered", "mediaChanged", "hold true false"])
    }

    /// A request that is asked for right after a hold follows it, whatever becomes of the hold.
    @Test(arguments: [200, 488])
    func requestsWaitForTheChange(status: Int) throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        lone.act { $0.hold(record.handle, at: $1) }
        lone.act { $0.sendInDialog(InDialogRequest(method: "FIRST"), of: record.handle, at: $1) }
        lone.act { $0.sendInDialog(InDialogRequest(method: "SECOND"), of: record.handle, at: $1) }
        let invite = try #require(lone.sent.last)
        #expect(invite.method == .invite)
        let body = LoneAgent.sdp(port: 40_000, version: 2, extra: "a=recvonly\r\n")
        try lone.receive(lone.response(status, to: invite, body: status == 200 ? body : nil))
        let first = try #require(lone.sent.last)
        #expect(first.method == "FIRST" && first.cseq?.number == 3)
        try lone.receive(lone.response(500, to: first))
        #expect(lone.sent.last?.method == "SECOND" && lone.sent.last?.cseq?.number == 4)
        for _ in 0..<1_000 {
            lone.act { $0.sendInDialog(InDialogRequest(method: "MORE"), of: record.handle, at: $1) }
        }
        #expect(lone.agent.calls[record.handle]?.waiting.count == InDialogRequest.maximumWaiting)
        lone.act { $0.hangUp(record.handle, at: $1) }
        #expect(lone.sent.last?.method == .bye && lone.agent.calls[record.handle]?.waiting.isEmpty == true)
    }
}
