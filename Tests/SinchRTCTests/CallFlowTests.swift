import SinchEnvironment
import SinchRTC
import Testing

/// Calls between two clients through a real environment: states, callbacks, causes.
@Suite struct CallFlowTests {
    private func expectOrdered(_ details: SinchCallDetails, sourceLocation: SourceLocation = #_sourceLocation) {
        let times = [
            details.startedTime, details.progressedTime, details.rungTime, details.answeredTime,
            details.establishedTime, details.endedTime,
        ].compactMap(\.self)
        #expect(times == times.sorted(), sourceLocation: sourceLocation)
    }

    @Test(arguments: ["udp", "tcp"]) func aWholeCall(transport: String) async throws {
        try await withUsers(policy: .hold, transport: transport) { alice, bob, _ in
            let call = try alice.call("bob", headers: ["x-colour": "blue, \"green\"; red"])
            let incoming = try await bob.nextIncoming()
            #expect(incoming.state == .initiating)
            #expect(incoming.direction == .incoming)
            #expect(incoming.remoteUserId == "alice")
            #expect(incoming.callId == call.callId)
            #expect(incoming.headers == ["x-colour": "blue, \"green\"; red"])
            try await alice.wait("ring", of: call)
            #expect(call.state == .ringing)
            #expect(call.details.answeredTime == nil)
            incoming.answer()
            try await alice.wait("establish", of: call)
            try await bob.wait("establish", of: incoming)
            #expect(call.state == .established)
            #expect(call.details.endCause == .none)
            call.hangup()
            call.hangup()
            try await alice.wait("end", of: call)
            try await bob.wait("end", of: incoming)
            incoming.hangup()
            await drainCallbacks()
            #expect(alice.story(of: call) == ["progress", "ring", "answer", "establish", "end"])
            #expect(bob.story(of: incoming) == ["incoming", "answer", "establish", "end"])
            for ended in [call, incoming] {
                #expect(ended.state == .ended)
                #expect(ended.details.endCause == .hungUp)
                #expect(ended.details.error == nil)
                #expect(ended.lastStatistics.packetsReceived > 0)
                expectOrdered(ended.details)
            }
            #expect(incoming.details.progressedTime == nil)
            #expect(incoming.details.rungTime == nil)
            #expect(call.details.rungTime != nil && call.details.establishedTime != nil)
        }
    }

    @Test func theCalleeHangsUp() async throws {
        try await withUsers { alice, bob, _ in
            let call = try alice.call("bob")
            try await alice.wait("establish", of: call)
            let incoming = try await bob.nextIncoming()
            incoming.hangup()
            try await alice.wait("end", of: call)
            try await bob.wait("end", of: incoming)
            #expect(call.details.endCause == .hungUp)
            #expect(incoming.details.endCause == .hungUp)
        }
    }

    @Test func declining() async throws {
        try await withUsers(policy: .decline) { alice, bob, _ in
            let call = try alice.call("bob")
            try await alice.wait("end", of: call)
            let incoming = try await bob.nextIncoming()
            try await bob.wait("end", of: incoming)
            #expect(call.details.endCause == .denied)
            #expect(call.details.error == nil)
            #expect(call.details.termination?.reason == .declined)
            #expect(incoming.details.endCause == .denied)
            #expect(!alice.story(of: call).contains("answer"))
        }
    }

    @Test func busy() async throws {
        try await withUsers(policy: .busy) { alice, _, _ in
            let call = try alice.call("bob")
            try await alice.wait("end", of: call)
            #expect(call.details.endCause == .denied)
            #expect(call.details.termination?.reason == .busy)
            #expect(call.details.termination?.sipStatus == 486)
        }
    }

    @Test func moreCallsThanAllowedAreBusy() async throws {
        try await withEnvironment { environment in
            let alice = try environment.user("alice")
            let bob = try environment.user("bob", policy: .hold) { $0.maximumCalls = 1 }
            try await alice.start()
            try await bob.start()
            let first = try alice.call("bob")
            try await alice.wait("ring", of: first)
            let second = try alice.call("bob")
            try await alice.wait("end", of: second)
            #expect(second.details.termination?.reason == .busy)
            #expect(bob.incoming.count == 1)
            await alice.client.terminate()
            await bob.client.terminate()
        }
    }

    @Test func cancelingEndsBothSides() async throws {
        try await withUsers(policy: .hold) { alice, bob, _ in
            let call = try alice.call("bob")
            let incoming = try await bob.nextIncoming()
            try await alice.wait("ring", of: call)
            call.hangup()
            try await alice.wait("end", of: call)
            try await bob.wait("end", of: incoming)
            #expect(call.details.endCause == .canceled)
            #expect(incoming.details.endCause == .canceled)
            // What is over stays over.
            incoming.answer()
            await bob.client.terminate()
            #expect(bob.story(of: incoming) == ["incoming", "end"])
        }
    }

