import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// Peers that do things in their own way, and get along with us all the same.
struct PeerHabitTests {
    @Test func answerWithoutContact() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.answered { $0.contacts = [] }
        #expect(lone.last(.ack)?.requestURI == invite.requestURI)
        lone.act { $0.hangUp(record.handle, at: $1) }
        #expect(lone.last(.bye)?.requestURI == invite.requestURI)
    }

    /// A GRUU is no address that could be reached: the request goes to the registrar's proxy, over the flow.
    @Test func requestsToAGRUUTakeTheFlow() throws {
        var lone = LoneAgent()
        let gruu = try SIPURI(parsing: "sip:alice@example.org;gr=urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
        let proxy = try SIPURI(parsing: "sip:proxy.example.org;lr")
        let (record, _) = try lone.answered {
            $0.contacts = [SIPAddress(uri: gruu)]
            $0.recordRoutes = [SIPAddress(uri: proxy)]
        }
        lone.agent.hangUp(record.handle, at: lone.now)
        var flows: [SIPFlow] = []
        while let action = lone.agent.nextAction() {
            guard case .transmit(let message, let flow) = action, message.method == .bye else { continue }
            #expect(message.requestURI == gruu)
            flows.append(flow)
        }
        #expect(flows == [LoneAgent.flow])
    }

    @Test func answerWithoutToTag() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        var answer = lone.response(200, to: invite, body: LoneAgent.offer)
        answer.to = invite.to
        try lone.receive(answer)
        #expect(record.isAnswered)
        #expect(lone.last(.ack)?.to?.tag == nil)
        // Its requests have no From tag either (RFC 2543).
        var bye = lone.requestBack(.bye, in: invite)
        bye.from = invite.to
        #expect(try lone.receive(bye).map(\.status) == [200])
        #expect(record.reason == .hungUp)
    }

    @Test func routeSetIsThatOfTheFirstAnswer() throws {
        var lone = LoneAgent()
        let proxy = SIPAddress(uri: try SIPURI(parsing: "sip:first.example.org;lr"))
        let (record, _) = try lone.answered { $0.recordRoutes = [proxy] }
        lone.act { $0.hold(record.handle, at: $1) }
        let invite = try #require(lone.last(.invite))
        #expect(invite.routes.map(\.uri) == [proxy.uri])
        var answer = lone.response(200, to: invite, body: LoneAgent.sdp(port: 40_000, version: 2))
        answer.recordRoutes = [SIPAddress(uri: try SIPURI(parsing: "sip:second.example.org;lr"))]
        answer.contacts = [SIPAddress(uri: SIPURI(user: "alice", host: "elsewhere.example.org"))]
        try lone.receive(answer)
        lone.act { $0.hangUp(record.handle, at: $1) }
        let bye = try #require(lone.last(.bye))
        #expect(bye.routes.map(\.uri) == [proxy.uri])
        #expect(bye.requestURI?.host == "elsewhere.example.org", "the contact may move, the route may not")
    }

    @Test func gapsInTheSequence() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.answered()
        for (number, status) in [(1_000, 200), (999, 500), (1_000, 500), (4_000_000, 200), (2_147_483_647, 200)] {
            let options = lone.requestBack(.options, in: invite, sequence: UInt32(number))
            #expect(try lone.receive(options).first?.status == status, "\(number)")
        }
        #expect(record.termination == nil)
    }

    @Test func answerThatIsRepeatedForHalfAMinute() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.answered()
        let ack = try #require(lone.last(.ack))
        for _ in 0..<20 {
            lone.advance(by: .seconds(4))
            let sent = try lone.receive(lone.response(200, to: invite, tag: "peer", body: LoneAgent.offer))
            #expect(sent == [ack])
        }
        #expect(record.events == ["answered"])
    }

    private static func multipart(_ parts: [(headers: String, body: String)]) -> String {
        parts.map { "--b1\r\n\($0.headers)\r\n\r\n\($0.body)\r\n" }.joined() + "--b1--\r\n"
    }

    @Test func descriptionAmongSeveralParts() throws {
        let sdp = "Content-Type: application/sdp"
        let cases: [(type: String, body: String, status: Int)] = [
            (
                "multipart/mixed;boundary=b1",
                Self.multipart([("Content-Type: application/isup", "x"), (sdp, LoneAgent.offer)]), 180
            ),
            (
                "multipart/mixed; boundary=\"b1\"",
                "preamble\r\n" + Self.multipart([(sdp, LoneAgent.offer), ("Content-Type: text/plain", "hello")]), 180
            ),
            (
                "multipart/related;boundary=b1",
                Self.multipart([
                    ("Content-Type: application/x;\r\n\ty=z\r\nContent-Disposition: signal;handling=required", "x"),
                    (sdp, LoneAgent.offer),
                ]), 415
            ),
            (
                "multipart/mixed;boundary=b1",
                Self.multipart([
                    (sdp + "\r\nContent-Disposition: early-session", LoneAgent.sdp(port: 45_000)),
                    (sdp + "\r\nContent-Disposition: session", LoneAgent.offer),
                ]), 180
            ),
            ("multipart/mixed", Self.multipart([(sdp, LoneAgent.offer)]), 415),
            ("multipart/mixed;boundary=other", Self.multipart([(sdp, LoneAgent.offer)]), 415),
            ("multipart/mixed;boundary=b1", Self.multipart([("Content-Type: text/plain", "hello")]), 415),
        ]
        for (number, item) in cases.enumerated() {
            var lone = LoneAgent()
            let invite = lone.request(.invite, body: item.body, type: item.type)
            #expect(try lone.receive(invite).first?.status == item.status, "\(number)")
            guard item.status == 180, let record = lone.records.last else { continue }
            lone.act { $0.answer(record.handle, media: LoneAgent.media, at: $1) }
            #expect(record.media.last?.remoteRTPPort == 40_000, "\(number)")
        }
        // In an answer, too.
        var lone = LoneAgent()
        let (record, _) = try lone.answered {
            $0.contentType = "multipart/mixed;boundary=b1"
            $0.body = Array(Self.multipart([("Content-Type: a/b", "x"), (sdp, LoneAgent.offer)]).utf8)
        }
        #expect(record.media.last?.remoteRTPPort == 40_000)
    }

    @Test func bodiesThatAreForSomethingElse() throws {
        let cases: [(type: String, disposition: String?, encoding: String?, status: Int)] = [
            ("application/sdp", "session;handling=optional", nil, 180),
            ("Application/SDP ; charset=x", nil, "identity", 180),
            ("application/sdp", "render", nil, 415),
            ("text/plain", nil, nil, 415),
            // The call can do without it, says the caller: then the offer is ours.
            ("text/plain", "icon;handling=optional", nil, 180),
            ("application/sdp", nil, "gzip", 415),
        ]
        for item in cases {
            var lone = LoneAgent()
            var invite = lone.request(.invite, body: LoneAgent.offer, type: item.type)
            invite.headers["Content-Disposition"] = item.disposition
            invite.headers["Content-Encoding"] = item.encoding
            let answer = try #require(try lone.receive(invite).first)
            #expect(answer.status == item.status, "\(item)")
            if item.status == 415 { #expect(answer.headers["Accept"] == "application/sdp") }
        }
    }

    /// Requests within a call that require what we do not know are refused without harm, a BYE is obeyed.
    @Test func unknownExtensionsWithinACall() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.answered()
        for method in [SIPMethod.invite, .update, .options] {
            var request = lone.requestBack(method, in: invite, body: method == .options ? nil : LoneAgent.offer)
            request.headers["Require"] = "timer, strange"
            let answer = try #require(try lone.receive(request).first)
            #expect(answer.status == 420 && answer.headers["Unsupported"] == "strange")
        }
        #expect(record.termination == nil)
        var bye = lone.requestBack(.bye, in: invite)
        bye.headers["Require"] = "strange"
        #expect(try lone.receive(bye).first?.status == 200)
    }

    @Test func updateWithinACall() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.answered()
        let update = lone.requestBack(.update, in: invite, body: LoneAgent.sdp(port: 40_002, version: 2))
        let answer = try #require(try lone.receive(update).first)
        #expect(answer.status == 200 && answer.contentType == "application/sdp" && answer.contacts.count == 1)
        #expect(record.events == ["answered", "mediaChanged"] && record.media.last?.remoteRTPPort == 40_002)
        // One that cannot be met leaves everything as it was.
        let bad = lone.requestBack(.update, in: invite, body: LoneAgent.sdp(port: 40_004, version: 3, formats: "99"))
        #expect(try lone.receive(bad).first?.status == 488)
        #expect(record.media.last?.remoteRTPPort == 40_002 && record.events.count == 2)
        // One that only moves the contact.
        var move = lone.requestBack(.update, in: invite)
        move.contacts = [SIPAddress(uri: SIPURI(user: "alice", host: "moved.example.org"))]
        #expect(try lone.receive(move).first?.status == 200)
        lone.act { $0.hangUp(record.handle, at: $1) }
        #expect(lone.last(.bye)?.requestURI?.host == "moved.example.org")
    }

    @Test func updateBeforeAnythingWasAgreed() throws {
        var lone = LoneAgent()
        let invite = lone.request(.invite, body: LoneAgent.offer)
        let ring = try #require(try lone.receive(invite).first)
        let update = lone.request(.update, toTag: ring.to?.tag, body: LoneAgent.sdp(port: 40_002, version: 2))
        let answer = try #require(try lone.receive(update).first)
        #expect(answer.status == 500 && answer.retryAfter != nil, "the first offer is not answered yet")
        let refresh = lone.request(.update, toTag: ring.to?.tag)
        #expect(try lone.receive(refresh).first?.status == 200)
        #expect(lone.records.last?.events == ["incoming"])
    }
}
