import Primitives
import SIP
import SinchEnvironment
import Testing

@Suite struct ForkingTests {
    private static let completedElsewhere = "SIP;cause=200;text=\"Call completed elsewhere\""

    @Test func callReachesTheDeviceAndTheAnswerReachesTheCaller() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", .tcp, port: 40_002)
        let (invite, received) = try world.invite(&alice, "bob", callees: [bob])

        #expect(received[0].requestURI == bob.contact.uri)
        #expect(received[0].maxForwards == 69)
        #expect(received[0].vias.count == 2)
        #expect(received[0].body == invite.body)
        #expect(received[0].headers["P-Asserted-Identity"] == "<sip:alice@sinchctl.localhost>")
        // One Record-Route a transport (RFC 5658), the callee's first.
        #expect(received[0].recordRoutes.map(\.uri.transport) == ["tcp", "udp"])
        #expect(received[0].recordRoutes.map(\.uri.isLooseRouter) == [true, true])

        try world.deliver(bob.response(180, to: received[0]), from: bob.flow)
        let ringing = try #require(world.takeResponses(alice.flow).first)
        #expect(ringing.status == 180)
        #expect(ringing.vias.count == 1)
        #expect(ringing.topVia?.branch == invite.topVia?.branch)

        try world.deliver(bob.response(200, to: received[0]), from: bob.flow)
        let answers = world.takeResponses(alice.flow)
        #expect(answers.map(\.status) == [200])
        #expect(answers[0].recordRoutes.count == 2)
        #expect(world.events.contains { if case .callAnswered = $0 { true } else { false } })
    }

    @Test func firstDeviceToAnswerWinsAndTheOthersAreCancelled() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let phones = try [40_002, 40_003, 40_004].map { try world.registered("bob", port: $0) }
        let (_, received) = try world.invite(&alice, "bob", callees: phones)
        for (phone, invite) in zip(phones, received) {
            try world.deliver(phone.response(180, to: invite), from: phone.flow)
        }
        #expect(world.takeResponses(alice.flow).map(\.status) == [180, 180, 180])

        try world.deliver(phones[1].response(200, to: received[1]), from: phones[1].flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [200])
        #expect(world.take(phones[1].flow).isEmpty)
        for index in [0, 2] {
            let cancel = try #require(world.take(phones[index].flow).first)
            #expect(cancel.method == .cancel)
            #expect(cancel.headers["Reason"] == Self.completedElsewhere)
            #expect(cancel.topVia?.branch == received[index].topVia?.branch)
            try world.deliver(phones[index].response(200, to: cancel), from: phones[index].flow)
            try world.deliver(phones[index].response(487, to: received[index]), from: phones[index].flow)
            #expect(world.take(phones[index].flow).map(\.method) == [.ack])
        }
        // The 487s stay here.
        #expect(world.takeResponses(alice.flow).isEmpty)
        try world.advance(by: .seconds(300))
        #expect(world.core.forwardingCount == 0)
    }

    @Test func allBusyIsBusyOnlyWhenTheLastHasAnswered() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let phones = try [40_002, 40_003].map { try world.registered("bob", port: $0) }
        let (invite, received) = try world.invite(&alice, "bob", callees: phones)
        try world.deliver(phones[0].response(486, to: received[0]), from: phones[0].flow)
        #expect(world.takeResponses(alice.flow).isEmpty)
        try world.deliver(phones[1].response(480, to: received[1]), from: phones[1].flow)
        let answers = world.takeResponses(alice.flow)
        #expect(answers.map(\.status) == [486])
        try world.deliver(alice.ack(invite, refusal: answers[0]), from: alice.flow)
        try world.advance(by: .seconds(300))
        #expect(world.core.forwardingCount == 0)
        #expect(world.takeResponses(alice.flow).isEmpty)
    }

    @Test func declineEndsTheCallOnAllDevices() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let phones = try [40_002, 40_003].map { try world.registered("bob", port: $0) }
        let (_, received) = try world.invite(&alice, "bob", callees: phones)
        try world.deliver(phones[1].response(180, to: received[1]), from: phones[1].flow)
        _ = world.take(alice.flow)
        try world.deliver(phones[0].response(603, to: received[0]), from: phones[0].flow)
        // Not before the other stopped ringing (RFC 3261 section 16.7 step 5).
        #expect(world.takeResponses(alice.flow).isEmpty)
        let cancel = try #require(world.take(phones[1].flow).first)
        #expect(cancel.method == .cancel)
        #expect(cancel.headers["Reason"]?.hasPrefix("SIP;cause=603") == true)
        try world.deliver(phones[1].response(487, to: received[1]), from: phones[1].flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [603])
    }

    @Test func answerThatCrossesADeclineCounts() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let phones = try [40_002, 40_003].map { try world.registered("bob", port: $0) }
        let (_, received) = try world.invite(&alice, "bob", callees: phones)
        try world.deliver(phones[1].response(180, to: received[1]), from: phones[1].flow)
        try world.deliver(phones[0].response(603, to: received[0]), from: phones[0].flow)
        _ = world.take(alice.flow)
        try world.deliver(phones[1].response(200, to: received[1]), from: phones[1].flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [200])
    }

    @Test func everyAnswerIsForwardedAlsoTheSecondAndRepeatedOnes() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let phones = try [40_002, 40_003].map { try world.registered("bob", port: $0) }
        let (_, received) = try world.invite(&alice, "bob", callees: phones)
        for (phone, invite) in zip(phones, received) {
            try world.deliver(phone.response(200, to: invite), from: phone.flow)
        }
        try world.deliver(phones[0].response(200, to: received[0]), from: phones[0].flow)
        let answers = world.takeResponses(alice.flow)
        #expect(answers.map(\.status) == [200, 200, 200])
        #expect(Set(answers.compactMap(\.to?.tag)).count == 2)

        // Long after the transactions have ended: by the Record-Route's token.
        try world.advance(by: .seconds(120))
        #expect(world.core.forwardingCount == 0)
        try world.deliver(phones[1].response(200, to: received[1]), from: phones[1].flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [200])
        // But not from somebody else.
        let mallory = try world.registered("mallory", port: 40_009)
        try world.deliver(phones[1].response(200, to: received[1]), from: mallory.flow)
        #expect(world.takeResponses(alice.flow).isEmpty)
    }

    @Test func cancelGoesToAllDevicesWithItsReason() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let phones = try [40_002, 40_003].map { try world.registered("bob", port: $0) }
        let (invite, received) = try world.invite(&alice, "bob", callees: phones)
        try world.deliver(phones[0].response(180, to: received[0]), from: phones[0].flow)
        _ = world.take(alice.flow)
        let reason = "Q.850;cause=16;text=\"Terminated\""
        try world.deliver(alice.cancel(invite, reason: reason), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map { $0.cseq?.method } == [.cancel])
        let cancel = try #require(world.take(phones[0].flow).first)
        #expect(cancel.method == .cancel)
        #expect(cancel.headers["Reason"] == reason)
        // The second has not answered yet: its CANCEL waits for that (section 9.1).
        #expect(world.take(phones[1].flow).isEmpty)
        try world.deliver(phones[1].response(180, to: received[1]), from: phones[1].flow)
        #expect(world.take(phones[1].flow).map(\.method) == [.cancel])
        for (phone, request) in zip(phones, received) {
            try world.deliver(phone.response(487, to: request), from: phone.flow)
        }
        #expect(world.takeResponses(alice.flow).filter { $0.cseq?.method == .invite }.last?.status == 487)
    }

    @Test func answerThatCrossesTheCancelWins() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        let (invite, received) = try world.invite(&alice, "bob", callees: [bob])
        try world.deliver(bob.response(180, to: received[0]), from: bob.flow)
        try world.deliver(alice.cancel(invite), from: alice.flow)
        _ = world.take(alice.flow)
        try world.deliver(bob.response(200, to: received[0]), from: bob.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [200])
        // Cancelling what is answered does nothing.
        _ = world.take(bob.flow)
        try world.deliver(alice.cancel(invite), from: alice.flow)
        #expect(world.take(bob.flow).isEmpty)
    }

    @Test func cancelOfNothingIs481() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let invite = alice.request(.invite, to: "bob")
        try world.deliver(alice.cancel(invite), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [481])
    }

    @Test func timerCCancelsAndTheCallerGets408() throws {
        var world = try World { $0.ringTimeout = .seconds(20) }
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        let (_, received) = try world.invite(&alice, "bob", callees: [bob])
        try world.deliver(bob.response(180, to: received[0]), from: bob.flow)
        try world.advance(by: .seconds(15))
        // A provisional response starts timer C anew (section 16.7 step 2).
        try world.deliver(bob.response(180, to: received[0]), from: bob.flow)
        try world.advance(by: .seconds(19))
        #expect(world.take(bob.flow).isEmpty)
        #expect(world.takeResponses(alice.flow).map(\.status) == [180, 180])
        try world.advance(by: .seconds(2))
        let cancel = try #require(world.take(bob.flow).first)
        #expect(cancel.method == .cancel)
        #expect(cancel.headers["Reason"]?.hasPrefix("SIP;cause=408") == true)
        try world.deliver(bob.response(487, to: received[0]), from: bob.flow)
        let answers = world.takeResponses(alice.flow)
        #expect(answers.map(\.status) == [408])
        #expect(world.events.contains { if case .callFailed(_, 408, _) = $0 { true } else { false } })
    }

    @Test func answerThatCrossesTimerCCounts() throws {
        var world = try World { $0.ringTimeout = .seconds(20) }
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        let (_, received) = try world.invite(&alice, "bob", callees: [bob])
        try world.deliver(bob.response(180, to: received[0]), from: bob.flow)
        try world.advance(by: .seconds(21))
        _ = world.take(alice.flow)
        try world.deliver(bob.response(200, to: received[0]), from: bob.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [200])
    }

    @Test func silentDeviceEndsWith408AfterTimerB() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        _ = try world.invite(&alice, "bob", callees: [bob])
        try world.advance(by: .seconds(33))
        // Retransmitted all the while.
        #expect(world.take(bob.flow).filter { $0.method == .invite }.count == 6)
        #expect(world.takeResponses(alice.flow).map(\.status).first == 408)
    }

    @Test func deviceThatNeverAnswersTheCancelDoesNotHoldTheCaller() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        let (invite, received) = try world.invite(&alice, "bob", callees: [bob])
        try world.deliver(bob.response(180, to: received[0]), from: bob.flow)
        try world.deliver(alice.cancel(invite), from: alice.flow)
        _ = world.take(alice.flow)
        try world.advance(by: .seconds(33))
        #expect(world.takeResponses(alice.flow).first?.status == 487)
    }

    @Test func unknownUserIs404AndOneWithoutDeviceIs480() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        var bob = try world.registered("bob", port: 40_002)
        try world.deliver(alice.request(.invite, to: "nobody"), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [404])
        try world.register(&bob, expires: 0)
        // The contact's own parameter is absent here, so the header counts: bob is gone.
        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [480])
    }

    @Test func twoFlowsOfOneDeviceRingOnceAndTheSecondStepsIn() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        var first = world.client("bob", .tcp, port: 40_002)
        var second = world.client("bob", .tcp, port: 40_003)
        second.instance = first.instance
        for (index, isFirst) in [(1, true), (2, false)] {
            var request = isFirst ? first.register(token: nil) : second.register(token: nil)
            request.headers.append("Authorization", "Bearer " + (try world.token(for: first)))
            var contact = isFirst ? first.registrationContact : second.registrationContact
            contact.parameters["reg-id"] = String(index)
            request.contacts = [contact]
            try world.deliver(request, from: isFirst ? first.flow : second.flow)
        }
        #expect(world.core.registrationCount == 3)
        _ = world.take(first.flow)
        _ = world.take(second.flow)
        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        #expect(world.take(first.flow).isEmpty)
        #expect(world.take(second.flow).map(\.method) == [.invite])
        try world.fail(second.flow)
        // RFC 5626 section 5.3: the other flow of the same device.
        let invite = try #require(world.take(first.flow).first)
        #expect(invite.method == .invite)
        try world.deliver(first.response(200, to: invite), from: first.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [200])
    }
}
