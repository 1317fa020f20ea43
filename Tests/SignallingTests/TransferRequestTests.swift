import Primitives
import SIP
import Testing

@testable import Signalling

/// REFER, NOTIFY, Replaces and INFO as a peer of any quality sends them.
struct TransferRequestTests {
    private func statuses(_ messages: [SIPMessage]) -> [Int] { messages.compactMap(\.status) }

    // MARK: Being transferred

    private func refer(
        _ lone: inout LoneAgent, _ tag: String, to target: String?, headers: [(String, String)] = []
    ) throws -> [SIPMessage] {
        var refer = lone.request(.refer, toTag: tag)
        if let target { refer.headers["Refer-To"] = target }
        for (name, value) in headers { refer.headers.append(name, value) }
        return try lone.receive(refer)
    }

    @Test func transfersAreRefusedByDefault() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        #expect(statuses(try refer(&lone, tag, to: "<sip:carol@example.org>")) == [603])
        #expect(record.events.last == "answered")
        #expect(lone.all(.notify).isEmpty)
    }

    @Test(
        arguments: [
            (nil, 400), ("<sip:a@b>, <sip:c@d>", 400), ("nonsense", 400), ("<tel:+4670>", 603), ("<https://a/>", 603),
            ("<sip:example.org>", 603), ("<sip:a@example.org;method=BYE>", 603), ("<sip:a@b?Replaces=broken>", 603),
        ] as [(String?, Int)])
    func badTargetsAreRefused(target: String?, status: Int) throws {
        var lone = LoneAgent { $0.acceptsTransfers = true }
        let (record, tag) = try lone.established()
        #expect(statuses(try refer(&lone, tag, to: target)) == [status])
        #expect(record.events.last == "answered")
        #expect(lone.all(.notify).isEmpty)
    }

    @Test func thisMachineIsNoTargetForOthers() throws {
        var lone = LoneAgent(flow: SIPFlow(transport: .udp, remote: TransportAddress(host: "10.1.2.3", port: 5060))) {
            $0.acceptsTransfers = true
        }
        let (_, tag) = try lone.established()
        #expect(statuses(try refer(&lone, tag, to: "<sip:a@127.0.0.1>")) == [603])
    }

    @Test func reportsOfATransfer() throws {
        var lone = LoneAgent { $0.acceptsTransfers = true }
        let (record, tag) = try lone.established()
        let answers = try refer(
            &lone, tag, to: "<sip:carol@example.org;method=INVITE?Subject=evil&Replaces=x%3Bto-tag%3Da%3Bfrom-tag%3Db>",
            headers: [("Referred-By", "<sip:alice@example.org>"), ("Require", "norefersub")])
        #expect(statuses(answers) == [202])
        #expect(answers.first?.contacts.isEmpty == false)
        let first = try #require(lone.all(.notify).first)
        #expect(SIPStatusFragment(parsing: first.body)?.status == 100)
        #expect(first.event?.isNamed("refer") == true)
        #expect(first.subscriptionState?.isNamed("active") == true)
        #expect(record.transferRequest?.isAttended == true)
        // A second one has to wait.
        #expect(statuses(try refer(&lone, tag, to: "<sip:dave@example.org>")) == [491])
        let new = lone.act { $0.followTransfer(record.handle, media: LoneAgent.media, at: $1) }
        let invite = try #require(lone.all(.invite).last)
        #expect(invite.requestURI?.description == "sip:carol@example.org")
        #expect(invite.replaces == SIPReplaces(callID: "x", toTag: "a", fromTag: "b"))
        #expect(invite.referredBy?.uri.user == "alice")
        #expect(invite.headers["Subject"] == nil)
        // Reports go out one after the other.
        try lone.receive(lone.response(180, to: invite, tag: "c"))
        #expect(lone.all(.notify).count == 1)
        try lone.receive(lone.response(200, to: first))
        #expect(lone.all(.notify).count == 2)
        try lone.receive(lone.response(200, to: lone.all(.notify)[1]))
        try lone.receive(lone.response(200, to: invite, tag: "c", body: LoneAgent.offer))
        let last = try #require(lone.all(.notify).last)
        #expect(SIPStatusFragment(parsing: last.body)?.status == 200)
        #expect(last.subscriptionState?.description == "terminated;reason=noresource")
        try lone.receive(lone.response(200, to: last))
        #expect(lone.record(new).isAnswered)
        #expect(lone.all(.notify).count == 3)
        #expect(lone.agent.referrers.isEmpty)
    }

    @Test func reportsThatNobodyWantsAreNotSent() throws {
        var lone = LoneAgent { $0.acceptsTransfers = true }
        let (record, tag) = try lone.established()
        let answers = try refer(&lone, tag, to: "<sip:carol@example.org>", headers: [("Refer-Sub", "false")])
        #expect(statuses(answers) == [200])
        #expect(answers.first?.headers["Refer-Sub"] == "false")
        _ = lone.act { $0.followTransfer(record.handle, media: LoneAgent.media, at: $1) }
        #expect(lone.all(.notify).isEmpty)
    }

    @Test func aCallThatEndsMeanwhileIsFollowedByNone() throws {
        var lone = LoneAgent { $0.acceptsTransfers = true }
        let (record, tag) = try lone.established()
        _ = try refer(&lone, tag, to: "<sip:carol@example.org>")
        try lone.receive(lone.request(.bye, toTag: tag))
        let new = lone.act { $0.followTransfer(record.handle, media: LoneAgent.media, at: $1) }
        #expect(lone.record(new).reason == .canceled)
        #expect(lone.all(.invite).isEmpty)
    }

    // MARK: Transferring

    private func transferring(
        _ lone: inout LoneAgent, answer status: Int = 202
    ) throws -> (record: CallRecord, tag: String, refer: SIPMessage) {
        let (record, tag) = try lone.established()
        lone.act { $0.transfer(record.handle, to: SIPURI(user: "carol", host: "example.org"), at: $1) }
        let refer = try #require(lone.all(.refer).last)
        #expect(refer.referTo?.uri.description == "sip:carol@example.org")
        #expect(refer.referredBy?.uri.user == "bob")
        try lone.receive(lone.response(status, to: refer))
        return (record, tag, refer)
    }

    private func notify(
        _ lone: inout LoneAgent, _ tag: String, event: String = "refer", state: String? = "active;expires=60",
        body: String?, type: String = "message/sipfrag"
    ) throws -> [Int] {
        var notify = lone.request(.notify, toTag: tag, body: body, type: type)
        notify.headers["Event"] = event
        if let state { notify.headers["Subscription-State"] = state }
        return statuses(try lone.receive(notify))
    }

    @Test func reportsAreUnderstood() throws {
        var lone = LoneAgent()
        let (record, tag, refer) = try transferring(&lone)
        let number = refer.cseq?.number ?? 0
        #expect(try notify(&lone, tag, body: "SIP/2.0 100 Trying\r\n") == [200])
        #expect(try notify(&lone, tag, event: "refer;id=\(number)", body: "SIP/2.0 180 Ringing\r\n") == [200])
        #expect(try notify(&lone, tag, body: "SIP/2.0 180 Ringing\r\n") == [200])
        #expect(try notify(&lone, tag, event: "refer;id=\(number &+ 1)", body: "SIP/2.0 200 OK\r\n") == [481])
        #expect(try notify(&lone, tag, event: "presence", body: "SIP/2.0 200 OK\r\n") == [489])
        #expect(try notify(&lone, tag, body: "SIP/2.0 200 OK\r\n", type: "text/plain") == [415])
        #expect(record.events.suffix(2) == ["transferProgress 100", "transferProgress 180"])
        #expect(try notify(&lone, tag, state: "terminated;reason=noresource", body: "SIP/2.0 200 OK\r\n") == [200])
        #expect(record.events.suffix(2) == ["transferred", "ended"])
        #expect(lone.all(.bye).count == 1)
        #expect(try notify(&lone, tag, state: "terminated", body: "SIP/2.0 200 OK\r\n") == [481])
    }

    @Test(
        arguments: [
            ("SIP/2.0 486 Busy Here", "terminated", "transferFailed busy"),
            ("SIP/2.0 603 No", nil, "transferFailed declined"),
            ("SIP/2.0 180 Ringing", "terminated;reason=timeout", "transferFailed failed"),
            (nil, "terminated;reason=giveup", "transferFailed failed"),
            ("nonsense", "terminated", "transferFailed failed"),
        ] as [(String?, String?, String)])
    func failuresAreUnderstood(body: String?, state: String?, event: String) throws {
        var lone = LoneAgent()
        let (record, tag, _) = try transferring(&lone)
        #expect(try notify(&lone, tag, state: state, body: body) == [200])
        #expect(record.events.last == event)
        #expect(record.termination == nil)
        // Nothing is left that would time out.
        lone.advance(by: .seconds(400))
        #expect(record.events.last == event)
    }

    @Test(arguments: [(603, "declined"), (405, "failed"), (481, "failed"), (403, "forbidden"), (401, "forbidden")])
    func refusalsAreTold(status: Int, reason: String) throws {
        var lone = LoneAgent()
        let (record, tag, refer) = try transferring(&lone, answer: status)
        #expect(record.events.last == "transferFailed \(reason)")
        #expect(lone.all(.refer).count == 1 && !refer.headers.contains("Authorization"), "a peer gets no credentials")
        #expect(try notify(&lone, tag, body: "SIP/2.0 200 OK\r\n") == [481])
        #expect(record.termination == nil)
    }

    @Test func reportsMayOvertakeTheAnswer() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        lone.act { $0.transfer(record.handle, to: SIPURI(user: "carol", host: "example.org"), at: $1) }
        let refer = try #require(lone.all(.refer).last)
        #expect(try notify(&lone, tag, body: "SIP/2.0 100 Trying\r\n") == [200])
        #expect(try notify(&lone, tag, state: "terminated", body: "SIP/2.0 200 OK\r\n") == [200])
        #expect(record.events.suffix(2) == ["transferred", "ended"])
        try lone.receive(lone.response(202, to: refer))
        #expect(record.events.last == "ended")
    }

    @Test func whoSendsNoReportsIsBelieved() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.established()
        lone.act { $0.transfer(record.handle, to: SIPURI(user: "carol", host: "example.org"), at: $1) }
        var response = lone.response(200, to: try #require(lone.all(.refer).last))
        response.headers["Refer-Sub"] = "false"
        try lone.receive(response)
        #expect(record.events.suffix(2) == ["transferred", "ended"])
    }

    @Test func noReportsAtAllIsAFailure() throws {
        var lone = LoneAgent()
        let (record, _, _) = try transferring(&lone)
        lone.advance(by: .seconds(179))
        #expect(record.events.last == "answered")
        lone.advance(by: .seconds(2))
        #expect(record.events.last == "transferFailed timeout")
        #expect(record.termination == nil)
    }

    @Test func onlyAnsweredCallsAreTransferred() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.calling()
        lone.act { $0.transfer(record.handle, to: SIPURI(user: "carol", host: "example.org"), at: $1) }
        #expect(record.events.last == "transferFailed failed")
        #expect(lone.all(.refer).isEmpty)
    }

    // MARK: Replaces

    private func replacing(_ lone: inout LoneAgent, _ value: String?, callID: String = "new") -> SIPMessage {
        var invite = lone.request(.invite, callID: callID, fromTag: "new-peer", body: LoneAgent.offer)
        if let value { invite.headers["Replaces"] = value }
        invite.headers["Require"] = "replaces"
        return invite
    }

    @Test func anAnsweredCallIsReplacedWithoutRinging() throws {
        var lone = LoneAgent { $0.maximumCalls = 1 }
        let (record, tag) = try lone.established()
        let answers = try lone.receive(replacing(&lone, "call-1;to-tag=\(tag);from-tag=peer"))
        #expect(answers.isEmpty)
        let new = try #require(lone.records.last)
        #expect(new.incoming?.replaces == record.handle)
        lone.act { $0.answer(new.handle, media: LoneAgent.media, at: $1) }
        #expect(lone.sent.last { $0.status == 200 }?.callID == "new")
        #expect(record.reason == .hungUp && record.termination?.isLocal == false)
        #expect(lone.all(.bye).last?.callID == "call-1")
        #expect(new.isAnswered)
    }

    @Test(arguments: [
        ("call-1;to-tag=TAG;from-tag=other", 481), ("call-1;to-tag=other;from-tag=peer", 481),
        ("call-1;to-tag=peer;from-tag=TAG", 481), ("call-2;to-tag=TAG;from-tag=peer", 481),
        ("call-1;to-tag=TAG;from-tag=peer;early-only", 486), ("call-1", 400), ("", 400),
    ])
    func othersCallsAreNotReplaced(value: String, status: Int) throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        let text = value.replacing("TAG", with: tag)
        #expect(statuses(try lone.receive(replacing(&lone, text))) == [status])
        #expect(lone.records.count == 1 && record.termination == nil)
    }

    @Test func aRingingCallIsNotTakenAway() throws {
        var lone = LoneAgent()
        let tag = try #require(try lone.receive(lone.request(.invite, body: LoneAgent.offer)).first?.to?.tag)
        #expect(statuses(try lone.receive(replacing(&lone, "call-1;to-tag=\(tag);from-tag=peer"))) == [481])
    }

    @Test func aCallThatTheUserLeftIsNotReplaced() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        try lone.receive(replacing(&lone, "call-1;to-tag=\(tag);from-tag=peer"))
        let new = try #require(lone.records.last)
        lone.act { $0.hangUp(record.handle, at: $1) }
        lone.act { $0.answer(new.handle, media: LoneAgent.media, at: $1) }
        #expect(lone.sent.last { $0.status ?? 0 >= 300 }?.status == 481)
        #expect(new.reason == .canceled)
        #expect(
            statuses(try lone.receive(replacing(&lone, "call-1;to-tag=\(tag);from-tag=peer", callID: "n2"))) == [603])
    }

    // MARK: Keys

    @Test(
        arguments: [
            ("Signal=5\r\nDuration=160\r\n", "application/dtmf-relay", 200, "key 5"),
            ("#", "application/dtmf", 200, "key #"),
            ("Signal=X\r\n", "application/dtmf-relay", 400, nil), ("5", "text/plain", 415, nil),
            (nil, "application/dtmf", 200, nil),
        ] as [(String?, String, Int, String?)])
    func infoOfThePeer(body: String?, type: String, status: Int, event: String?) throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        let answers = try lone.receive(lone.request(.info, toTag: tag, body: body, type: type))
        #expect(statuses(answers) == [status])
        #expect(record.events.last == event ?? "answered")
        if status == 415 { #expect(answers.first?.headers["Accept"] == "application/dtmf-relay, application/dtmf") }
    }

    @Test func aFloodOfKeysIsCutToWhatAKeypadCanDo() throws {
        var lone = LoneAgent()
        let (record, tag) = try lone.established()
        var refused = 0
        for _ in 0..<200 {
            let answers = try lone.receive(lone.request(.info, toTag: tag, body: "5", type: "application/dtmf"))
            if statuses(answers) == [503] { refused += 1 }
            lone.advance(by: .milliseconds(10))
        }
        // Two seconds of a key each 50 ms, and the burst.
        #expect(refused > 140)
        #expect((40...60).contains(record.events.count { $0 == "key 5" }))
    }

    @Test func infoPackagesAreRefused() throws {
        var lone = LoneAgent()
        let (_, tag) = try lone.established()
        var info = lone.request(.info, toTag: tag, body: "5", type: "application/dtmf")
        info.headers["Info-Package"] = "foo"
        #expect(statuses(try lone.receive(info)) == [469])
    }

    @Test func keysGoOutOneAfterTheOtherAndStopWhenRefused() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.established()
        lone.act { $0.sendKeys("123", in: record.handle, at: $1) }
        #expect(lone.all(.info).count == 1)
        let first = try #require(lone.all(.info).first)
        #expect(SIPDTMFBody.key(in: first.body, contentType: first.contentType ?? "") == "1")
        try lone.receive(lone.response(200, to: first))
        #expect(lone.all(.info).count == 2)
        #expect(record.events.last == "answered")
        try lone.receive(lone.response(415, to: lone.all(.info)[1]))
        #expect(record.events.last == "keysFailed 415")
        #expect(lone.all(.info).count == 2)
        lone.act { $0.sendKeys(String(repeating: "1", count: 65), in: record.handle, at: $1) }
        #expect(record.events.suffix(2) == ["keysFailed 415", "keysFailed 0"])
    }

    // MARK: Identity

    @Test func thePlatformVouchesOverTheRegisteredPathOnly() throws {
        func identity(_ values: [String], privacy: String? = nil, isRegistered: Bool) throws -> String? {
            var lone = LoneAgent()
            if isRegistered {
                lone.act { $0.start(at: $1) }
                try lone.acceptRegistration()
            }
            var invite = lone.request(.invite, body: LoneAgent.offer)
            for value in values { invite.headers.append("P-Asserted-Identity", value) }
            if let privacy { invite.headers["Privacy"] = privacy }
            try lone.receive(invite)
            return lone.records.first?.incoming?.assertedIdentity?.uri.description
        }
        #expect(try identity(["\"A\" <sip:a@example.org>"], isRegistered: true) == "sip:a@example.org")
        #expect(try identity(["<tel:+4670>, <sip:a@example.org>"], isRegistered: true) == "sip:a@example.org")
        #expect(try identity(["<tel:+4670>"], isRegistered: true) == "tel:+4670")
        #expect(try identity(["<sip:a@example.org>"], privacy: "header;id", isRegistered: true) == nil)
        #expect(try identity(["<https://a/>", "broken <"], isRegistered: true) == nil)
        #expect(try identity(["<sip:a@example.org>"], isRegistered: false) == nil)
    }
}
