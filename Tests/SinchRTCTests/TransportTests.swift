import Network
import Primitives
import SIP
import SinchEnvironment
import SinchRTC
import TestCertificates
import Testing

/// Whole clients over each transport, and what happens when its connection breaks.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct TransportTests {
    private static let streams: [SIPTransport] = [.tcp, .tls, .ws, .wss]

    private func withServer(_ body: (TestEnvironment) async throws -> Void) async throws {
        let files = try LoopbackIdentity.files.get()
        let environment = try await TestEnvironment.start(
            certificate: try TLSServerContext(certificateFile: files.certificate, keyFile: files.key))
        do {
            try await body(environment)
        } catch {
            await environment.server.stop()
            throw error
        }
        await environment.server.stop()
    }

    private func user(
        _ name: String, _ transport: SIPTransport, in environment: TestEnvironment, at relay: CuttableRelay? = nil,
        policy: TestUser.Policy = .answer, trusts: Bool = true
    ) async throws -> TestUser {
        let address = try #require(await environment.server.addresses[transport])
        let authority = trusts ? try LoopbackIdentity.files.get().authority : nil
        return try environment.user(name, policy: policy, transport: transport.rawValue) {
            $0.outboundProxy = "\(relay?.address ?? address);transport=\(transport.rawValue)"
            $0.caFile = authority
        }
    }

    private func status(of user: TestUser) async -> SinchClientStatus {
        await withCheckedContinuation { continuation in
            user.client.status { continuation.resume(returning: $0) }
        }
    }

    @Test(arguments: streams) func twoUsersCall(transport: SIPTransport) async throws {
        try await withServer { environment in
            let alice = try await user("alice", transport, in: environment)
            let bob = try await user("bob", transport, in: environment)
            try await alice.start()
            try await bob.start()
            let status = await status(of: alice)
            #expect(status.registration == "registered" && status.transport == transport.rawValue)
            #expect(status.tls?.hasPrefix("TLSv1.3") == (transport.isSecure ? true : nil))
            #expect(status.keepAlive == (transport.isWebSocket ? "websocket-ping" : "crlf"))
            let call = try alice.call("bob")
            try await alice.wait("establish", of: call)
            call.hangup()
            try await alice.wait("end", of: call)
            try await bob.log.wait("the end at bob's") { $0.contains { $0.name == "end" } }
            await alice.client.terminate()
            await bob.client.terminate()
        }
    }

    @Test(arguments: [SIPTransport.tls, .wss])
    func withoutTrustNothingIsSent(transport: SIPTransport) async throws {
        try await withServer { environment in
            let alice = try await user("alice", transport, in: environment, trusts: false)
            alice.client.start()
            let error = try await alice.failure()
            #expect(error?.code == .tls)
            #expect(error?.message.contains("certificate") == true, "\(error?.message ?? "")")
            // No token was even asked for.
            #expect(alice.log.events == [.failed(.tls)])
            await alice.client.terminate()
        }
    }

    @Test(arguments: streams) func aBrokenFlowComesBackAndTheCallSurvives(transport: SIPTransport) async throws {
        try await withServer { environment in
            let relay = try await CuttableRelay.start(to: try #require(await environment.server.addresses[transport]))
            let alice = try await user("alice", transport, in: environment, at: relay)
            let bob = try await user("bob", transport, in: environment)
            try await alice.start()
            try await bob.start()
            let states = EventLog<String>()
            alice.client.onRegistrationChange { states.append($0.registration) }
            let call = try alice.call("bob")
            try await alice.wait("establish", of: call)
            relay.cut()
            try await states.wait("the loss and the return") { $0.first == "waiting" && $0.last == "registered" }
            #expect(relay.opened == 2)
            #expect(!alice.story(of: call).contains("end"))
            // The other side's BYE finds the new flow.
            try #require(bob.incoming.first).hangup()
            try await alice.wait("end", of: call)
            await alice.client.terminate()
            await bob.client.terminate()
            try await relay.stop()
        }
    }

    @Test func aResetInTheMidstOfAnInviteEndsThatCallAndNoOther() async throws {
        try await withServer { environment in
            let relay = try await CuttableRelay.start(to: environment.address)
            let alice = try await user("alice", .tcp, in: environment, at: relay)
            let bob = try await user("bob", .tcp, in: environment)
            try await alice.start()
            try await bob.start()
            let states = EventLog<String>()
            alice.client.onRegistrationChange { states.append($0.registration) }
            // The last one is the answer itself: the call ends here, and the other side learns it from the platform.
            let cuts = [("INVITE sip:", false), ("SIP/2.0 18", true), ("SIP/2.0 200 ", true)]
            for (index, (text, fromServer)) in cuts.enumerated() {
                relay.cut(at: text, fromServer: fromServer)
                let call = try alice.call("bob")
                try await alice.wait("end", of: call)
                #expect(call.details.endCause != .hungUp)
                try await states.wait("the return") { $0.count { $0 == "registered" } > index }
            }
            let call = try alice.call("bob")
            try await alice.wait("establish", of: call)
            call.hangup()
            try await alice.wait("end", of: call)
            await alice.client.terminate()
            await bob.client.terminate()
            try await relay.stop()
        }
    }

    /// `localhost` has two addresses, which are two servers here: whichever is tried first, the one that serves is found.
    @Test(arguments: [true, false]) func aServerThatSays503IsLeftForTheOther(isFirst: Bool) async throws {
        let refuse: @Sendable (SIPMessage) -> [SIPMessage]? = { request in
            guard request.method == .register else { return nil }
            var response = request.response(status: 503, toTag: "busy")
            response.headers["Retry-After"] = "3600"
            return [response]
        }
        let serve: @Sendable (SIPMessage) -> [SIPMessage]? = { _ in nil }
        let four = try await FakePlatform.start(respond: isFirst ? refuse : serve)
        let six = try await FakePlatform.start(
            at: TransportAddress(host: "::1", port: four.address.port), respond: isFirst ? serve : refuse)
        let (busy, good) = isFirst ? (four, six) : (six, four)
        var configuration = TestEnvironment.configuration("alice", at: four.address)
        configuration.outboundProxy = "localhost:\(four.address.port);transport=udp"
        let alice = try TestUser(configuration, secret: nil)
        try await alice.start()
        #expect(await status(of: alice).remoteAddress == good.address.description)
        #expect(good.log.events.contains { $0.method == .register })
        #expect(busy.log.events.count { $0.method == .register } <= 1)
        await alice.client.terminate()
        try await four.stop()
        try await six.stop()
    }

    @Test func whenAllServersSay503TheStartFails() async throws {
        let busy = try await FakePlatform.start { request in [request.response(status: 503, toTag: "busy")] }
        let alice = try TestUser(TestEnvironment.configuration("alice", at: busy.address), secret: nil)
        alice.client.start()
        let error = try await alice.failure()
        #expect(error?.code == .remote && error?.sipStatus == 503)
        await alice.client.terminate()
        try await busy.stop()
    }

    @Test(arguments: [SIPTransport.tls, .ws]) func oneByteAtATimeIsEnough(transport: SIPTransport) async throws {
        try await withServer { environment in
            let relay = try await CuttableRelay.start(to: try #require(await environment.server.addresses[transport]))
            relay.trickle()
            let alice = try await user("alice", transport, in: environment, at: relay)
            try await alice.start()
            await alice.client.terminate()
            try await relay.stop()
        }
    }
}
