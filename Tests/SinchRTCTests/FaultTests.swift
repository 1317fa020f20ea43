import Primitives
import SIP
import SinchEnvironment
import SinchRTC
import Synchronization
import Testing
import Token

/// What other programs can do to a client, and what must become of it.
@Suite struct FaultTests {
    /// A started client at a platform that answers calls with media at `media`, and grants the rest.
    private func withFake(
        media: TransportAddress,
        _ configure: (inout SinchClientConfiguration) -> Void = { _ in },
        _ body: (TestUser, FakePlatform) async throws -> Void
    ) async throws {
        let platform = try await FakePlatform.start { request in
            guard request.method == .invite else { return nil }
            // The request's own Via is where it came from, so that is a contact that exists.
            let via = request.topVia
            let answer = FakePlatform.answer(
                to: request, contact: TransportAddress(host: "127.0.0.1", port: via?.port ?? 9), media: media)
            return [request.response(status: 180, toTag: "fake"), answer]
        }
        var configuration = TestEnvironment.configuration("alice", at: platform.address)
        configure(&configuration)
        let alice = try TestUser(configuration, secret: ApplicationSecret(bytes: [UInt8](repeating: 7, count: 16)))
        try await alice.start()
        try await body(alice, platform)
        await alice.client.terminate()
        try await platform.stop()
    }

    @Test func plainMediaNeverLeavesTheMachine() async throws {
        try await withFake(media: TransportAddress(host: "192.0.2.9", port: 4_000)) { alice, platform in
            let call = try alice.call("bob")
            try await alice.wait("end", of: call)
            #expect(call.details.endCause == .error)
            let error = call.details.error as? SinchError
            #expect(error?.code == .media)
            #expect(error?.message.contains("unencrypted") == true)
            #expect(call.lastStatistics.packetsSent == 0)
            try await platform.log.wait("a BYE") { messages in messages.contains { $0.method == .bye } }
        }
    }

