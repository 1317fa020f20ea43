import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// Session timers (RFC 4028) in both roles.
struct SessionTimerTests {
    @Test func weRefreshByUpdateWhenThePeerKnowsIt() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.answered {
            $0.headers["Session-Expires"] = "200;refresher=uac"
            $0.headers["Allow"] = "INVITE, ACK, BYE, UPDATE"
        }
        #expect(
            invite.sessionExpires == SIPSessionExpires(seconds: 1_800) && invite.hasOption("timer", in: "Supported"))
        lone.advance(by: .seconds(99))
        #expect(lone.all(.update).isEmpty)
        lone.advance(by: .seconds(1))
        for _ in 0..<3 {
            let update = try #require(lone.last(.update))
            #expect(update.body.isEmpty && update.contacts.count == 1)
            #expect(update.sessionExpires == SIPSessionExpires(seconds: 200, refresher: .uac))
            var response = lone.response(200, to: update)
            response.headers["Session-Expires"] = "200;refresher=uac"
            try lone.receive(response)
            lone.advance(by: .seconds(100))
        }
        #expect(lone.all(.update).filter { $0.cseq?.number == 5 }.count == 1)
        #expect(record.events == ["answered"], "a refresh changes nothing that the user could notice")
    }

    @Test func weRefreshByInviteOtherwise() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.answered { $0.headers["x"] = "200;refresher=uac" }
        lone.advance(by: .seconds(100))
        let again = try #require(lone.last(.invite))
        #expect(again.cseq?.number == 2 && again.sessionExpires == SIPSessionExpires(seconds: 200, refresher: .uac))
        #expect(again.text.contains("m=audio 30000") && !invite.body.isEmpty)
        var response = lone.response(200, to: again, body: LoneAgent.offer)
        response.sessionExpires = SIPSessionExpires(seconds: 200, refresher: .uac)
        #expect(try lone.receive(response).first?.method == .ack)
        #expect(record.events == ["answered"])
        lone.advance(by: .seconds(100))
        #expect(lone.last(.invite)?.cseq?.number == 3)
    }

    @Test func refreshThatNobodyAnswersEndsTheCall() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered {
            $0.headers["Session-Expires"] = "200;refresher=uac"
            $0.headers["Allow"] = "UPDATE"
        }
        lone.advance(by: .seconds(100) + .seconds(31))
        #expect(record.termination == nil)
        lone.advance(by: .seconds(1))
        #expect(record.reason == .network && record.termination?.isLocal == true)
        #expect(lone.last(.bye)?.headers["Reason"] == "SIP;cause=408;text=\"session timer expired\"")
    }

    @Test func peerThatDoesNotRefreshEndsTheCall() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered { $0.headers["Session-Expires"] = "300;refresher=uas" }
        // A third of the interval, but no more than 32 s, before the end.
        lone.advance(by: .seconds(267))
        #expect(record.termination == nil && lone.all(.bye).isEmpty)
        lone.advance(by: .seconds(1))
        #expect(record.reason == .network)
        #expect(lone.all(.bye).count == 1)
    }

    @Test(arguments: [SIPMethod.update, .invite])
    func peerThatRefreshesKeepsTheCall(method: SIPMethod) throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.answered { $0.headers["Session-Expires"] = "120;refresher=uas" }
        for _ in 0..<10 {
            lone.advance(by: .seconds(60))
            var refresh = lone.requestBack(method, in: invite, body: method == .invite ? LoneAgent.offer : nil)
            refresh.headers["Supported"] = "timer"
            refresh.headers["Session-Expires"] = "120;refresher=uac"
            let answer = try #require(try lone.receive(refresh).first)
            #expect(answer.status == 200)
            #expect(answer.sessionExpires == SIPSessionExpires(seconds: 120, refresher: .uac))
            #expect(answer.hasOption("timer", in: "Require"))
            if method == .invite {
                try lone.receive(lone.requestBack(.ack, in: invite, sequence: refresh.cseq?.number))
            }
        }
        #expect(record.events == ["answered"])
        lone.advance(by: .seconds(90))
        #expect(record.reason == .network)
    }

    @Test func peerWithoutTimersHasNone() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered()
        let (other, _) = try lone.established()
        #expect(lone.sent.last { $0.status == 200 }?.sessionExpires == nil)
        lone.advance(by: .seconds(10_000))
        #expect(record.termination == nil && other.termination == nil)
        #expect(lone.all(.invite).count == 1 && lone.all(.update).isEmpty)
    }

    @Test func timerCanBeTurnedOff() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered {
            $0.headers["Session-Expires"] = "200;refresher=uac"
            $0.headers["Allow"] = "UPDATE"
        }
        lone.advance(by: .seconds(100))
        try lone.receive(lone.response(200, to: try #require(lone.last(.update))))
        lone.advance(by: .seconds(10_000))
        #expect(record.termination == nil && lone.all(.update).count == 1)
    }

    /// The interval that a path takes: asked for once more, but only once.
    @Test func tooSmallInterval() throws {
        var lone = LoneAgent { $0.sessionExpires = .seconds(120) }
        let (record, invite) = try lone.calling()
        #expect(invite.sessionExpires?.seconds == 120)
        var refusal = lone.response(422, to: invite, tag: "proxy")
        refusal.minSE = 600
        try lone.receive(refusal)
        let second = try #require(lone.last(.invite))
        #expect(second.cseq?.number == 2 && second.minSE == 600 && second.sessionExpires?.seconds == 600)
        #expect(second.callID == invite.callID && second.from == invite.from && second.body == invite.body)
        var again = lone.response(422, to: second, tag: "proxy")
        again.minSE = 900
        try lone.receive(again)
        #expect(lone.last(.invite) == second)
        #expect(record.reason == .failed && record.termination?.sipStatus == 422)
        // A refusal that names nothing to try is final.
        let (other, third) = try lone.calling()
        try lone.receive(lone.response(422, to: third, tag: "proxy"))
        #expect(other.reason == .failed)
    }

    @Test func tooSmallIntervalOfARefresh() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered {
            $0.headers["Session-Expires"] = "200;refresher=uac"
            $0.headers["Allow"] = "UPDATE"
        }
        lone.advance(by: .seconds(100))
        var refusal = lone.response(422, to: try #require(lone.last(.update)))
        refusal.minSE = 400
        try lone.receive(refusal)
        let second = try #require(lone.last(.update))
        #expect(second.sessionExpires?.seconds == 400 && second.minSE == 400)
        // A peer that refuses for ever is asked again before the time is up, not at once, and not for ever.
        try lone.receive(refusal)
        var last = lone.response(422, to: second)
        last.minSE = 400
        try lone.receive(last)
        let count = lone.all(.update).count
        lone.advance(by: .seconds(5))
        #expect(lone.all(.update).count == count && record.termination == nil)
        while record.termination == nil {
            lone.advance(by: .seconds(10))
            if let update = lone.last(.update), record.termination == nil {
                try lone.receive(lone.response(500, to: update))
            }
        }
        #expect(record.reason == .network)
        #expect(lone.now < MonotonicTime(nanoseconds: 1_000_000_000) + .seconds(180))
        #expect(lone.all(.update).count < 40)
    }

    @Test func peerThatClaimsUpdateAndDoesNotKnowIt() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered {
            $0.headers["Session-Expires"] = "200;refresher=uac"
            $0.headers["Allow"] = "UPDATE"
        }
        lone.advance(by: .seconds(100))
        try lone.receive(lone.response(405, to: try #require(lone.last(.update))))
        #expect(lone.last(.invite)?.cseq?.number == 3, "an INVITE takes its place at once")
        #expect(record.termination == nil)
    }

    @Test func refreshOfADialogThatThePeerHasForgotten() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered {
            $0.headers["Session-Expires"] = "200;refresher=uac"
            $0.headers["Allow"] = "UPDATE"
        }
        lone.advance(by: .seconds(100))
        try lone.receive(lone.response(481, to: try #require(lone.last(.update))))
        #expect(record.termination?.sipStatus == 481)
        #expect(lone.all(.bye).count == 1)
    }

    // MARK: Callee

    private func answer(_ headers: [String: String]) throws -> (answer: SIPMessage, lone: LoneAgent) {
        var lone = LoneAgent()
        var invite = lone.request(.invite, body: LoneAgent.offer)
        for (name, value) in headers { invite.headers[name] = value }
        try lone.receive(invite)
        guard let record = lone.records.last else { return (try #require(lone.sent.last), lone) }
        lone.act { $0.answer(record.handle, media: LoneAgent.media, at: $1) }
        let answer = try #require(lone.sent.last)
        try lone.receive(lone.request(.ack, toTag: answer.to?.tag, sequence: invite.cseq?.number))
        return (answer, lone)
    }

    @Test func calleeNegotiates() throws {
        // Table 2 of RFC 4028: what the caller supports and says, and who refreshes.
        let cases: [([String: String], String?, Bool)] = [
            (["Session-Expires": "300"], "300;refresher=uas", false),
            (["Session-Expires": "300", "Supported": "timer"], "300;refresher=uac", true),
            (["Session-Expires": "300;refresher=uac", "Supported": "timer"], "300;refresher=uac", true),
            (["Session-Expires": "300;refresher=uas", "Supported": "timer"], "300;refresher=uas", false),
            (["Session-Expires": "300;refresher=uac"], "300;refresher=uas", false),
            (["Session-Expires": "40"], "90;refresher=uas", false),
            (["Session-Expires": "100", "Min-SE": "500", "Supported": "timer"], "500;refresher=uac", true),
            (["Supported": "timer"], "1800;refresher=uas", false),
            (["Supported": "timer", "Min-SE": "3000"], "3000;refresher=uas", false),
            (["Session-Expires": "junk"], nil, false),
            ([:], nil, false),
        ]
        for (headers, expected, isRequired) in cases {
            let (answer, lone) = try answer(headers)
            #expect(answer.status == 200)
            #expect(answer.headers["Session-Expires"] == expected, "\(headers)")
            #expect(answer.hasOption("timer", in: "Require") == isRequired, "\(headers)")
            #expect((lone.agent.calls.values.first?.timer != nil) == (expected != nil))
        }
        let (refusal, lone) = try answer(["Session-Expires": "89", "Supported": "timer"])
        #expect(refusal.status == 422 && refusal.minSE == 90)
        #expect(lone.records.isEmpty)
    }

    @Test func calleeRefreshes() throws {
        var (_, lone) = try answer(["Session-Expires": "300;refresher=uas", "Supported": "timer", "Allow": "UPDATE"])
        lone.advance(by: .seconds(150))
        let update = try #require(lone.last(.update))
        #expect(update.sessionExpires == SIPSessionExpires(seconds: 300, refresher: .uac))
    }

    /// Intervals that a hostile peer names neither keep us busy nor overflow.
    @Test(arguments: ["0", "1", "4294967295", "99999999999999999999"])
    func absurdIntervals(value: String) throws {
        var lone = LoneAgent()
        let (record, _) = try lone.answered {
            $0.headers["Session-Expires"] = "\(value);refresher=uac"
            $0.headers["Allow"] = "UPDATE"
        }
        lone.advance(by: .seconds(44))
        #expect(lone.all(.update).isEmpty && record.termination == nil)
    }

    @Test func bothDevicesKeepACallThroughTheEnvironment() throws {
        let simulation = try Simulation(conditions: LinkConditions(delay: .milliseconds(5) ... .milliseconds(40)))
        let alice = try simulation.registered("alice") { $0.sessionExpires = .seconds(90) }
        let bob = try simulation.registered("bob", .tcp)
        simulation.answers(bob, after: .seconds(1))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1_000))
        #expect(call.events == ["progressed", "rang", "answered"])
        #expect(alice.sent(.update).count + bob.sent(.update).count > 15)
        // One of the two vanishes: the other one knows it in the end.
        simulation.loses = { _, direction in
            switch direction {
            case .toEnvironment(let device), .toDevice(let device): device === bob
            }
        }
        simulation.run(for: .seconds(130))
        #expect(call.reason == .network)
    }
}