    @Test func hangingUpAtOnce() async throws {
        try await withUsers(policy: .hold) { alice, bob, _ in
            let call = try alice.call("bob")
            call.hangup()
            try await alice.wait("end", of: call)
            #expect(call.details.endCause == .canceled)
            // The CANCEL waits for the first response and then does its work: bob's call does not ring on.
            if let incoming = try? await bob.nextIncoming() { try await bob.wait("end", of: incoming) }
        }
    }

    @Test func hangingUpRightAfterTheAnswer() async throws {
        try await withUsers(policy: .hold) { alice, bob, _ in
            let call = try alice.call("bob")
            let incoming = try await bob.nextIncoming()
            incoming.answer()
            incoming.hangup()
            try await alice.wait("end", of: call)
            try await bob.wait("end", of: incoming)
            #expect(incoming.details.endCause == .hungUp)
            #expect(call.details.endCause == .hungUp)
        }
    }

    @Test func nobodyAnswers() async throws {
        try await withEnvironment { environment in
            let alice = try environment.user("alice") { $0.noAnswerTimeout = .seconds(3) }
            let bob = try environment.user("bob", policy: .hold)
            try await alice.start()
            try await bob.start()
            let call = try alice.call("bob")
            let incoming = try await bob.nextIncoming()
            try await alice.wait("end", of: call)
            try await bob.wait("end", of: incoming)
            #expect(call.details.endCause == .noAnswer)
            #expect(call.details.rungTime != nil)
            #expect(incoming.details.endCause == .canceled)
            await alice.client.terminate()
            await bob.client.terminate()
        }
    }

    @Test func theApplicationGivesUpRinging() async throws {
        try await withUsers(policy: .hold) { alice, bob, _ in
            let call = try alice.call("bob")
            try await alice.wait("ring", of: call)
            call.hangup(reason: .noAnswer)
            try await alice.wait("end", of: call)
            #expect(call.details.endCause == .noAnswer)
            let incoming = try await bob.nextIncoming()
            try await bob.wait("end", of: incoming)
            #expect(incoming.details.endCause == .canceled)
        }
    }

    @Test func unknownUser() async throws {
        try await withUsers { alice, _, _ in
            let call = try alice.call("nobody-of-that-name")
            try await alice.wait("end", of: call)
            #expect(call.details.endCause == .error)
            let error = call.details.error as? SinchError
            #expect(error?.code == .noSuchUser)
            #expect(error?.sipStatus == 404)
            #expect(error?.step == "calling")
        }
    }

    @Test func theOtherDeviceAnswers() async throws {
        try await withUsers(policy: .hold) { alice, bob, environment in
            let tablet = try environment.user("bob")
            try await tablet.start()
            let call = try alice.call("bob")
            let onPhone = try await bob.nextIncoming()
            let onTablet = try await tablet.nextIncoming()
            onTablet.answer()
            try await bob.wait("end", of: onPhone)
            #expect(onPhone.details.endCause == .otherDeviceAnswered)
            try await alice.wait("establish", of: call)
            try await tablet.wait("establish", of: onTablet)
            call.hangup()
            try await tablet.wait("end", of: onTablet)
            #expect(onTablet.details.endCause == .hungUp)
            await tablet.client.terminate()
        }
    }

    @Test func severalCallsAtOnce() async throws {
        try await withUsers { alice, bob, _ in
            let calls = try (0..<4).map { index in try alice.call(index % 2 == 0 ? "bob" : "echo") }
            for call in calls { try await alice.wait("establish", of: call) }
            #expect(Set(calls.map(\.callId)).count == 4)
            calls[1].hangup()
            try await alice.wait("end", of: calls[1])
            #expect(calls[0].state == .established && calls[3].state == .established)
            // Both ways between the same two users, too.
            let back = try bob.call("alice")
            let incoming = try await alice.nextIncoming()
            incoming.answer()
            try await bob.wait("establish", of: back)
            await alice.client.terminate()
            for call in calls { try await alice.wait("end", of: call) }
            try await bob.wait("end", of: back)
            #expect(back.details.endCause == .hungUp)
        }
    }

    @Test func callingOneself() async throws {
        try await withUsers { alice, _, _ in
            let call = try alice.call("alice")
            let incoming = try await alice.nextIncoming()
            #expect(incoming !== call)
            incoming.hangup()
            try await alice.log.wait("both ends") { events in events.count { $0.name == "end" } == 2 }
        }
    }

    @Test func terminationEndsCallsInEveryState() async throws {
        try await withUsers(policy: .hold) { alice, bob, _ in
            let established = try alice.call("echo")
            try await alice.wait("establish", of: established)
            let ringing = try alice.call("bob")
            let incoming = try await bob.nextIncoming()
            let back = try bob.call("alice")
            let unanswered = try await alice.nextIncoming()
            await alice.client.terminate()
            await drainCallbacks()
            #expect(established.details.endCause == .hungUp)
            #expect(ringing.details.endCause == .canceled)
            #expect(unanswered.details.endCause == .denied)
            for call in [established, ringing, unanswered] { #expect(alice.story(of: call).last == "end") }
            try await bob.wait("end", of: incoming)
            try await bob.wait("end", of: back)
            #expect(incoming.details.endCause == .canceled)
            #expect(back.details.endCause == .denied)
        }
    }
}