    @Test func mediaMayNotBeMovedOffTheMachineLater() async throws {
        let media = try await FakeMedia.start()
        try await withFake(media: media.address) { alice, platform in
            let call = try alice.call("bob")
            try await platform.log.wait("an ACK") { messages in messages.contains { $0.method == .ack } }
            let invite = try #require(platform.log.events.first { $0.method == .invite })
            // Our first packet tells that the stream has begun: what comes before is stale and not kept.
            try await media.received.wait("a packet") { !$0.isEmpty }
            media.sendPacket(to: try #require(FakePlatform.mediaPort(of: invite)))
            try await alice.wait("establish", of: call)
            try await platform.sendReinvite(
                in: invite, media: TransportAddress(host: "192.0.2.9", port: 4_000))
            try await alice.wait("end", of: call)
            #expect(call.details.termination?.reason == .media)
            #expect(call.details.endCause == .error)
        }
        try await media.stop()
    }

    @Test func mediaThatNeverComesEndsTheCall() async throws {
        let media = try await FakeMedia.start()
        try await withFake(media: media.address) {
            $0.mediaTimeout = .milliseconds(400)
        } _: { alice, platform in
            let call = try alice.call("bob")
            try await alice.wait("end", of: call)
            #expect(alice.story(of: call) == ["progress", "ring", "answer", "end"])
            #expect((call.details.error as? SinchError)?.code == .media)
            #expect((call.details.error as? SinchError)?.step == "media")
            #expect(call.lastStatistics.packetsSent > 5)
        }
        try await media.stop()
    }

    @Test func aFileBeginsWhenTheOtherSideIsHeard() async throws {
        let media = try await FakeMedia.start()
        let sound = Scratch("sound")
        try writeTone(600, seconds: 0.3, to: sound.path)
        try await withFake(media: media.address) { alice, platform in
            var options = SinchCallMedia()
            options.capture = .file(sound.path)
            options.hangsUpAfterPlaying = true
            let call = try alice.call("bob", media: options)
            // Twice as many packets as the file has: it cannot have begun, or the call would be over.
            try await media.received.wait("30 packets") { $0.count >= 30 }
            #expect(call.state == .answered)
            let invite = try #require(platform.log.events.first { $0.method == .invite })
            media.sendPacket(to: try #require(FakePlatform.mediaPort(of: invite)))
            try await alice.wait("end", of: call)
            #expect(alice.story(of: call) == ["progress", "ring", "answer", "establish", "end"])
            #expect(call.details.endCause == .hungUp)
            #expect(call.lastStatistics.packetsSent >= 40)
        }
        try await media.stop()
    }

    @Test func mediaThatStopsEndsTheCallAsInactive() async throws {
        let media = try await FakeMedia.start()
        try await withFake(media: media.address) {
            $0.inactivityTimeout = .milliseconds(500)
        } _: { alice, platform in
            let call = try alice.call("bob")
            try await platform.log.wait("an ACK") { messages in messages.contains { $0.method == .ack } }
            let invite = try #require(platform.log.events.first { $0.method == .invite })
            // Our first packet tells that the stream has begun: what comes before is stale and not kept.
            try await media.received.wait("a packet") { !$0.isEmpty }
            media.sendPacket(to: try #require(FakePlatform.mediaPort(of: invite)))
            try await alice.wait("establish", of: call)
            try await alice.wait("end", of: call)
            #expect(call.details.endCause == .inactive)
            #expect(call.details.error == nil)
            try await platform.log.wait("a BYE") { messages in messages.contains { $0.method == .bye } }
        }
        try await media.stop()
    }

    @Test(arguments: [
        (403, SinchCallDetails.EndCause.error, SinchError.Code?.some(.forbidden)),
        (404, .error, .noSuchUser), (410, .error, .noSuchUser), (480, .noAnswer, nil), (486, .denied, nil),
        (488, .error, .media), (500, .error, .remote), (503, .error, .remote), (600, .denied, nil),
        (603, .denied, nil), (604, .error, .noSuchUser),
    ])
    func refusalsBecomeCauses(status: Int, cause: SinchCallDetails.EndCause, code: SinchError.Code?) async throws {
        let platform = try await FakePlatform.start { request in
            request.method == .invite ? [request.response(status: status, toTag: "fake")] : nil
        }
        let alice = try TestUser(TestEnvironment.configuration("alice", at: platform.address), secret: nil)
        try await alice.start()
        let call = try alice.call("bob")
        try await alice.wait("end", of: call)
        #expect(call.details.endCause == cause)
        #expect((call.details.error as? SinchError)?.code == code)
        #expect(call.details.termination?.sipStatus == status)
        if code != nil { #expect((call.details.error as? SinchError)?.sipStatus == status) }
        await alice.client.terminate()
        try await platform.stop()
    }

    @Test func theTokenGoesToTheRegistrarAlone() async throws {
        let media = try await FakeMedia.start()
        let wasChallenged = Mutex(false)
        let platform = try await FakePlatform.start { request in
            switch request.method {
            case .some(.register):
                let isFirst = wasChallenged.withLock { challenged in
                    defer { challenged = true }
                    return !challenged
                }
                guard isFirst else { return nil }
                var challenge = request.response(status: 401, toTag: "fake")
                challenge.headers["WWW-Authenticate"] = "Bearer realm=\"sinchctl.localhost\""
                return [challenge]
            case .some(.invite):
                var challenge = request.response(status: 407, toTag: "fake")
                challenge.headers["Proxy-Authenticate"] = "Bearer realm=\"sinchctl.localhost\""
                return [challenge]
            default: return nil
            }
        }
        let alice = try TestUser(
            TestEnvironment.configuration("alice", at: platform.address),
            secret: ApplicationSecret(bytes: [UInt8](repeating: 7, count: 16)))
        try await alice.start()
        let call = try alice.call("bob")
        try await alice.wait("end", of: call)
        #expect((call.details.error as? SinchError)?.code == .forbidden)
        for message in platform.log.events {
            let carriesToken = message.headers.all.contains { $0.value.hasPrefix("Bearer ey") }
            #expect(!carriesToken || message.method == .register)
        }
        #expect(platform.log.events.contains { $0.headers["Authorization"]?.hasPrefix("Bearer ey") == true })
        await alice.client.terminate()
        try await platform.stop()
        try await media.stop()
    }

    @Test func aRestartedEnvironmentIsFoundAgain() async throws {
        let first = try await TestEnvironment.start()
        let alice = try first.user("alice", transport: "tcp")
        let bob = try first.user("bob", policy: .answer, transport: "tcp")
        for user in [alice, bob] {
            try await user.start()
            user.client.onRegistrationChange { status in
                user.log.append(.registration(status.registration))
            }
        }
        let call = try alice.call("bob")
        try await alice.wait("establish", of: call)
        let incoming = try await bob.nextIncoming()
        try await bob.wait("establish", of: incoming)
        await first.server.stop()
        for user in [alice, bob] {
            try await user.log.wait("the loss") { $0.contains(.registration("waiting")) }
        }
        let second = try await TestEnvironment.start(port: first.address.port, secret: first.secret)
        for user in [alice, bob] {
            try await user.log.wait("the registration") { $0.contains(.registration("registered")) }
        }
        // Media needs no environment: the call is still there, and a new one can be made.
        #expect(call.state == .established)
        #expect(incoming.state == .established)
        let next = try alice.call("bob")
        try await alice.wait("establish", of: next)
        // The old one ends at least here; whether the other side hears of it depends on who was restarted.
        call.hangup()
        try await alice.wait("end", of: call)
        #expect(call.details.endCause == .hungUp)
        #expect(alice.log.events.count { $0 == .started } == 1)
        #expect(alice.errors.isEmpty)
        await alice.client.terminate()
        await bob.client.terminate()
        await second.server.stop()
    }

    @Test func callsWhileTheEnvironmentIsGoneEndWithAReason() async throws {
        for transport in ["udp", "tcp"] {
            let environment = try await TestEnvironment.start()
            let alice = try environment.user("alice", transport: transport)
            try await alice.start()
            await environment.server.stop()
            let call = try alice.call("bob")
            try await alice.wait("end", of: call, timeout: 5)
            #expect((call.details.error as? SinchError)?.code == .network)
            await alice.client.terminate()
        }
    }

    @Test func aRefusedRefreshIsToldAndTriedAgainAfterAPause() async throws {
        let platform = try await FakePlatform.start { request in
            guard request.method == .register, let number = request.cseq?.number, number <= 2 else { return nil }
            guard number == 1 else { return [request.response(status: 403, toTag: "fake")] }
            var consent = FakePlatform.consent(to: request)
            // Refreshed after at most 0.9 s.
            consent.expires = 1
            return [consent]
        }
        let alice = try TestUser(TestEnvironment.configuration("alice", at: platform.address), secret: nil)
        let changes = EventLog<SinchClientStatus>()
        alice.client.onRegistrationChange { changes.append($0) }
        try await alice.start()
        try await changes.wait("the refusal") { $0.contains { $0.lastFailure != nil } }
        let refusal = try #require(changes.events.first { $0.lastFailure != nil })
        #expect(refusal.lastFailure?.contains("Forbidden") == true)
        #expect(refusal.registration == "waiting")
        let pause = try #require(refusal.nextAttemptIn)
        #expect((25...60).contains(pause), "not at once: the platform must not take it for guessing")
        // The user may know better.
        alice.client.renewRegistration()
        try await changes.wait("the registration") { $0.last?.registration == "registered" }
        #expect(alice.client.isStarted)
        #expect(alice.errors.isEmpty)
        await alice.client.terminate()
        try await platform.stop()
    }
}
