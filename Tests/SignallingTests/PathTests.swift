import Primitives
import SIP
import Testing

@testable import Signalling

/// How one user agent moves its calls from a broken path to the next one.
struct PathTests {
    private static let first = SIPFlow(
        transport: .tcp, remote: TransportAddress(host: "127.0.0.1", port: 5060), connection: 1)
    private static let second = SIPFlow(
        transport: .tcp, remote: TransportAddress(host: "127.0.0.1", port: 5060), connection: 2)

    private func registered() throws -> LoneAgent {
        var lone = LoneAgent(flow: Self.first)
        lone.act { $0.start(at: $1) }
        try lone.acceptRegistration()
        return lone
    }

    @Test func byeWaitsForTheNewPathToBeRegistered() throws {
        var lone = try registered()
        let (record, _) = try lone.established()
        lone.act { $0.flowFailed(reason: "connection reset", at: $1) }
        #expect(record.termination == nil)
        lone.act { $0.hangUp(record.handle, at: $1) }
        #expect(record.reason == .hungUp)
        lone.advance(by: .seconds(2))
        lone.open(Self.second)
        #expect(lone.sent.last?.method == .register)
        #expect(!lone.sent.contains { $0.method == .bye }, "the platform does not know this connection yet")
        try lone.acceptRegistration()
        let bye = try #require(lone.sent.last)
        #expect(bye.method == .bye)
        #expect(bye.topVia?.port == 6_002)
        try lone.receive(lone.response(200, to: bye))
        #expect(lone.agent.calls.isEmpty)
    }

    @Test func callOverAnOldPathIsEndedOverTheNewOne() throws {
        var lone = try registered()
        let (record, tag) = try lone.established()
        lone.act { $0.flowFailed(reason: "connection reset", at: $1) }
        lone.advance(by: .seconds(2))
        lone.open(Self.second)
        try lone.acceptRegistration()
        // The other side's requests come over the new path, too.
        let change = lone.request(.invite, toTag: tag, body: LoneAgent.sdp(port: 40_000, version: 2))
        let answer = try #require(try lone.receive(change).first)
        #expect(answer.status == 200)
        #expect(answer.contacts.first?.uri.port == 6_002)
        try lone.receive(lone.request(.ack, toTag: tag, sequence: change.cseq?.number))
        lone.act { $0.hangUp(record.handle, at: $1) }
        #expect(lone.sent.last?.method == .bye)
    }

    @Test func byeIsForgottenWhenNoPathComes() throws {
        var lone = try registered()
        let (record, _) = try lone.established()
        lone.act { $0.flowFailed(reason: "connection reset", at: $1) }
        lone.act { $0.hangUp(record.handle, at: $1) }
        lone.advance(by: .seconds(31))
        #expect(lone.agent.hasUnfinishedCalls)
        lone.advance(by: .seconds(1))
        #expect(!lone.agent.hasUnfinishedCalls && lone.agent.legs.isEmpty)
    }

    @Test func byeThatBreaksWithItsPathIsRepeated() throws {
        var lone = try registered()
        let (record, _) = try lone.established()
        lone.act { $0.hangUp(record.handle, at: $1) }
        let first = try #require(lone.sent.last)
        #expect(first.method == .bye)
        lone.act { $0.flowFailed(reason: "connection reset", at: $1) }
        lone.advance(by: .seconds(2))
        lone.open(Self.second)
        try lone.acceptRegistration()
        let second = try #require(lone.sent.last)
        #expect(second.method == .bye)
        #expect((second.cseq?.number ?? 0) > (first.cseq?.number ?? 0))
        #expect(record.events == ["incoming", "answered", "ended"])
    }

    @Test func failureIsReportedOnceWhicheverWayItIsNoticed() throws {
        var lone = LoneAgent()
        lone.act { $0.start(at: $1) }
        try lone.acceptRegistration()
        for _ in 0..<5 { lone.act { $0.flowFailed(reason: "ICMP", at: $1) } }
        #expect(lone.agent.registrationState == .waiting)
        let due = try #require(lone.agent.nextRegistrationAttempt)
        #expect(due - lone.now <= .seconds(1))
        lone.advance(by: .seconds(1))
        #expect(lone.sent.filter { $0.method == .register }.count == 2)
        try lone.acceptRegistration()
    }
}
