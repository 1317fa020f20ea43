import Primitives
import SIP
import Testing

@testable import Signalling

/// Redirects of our calls by the platform.
struct RedirectTests {
    /// A redirect of the last INVITE; gives the INVITE that follows it, if one does.
    private func redirect(
        _ lone: inout LoneAgent, to contacts: [String], status: Int = 302
    ) throws -> SIPMessage? {
        let invite = try #require(lone.sent.last { $0.method == .invite })
        var response = lone.response(status, to: invite, tag: "r\(lone.sent.count)")
        response.contacts = try contacts.map { try SIPAddress(parsing: $0) }
        return try lone.receive(response).first { $0.method == .invite }
    }

    @Test func theCallGoesOnToTheBestAddress() throws {
        var lone = LoneAgent()
        let (record, first) = try lone.calling()
        let second = try #require(
            try redirect(
                &lone, to: ["<sip:low@example.org>;q=0.2", "<sip:high@example.org?Subject=x>;q=0.9", "<tel:+4670>"]))
        #expect(second.requestURI?.description == "sip:high@example.org")
        // The same call: Call-ID, From and To stay, the number counts on (RFC 3261, 8.1.3.4).
        #expect(second.callID == first.callID && second.from == first.from && second.to == first.to)
        #expect(second.cseq?.number == 2)
        #expect(second.topVia?.branch != first.topVia?.branch)
        #expect(second.body == first.body)
        // It is busy there: the other address is next.
        let third = try #require(
            try lone.receive(lone.response(486, to: second, tag: "b")).last { $0.method == .invite })
        #expect(third.requestURI?.user == "low")
        try lone.receive(lone.response(200, to: third, tag: "c", body: LoneAgent.offer))
        #expect(record.isAnswered)
        lone.act { $0.hangUp(record.handle, at: $1) }
        let bye = try #require(lone.sent.last { $0.method == .bye })
        try lone.receive(lone.response(200, to: bye))
        lone.advance(by: .seconds(40))
        #expect(lone.agent.calls.isEmpty && lone.agent.legs.isEmpty)
    }

    @Test func declinedIsDeclinedEverywhere() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.calling()
        let second = try #require(try redirect(&lone, to: ["<sip:a@example.org>", "<sip:b@example.org>"]))
        #expect(second.requestURI?.user == "a")
        #expect(try lone.receive(lone.response(603, to: second, tag: "b")).allSatisfy { $0.method != .invite })
        #expect(record.reason == .declined)
    }

    @Test func loopsEnd() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.calling()
        let second = try #require(try redirect(&lone, to: ["<sip:a@example.org>"]))
        #expect(second.requestURI?.user == "a")
        // Back to where the call came from, in several spellings.
        let back = ["<sip:alice@example.org>", "<sip:alice@EXAMPLE.org;x=y>", "<sip:%61@example.org>"]
        #expect(try redirect(&lone, to: back) == nil)
        #expect(record.termination?.sipStatus == 302)
    }

    @Test(arguments: [0, 1, 5, 100]) func theNumberIsLimited(limit: Int) throws {
        var lone = LoneAgent { $0.maximumRedirects = limit }
        let (record, _) = try lone.calling()
        var followed = 0
        while try redirect(&lone, to: ["<sip:n\(followed)@example.org>"]) != nil { followed += 1 }
        #expect(followed == min(limit, 5))
        #expect(record.termination?.sipStatus == 302)
        #expect(lone.agent.calls.isEmpty)
    }

    @Test(arguments: [
        "<tel:+46700000000>", "<http://example.org/>", "<sip:example.org>", "<mailto:a@b>",
    ]) func whatCannotBeCalledIsNotCalled(contact: String) throws {
        var lone = LoneAgent()
        let (record, _) = try lone.calling()
        #expect(try redirect(&lone, to: [contact]) == nil)
        #expect(record.termination?.sipStatus == 302)
    }

    @Test(arguments: [305, 380, 399]) func otherRedirectsAreNotFollowed(status: Int) throws {
        var lone = LoneAgent()
        let (record, _) = try lone.calling()
        #expect(try redirect(&lone, to: ["<sip:a@example.org>"], status: status) == nil)
        #expect(record.termination?.sipStatus == status)
    }

    @Test func neverFromSecureToPlain() throws {
        var lone = LoneAgent()
        let handle = lone.act {
            $0.call(SIPURI(user: "alice", host: "example.org", secure: true), media: LoneAgent.media, at: $1)
        }
        let record = lone.record(handle)
        let next = try #require(try redirect(&lone, to: ["<sip:a@example.org>", "<sips:b@example.org>;q=0.1"]))
        #expect(next.requestURI?.isSecure == true && next.requestURI?.user == "b")
        #expect(try redirect(&lone, to: ["<sip:c@example.org>"]) == nil)
        #expect(record.termination?.sipStatus == 302)
    }

    @Test(arguments: ["localhost", "x.localhost", "127.0.0.1", "[::1]", "0.0.0.0", "127.1.2.3", "localhost."])
    func thisMachineIsNoTargetForOthers(host: String) throws {
        var lone = LoneAgent(flow: SIPFlow(transport: .udp, remote: TransportAddress(host: "10.1.2.3", port: 5060)))
        let (record, _) = try lone.calling()
        #expect(try redirect(&lone, to: ["<sip:a@\(host)>"]) == nil)
        #expect(record.termination?.sipStatus == 302)
    }

    @Test func aCanceledCallIsNotRedirected() throws {
        var lone = LoneAgent()
        let (record, invite) = try lone.calling()
        try lone.receive(lone.response(180, to: invite, tag: "a"))
        lone.act { $0.hangUp(record.handle, at: $1) }
        #expect(try redirect(&lone, to: ["<sip:a@example.org>"]) == nil)
        #expect(record.reason == .canceled)
        #expect(lone.agent.calls.isEmpty)
    }

    @Test func aRedirectWithVeryManyAddresses() throws {
        var lone = LoneAgent()
        let (record, _) = try lone.calling()
        let next = try #require(try redirect(&lone, to: (0..<60).map { "<sip:n\($0)@example.org>;q=0.\($0)" }))
        #expect(next.requestURI?.user?.hasPrefix("n") == true)
        #expect(lone.agent.calls[record.handle]?.redirection.waiting.count == Redirection.maximumTargets - 1)
    }
}
