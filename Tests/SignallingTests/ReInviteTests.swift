import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// Changes of a running call that the other side asks for, and offers in unusual places.
struct ReInviteTests {
    /// Sends a re-INVITE, acknowledges its answer, and gives the answer.
    private func change(_ lone: inout LoneAgent, _ tag: String, body: String?) throws -> SIPMessage {
        let invite = lone.request(.invite, toTag: tag, body: body)
        let answer = try #require(try lone.receive(invite).first)
        if answer.status == 200 {
            try lone.receive(lone.request(.ack, toTag: tag, sequence: invite.cseq?.number))
        }
        return answer
    }

    @Test func holdAndResume() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        let held = try change(&lone, tag, body: LoneAgent.sdp(port: 40_000, version: 2, extra: "a=sendonly\r\n"))
        #expect(held.status == 200)
        #expect(String(decoding: held.body, as: UTF8.self).contains("a=recvonly"))
        #expect(held.contacts.first?.uri.user == "bob")
        #expect(record.media.last?.direction == .recvonly)
        // The same again changes nothing, so nothing is told.
        _ = try change(&lone, tag, body: LoneAgent.sdp(port: 40_000, version: 2, extra: "a=sendonly\r\n"))
        #expect(record.events == ["incoming", "answered", "mediaChanged", "hold false true"])
        _ = try change(&lone, tag, body: LoneAgent.sdp(port: 40_000, version: 3))
        #expect(record.media.last?.direction == .sendrecv)
        // The old way to hold: no address to send to.
        _ = try change(&lone, tag, body: LoneAgent.sdp(port: 40_000, version: 4, address: "0.0.0.0"))
        #expect(record.media.last?.direction.sends == false)
        _ = try change(&lone, tag, body: LoneAgent.sdp(port: 40_002, version: 5))
        #expect(record.media.last?.remoteRTPPort == 40_002)
        let told = [
            "mediaChanged", "hold false true", "mediaChanged", "hold false false", "mediaChanged", "hold false true",
            "mediaChanged", "hold false false",
        ]
        #expect(record.events == ["incoming", "answered"] + told)
        #expect(record.termination == nil)
        lone.advance(by: .seconds(40))
        #expect(lone.agent.legs.isEmpty)
        #expect(lone.agent.calls.count == 1)
    }

    @Test func unusableChangesLeaveTheCallAsItWas() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        let media = record.media.last
        #expect(try change(&lone, tag, body: LoneAgent.sdp(port: 40_000, version: 2, formats: "99")).status == 488)
        #expect(try change(&lone, tag, body: "nonsense").status == 400)
        var typed = lone.request(.invite, toTag: tag, body: "hello", type: "text/plain")
        #expect(try lone.receive(typed).first?.status == 415)
        typed = lone.request(.invite, toTag: tag, body: LoneAgent.offer)
        typed.headers["Require"] = "precondition"
        #expect(try lone.receive(typed).first?.status == 420)
        #expect(record.events == ["incoming", "answered"])
        #expect(lone.agent.calls[record.handle]?.media == media)
    }

    @Test func glare() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        let first = lone.request(.invite, toTag: tag, body: LoneAgent.sdp(port: 40_000, version: 2))
        #expect(try lone.receive(first).first?.status == 200)
        // A second change before the ACK of the first.
        let second = lone.request(.invite, toTag: tag, body: LoneAgent.sdp(port: 40_000, version: 3))
        #expect(try lone.receive(second).first?.status == 491)
        #expect(record.termination == nil)
        try lone.receive(lone.request(.ack, toTag: tag, sequence: first.cseq?.number))
        #expect(try change(&lone, tag, body: LoneAgent.sdp(port: 40_000, version: 4)).status == 200)
    }

    @Test func changeThatIsNeverAcknowledgedEndsTheCall() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        try lone.receive(lone.request(.invite, toTag: tag, body: LoneAgent.sdp(port: 40_000, version: 2)))
        lone.advance(by: .seconds(31))
        #expect(record.termination == nil)
        lone.advance(by: .seconds(1))
        #expect(record.reason == .network)
        #expect(lone.sent.last?.method == .bye)
        lone.advance(by: .seconds(33))
        #expect(lone.agent.calls.isEmpty && lone.agent.legs.isEmpty)
    }

    @Test func changeWhileHangingUp() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        lone.act { $0.hangUp(record.handle, at: $1) }
        #expect(lone.sent.last?.method == .bye)
        let invite = lone.request(.invite, toTag: tag, body: LoneAgent.sdp(port: 40_000, version: 2))
        #expect(try lone.receive(invite).first?.status == 481)
        // BYEs that cross each other are both answered.
        #expect(try lone.receive(lone.request(.bye, toTag: tag)).first?.status == 200)
        #expect(record.events == ["incoming", "answered", "ended"])
    }

    @Test func delayedOffer() throws {
        var lone = LoneAgent()
        let invite = lone.request(.invite)
        try lone.receive(invite)
        let record = try #require(lone.records.last)
        lone.act {
            $0.answer(record.handle, media: LocalMedia(address: "127.0.0.1", rtpPort: 30_000, rtcpPort: 30_001), at: $1)
        }
        let answer = try #require(lone.sent.last)
        #expect(answer.status == 200 && !answer.body.isEmpty)
        #expect(record.events == ["incoming"], "media is not agreed on yet")
        try lone.receive(
            lone.request(.ack, toTag: answer.to?.tag, sequence: invite.cseq?.number, body: LoneAgent.sdp(port: 41_000)))
        #expect(record.events == ["incoming", "answered"])
        #expect(record.media.last?.remoteRTPPort == 41_000)
        #expect(record.media.last?.codec.name == "PCMU")
    }

    @Test func delayedOfferWithoutAnswer() throws {
        var lone = LoneAgent()
        let invite = lone.request(.invite)
        try lone.receive(invite)
        let record = try #require(lone.records.last)
        lone.act {
            $0.answer(record.handle, media: LocalMedia(address: "127.0.0.1", rtpPort: 30_000, rtcpPort: 30_001), at: $1)
        }
        let tag = lone.sent.last?.to?.tag
        try lone.receive(lone.request(.ack, toTag: tag, sequence: invite.cseq?.number))
        #expect(record.events == ["incoming", "ended"])
        #expect(record.reason == .media)
        #expect(lone.sent.last?.method == .bye)
    }

    @Test func delayedOfferWithinACall() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        for port in [40_000, 42_000] {
            let invite = lone.request(.invite, toTag: tag)
            let answer = try #require(try lone.receive(invite).first)
            #expect(answer.status == 200 && !answer.body.isEmpty)
            try lone.receive(
                lone.request(.ack, toTag: tag, sequence: invite.cseq?.number, body: LoneAgent.sdp(port: port)))
        }
        #expect(record.events.filter { $0 == "answered" }.count == 1)
        #expect(record.media.last?.remoteRTPPort == 42_000)
        #expect(record.termination == nil)
    }
}
