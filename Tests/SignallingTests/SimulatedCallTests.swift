import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// Whole calls between two user agents through the real proxy core.
struct SimulatedCallTests {
    static let transports: [(SIPTransport, SIPTransport)] = [(.udp, .udp), (.tcp, .udp), (.udp, .tcp), (.tcp, .tcp)]

    @Test(arguments: transports)
    func callAnswerAndHangUp(caller: SIPTransport, callee: SIPTransport) throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice", caller)
        let bob = try simulation.registered("bob", callee)
        simulation.answers(bob, after: .seconds(2))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        #expect(call.events == ["progressed", "rang"])
        simulation.run(for: .seconds(2))
        #expect(call.events == ["progressed", "rang", "answered"])
        let other = try #require(bob.records.first)
        #expect(other.events == ["incoming", "answered"])
        // Each side knows where the other one receives.
        #expect(call.media.first?.remoteRTPPort == bob.media.rtpPort)
        #expect(other.media.first?.remoteRTPPort == alice.media.rtpPort)
        #expect(call.media.first?.codec.name == "opus")
        simulation.run(for: .seconds(100))
        #expect(other.termination == nil && call.termination == nil)
        simulation.hangUp(alice, call)
        #expect(call.termination?.reason == .hungUp)
        #expect(call.termination?.isLocal == true)
        simulation.run(for: .seconds(1))
        #expect(other.termination?.reason == .hungUp)
        #expect(other.termination?.isLocal == false)
        #expect(alice.sent(.ack).count == 1)
        simulation.expectClean()
    }

    @Test func calleeHangsUp() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        simulation.answers(bob, after: .seconds(1))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(5))
        simulation.hangUp(bob, try #require(bob.records.first))
        simulation.run(for: .seconds(1))
        #expect(call.events == ["progressed", "rang", "answered", "ended"])
        #expect(call.termination?.reason == .hungUp)
        #expect(call.termination?.isLocal == false)
        simulation.expectClean()
    }

    @Test(arguments: [
        (603, CallEndReason.declined, CallEndReason.declined), (486, .busy, .busy), (480, .noAnswer, .declined),
        (500, .failed, .declined),
    ])
    func refusals(status: Int, caller: CallEndReason, callee: CallEndReason) throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob", .tcp))
        simulation.refuses(bob, with: status)
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        #expect(call.events == ["progressed", "rang", "ended"])
        #expect(call.reason == caller)
        #expect(call.termination?.sipStatus == status)
        #expect(bob.records.first?.reason == callee)
        #expect(bob.records.first?.termination?.isLocal == true)
        simulation.expectClean()
    }

    @Test func nobodyAnswers() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice") { $0.noAnswerTimeout = .seconds(20) }
        let bob = try simulation.registered("bob")
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(21))
        #expect(call.events == ["progressed", "rang", "ended"])
        #expect(call.reason == .noAnswer)
        #expect(call.endedAt.map { $0 - .seconds(20) } == simulation.now - .seconds(21))
        #expect(bob.records.first?.reason == .canceled)
        #expect(bob.records.first?.termination?.phrase == "no answer")
        #expect(alice.sent(.cancel).count == 1)
        simulation.expectClean()
    }

    @Test func giveUpRingingByHand() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(3))
        simulation.act(alice) { $0.giveUpRinging(call.handle, at: $1) }
        simulation.act(alice) { $0.giveUpRinging(call.handle, at: $1) }
        simulation.run(for: .seconds(1))
        #expect(call.reason == .noAnswer)
        #expect(bob.records.first?.reason == .canceled)
        simulation.expectClean()
    }

    @Test func unknownUserAndKnownOneWhoIsGone() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        simulation.act(bob) { $0.unregister(at: $1) }
        simulation.run(for: .seconds(1))
        let unknown = simulation.call(alice, "nobody")
        let gone = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        #expect(unknown.events == ["ended"])
        #expect(unknown.reason == .noSuchUser)
        #expect(unknown.termination?.sipStatus == 404)
        #expect(gone.events == ["ended"])
        #expect(gone.reason == .noAnswer)
        #expect(gone.termination?.sipStatus == 480)
        simulation.expectClean()
    }

    @Test func silentDeviceIsATimeoutAndNotAMissedCall() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
        simulation.loses = { _, way in
            if case .toDevice(let device) = way { device === bob } else { false }
        }
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(40))
        #expect(call.events == ["ended"])
        #expect(call.reason == .timeout)
        simulation.expectClean()
    }

    @Test func callsWithoutAPathOrOverTheLimitEndAtOnce() throws {
        let simulation = try Simulation()
        let stranger = simulation.device("carol")
        let call = simulation.call(stranger, "bob")
        #expect(call.events == ["ended"])
        #expect(call.reason == .network)

        let alice = try simulation.registered("alice") { $0.maximumCalls = 2 }
        let bob = try simulation.registered("bob")
        let calls = (0..<3).map { _ in simulation.call(alice, "bob") }
        #expect(calls.map { $0.events.last } == [nil, nil, "ended"])
        #expect(calls[2].reason == .failed)
        simulation.run(for: .seconds(1))
        // Two are ringing at alice's: a third for her is refused.
        let back = simulation.call(bob, "alice")
        simulation.run(for: .seconds(1))
        #expect(back.reason == .busy)
        #expect(back.termination?.sipStatus == 486)
        for call in calls.prefix(2) { simulation.hangUp(alice, call) }
        simulation.expectClean()
        // The limit is about calls that there are.
        let again = simulation.call(bob, "alice")
        simulation.run(for: .seconds(1))
        #expect(again.events == ["progressed", "rang"])
    }

    @Test func callingOneself() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice")
        simulation.answers(alice, after: .seconds(1))
        let call = simulation.call(alice, "alice")
        simulation.run(for: .seconds(3))
        #expect(call.events == ["progressed", "rang", "answered"])
        let other = try #require(alice.records.first { $0.incoming != nil })
        #expect(other.events == ["incoming", "answered"])
        simulation.hangUp(alice, other)
        simulation.run(for: .seconds(1))
        #expect(other.termination?.isLocal == true)
        #expect(call.termination?.isLocal == false)
        simulation.expectClean()
    }

    @Test func applicationHeadersReachTheOtherSide() throws {
        let simulation = try Simulation()
        let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob", .tcp))
        simulation.answers(bob, after: .seconds(1))
        simulation.answers(alice, after: .seconds(1))
        _ = simulation.call(
            alice, "bob", headers: [("X-Room", "42"), ("X-Text", "\"quoted, with\" a comma; and more")])
        _ = simulation.call(bob, "alice", headers: [("x-back", "grüße")])
        simulation.run(for: .seconds(1))
        #expect(
            bob.records.compactMap(\.incoming).first?.headers
                == ["X-Room": "42", "X-Text": "\"quoted, with\" a comma; and more"])
        #expect(alice.records.compactMap(\.incoming).first?.headers == ["x-back": "grüße"])
        #expect(bob.records.compactMap(\.incoming).first?.from.uri.user == "alice")
    }

    @Test func hangUpTwiceAndAtEveryMoment() throws {
        // From before the INVITE arrives until long after the answer, in steps of half a network delay.
        for step in 0..<60 {
            for caller in [true, false] {
                let simulation = try Simulation()
                simulation.conditions.delay = .milliseconds(20) ... .milliseconds(20)
                let (alice, bob) = (try simulation.registered("alice"), try simulation.registered("bob"))
                simulation.answers(bob, after: .milliseconds(200))
                let call = simulation.call(alice, "bob")
                simulation.run(for: .milliseconds(10 * step))
                let record = caller ? call : bob.records.first
                guard let record else { continue }
                let device = caller ? alice : bob
                for _ in 0..<2 { simulation.hangUp(device, record) }
                #expect(record.termination?.isLocal == true, "\(step)")
                simulation.run(for: .seconds(2))
                simulation.hangUp(device, record)
                #expect(call.termination != nil && bob.records.allSatisfy { $0.termination != nil }, "\(step)")
                simulation.run(for: .seconds(32))
                #expect(alice.agent.calls.isEmpty && bob.agent.calls.isEmpty, "\(step)")
                simulation.expectClean(within: .seconds(32))
            }
        }
    }

    @Test func unansweredIncomingCallStopsByItself() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice") { $0.noAnswerTimeout = .seconds(3_600) }
        let bob = try simulation.registered("bob") { $0.incomingRingTimeout = .seconds(200) }
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(10))
        // The caller vanishes without a word.
        simulation.loses = { _, way in
            if case .toEnvironment(let device) = way { device === alice } else { false }
        }
        simulation.run(for: .seconds(180))
        #expect(bob.records.first?.events == ["incoming"])
        #expect(call.termination == nil)
        simulation.run(for: .seconds(20))
        #expect(bob.records.first?.reason == .noAnswer)
        #expect(call.reason == .noAnswer)
    }
}
