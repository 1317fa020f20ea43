import Dispatch
import Primitives
import SinchEnvironment
import SinchRTC
import Testing
import Token

/// Starting, failing to start, starting again and terminating.
@Suite struct RegistrationTests {
    @Test(arguments: ["udp", "tcp"]) func clientStarts(transport: String) async throws {
        try await withEnvironment { environment in
            let alice = try environment.user("alice", transport: transport)
            #expect(!alice.client.isStarted)
            try await alice.start()
            #expect(alice.client.isStarted)
            #expect(alice.log.events == [.needsToken, .started])
            // A second start changes nothing.
            alice.client.start()
            await alice.client.terminate()
            await drainCallbacks()
            #expect(alice.log.events == [.needsToken, .started])
            #expect(!alice.client.isStarted)
            // Alice is gone; echo, the environment's own user, is left.
            #expect(await environment.server.registrations == 1)
        }
    }

    @Test func theEnvironmentsAddressIsEnough() async throws {
        try await withEnvironment { environment in
            var configuration = SinchClientConfiguration(
                applicationKey: TestEnvironment.key, environmentHost: "\(environment.address)", userId: "alice")
            configuration.capture = .silence
            configuration.playback = .null
            let alice = try TestUser(configuration, secret: environment.secret)
            try await alice.start()
            let call = try alice.call("echo")
            try await alice.wait("establish", of: call)
            await alice.client.terminate()
        }
    }

    @Test func wrongSecretIsRefused() async throws {
        try await withEnvironment { environment in
            var random = RandomSource.system
            let alice = try TestUser(
                TestEnvironment.configuration("alice", at: environment.address),
                secret: ApplicationSecret.generate(random: &random))
            alice.client.start()
            let error = try await alice.failure()
            #expect(error?.code == .registrationRefused)
            #expect(error?.hint != nil)
            #expect(error?.step == "registering")
            #expect(!alice.client.isStarted)
            await alice.client.terminate()
        }
    }

    @Test func registerDidFailEndsInClientDidFail() async throws {
        try await withEnvironment { environment in
            let alice = try TestUser(
                TestEnvironment.configuration("alice", at: environment.address), secret: nil)
            alice.client.start()
            #expect(try await alice.failure()?.code == .noCredentials)
            // And again: nothing of the first attempt is left that would swallow the second.
            alice.client.start()
            try await alice.log.wait("a second failure") { events in
                events.count { $0 == .failed(.noCredentials) } == 2
            }
            await alice.client.terminate()
        }
    }

    @Test func noDelegateMeansNoCredentials() async throws {
        try await withEnvironment { environment in
            let client = try SinchRTC.client(
                configuration: TestEnvironment.configuration("alice", at: environment.address))
            let failures = EventLog<String>()
            client.start()
            // Nobody can be told by a delegate, so the status is what tells.
            try await eventually("await status(of: client).lastFailure != nil") {
                await status(of: client).lastFailure != nil
            }
            failures.append(await status(of: client).lastFailure ?? "")
            #expect(failures.events.first?.contains("no delegate") == true)
            #expect(!client.isStarted)
            await client.terminate()
        }
    }

    @Test(arguments: ["udp", "tcp"]) func nothingListeningFailsAtOnce(transport: String) async throws {
        let address = try await TestEnvironment.deadAddress()
        let alice = try TestUser(
            TestEnvironment.configuration("alice", at: address, transport: transport),
            secret: ApplicationSecret(bytes: [UInt8](repeating: 7, count: 16)))
        let clock = ContinuousClock()
        let began = clock.now
        alice.client.start()
        #expect(try await alice.failure()?.code == .network)
        #expect(clock.now - began < .seconds(3), "not after the transaction's 32 s")
        #expect(!alice.log.events.contains(.needsToken))
        await alice.client.terminate()
    }

    @Test(arguments: ["udp", "tcp"]) func startAgainAfterFailure(transport: String) async throws {
        let address = try await TestEnvironment.deadAddress()
        let secret = try ApplicationSecret(bytes: [UInt8](repeating: 7, count: 16))
        let alice = try TestUser(
            TestEnvironment.configuration("alice", at: address, transport: transport), secret: secret)
        alice.client.start()
        #expect(try await alice.failure()?.code == .network)
        let environment = try await TestEnvironment.start(port: address.port, secret: secret)
        try await alice.start()
        #expect(alice.client.isStarted)
        await alice.client.terminate()
        await environment.server.stop()
    }

    @Test func unknownHostIsNamed() async throws {
        var configuration = SinchClientConfiguration(
            applicationKey: TestEnvironment.key, environmentHost: "no-such-host.invalid", userId: "alice")
        configuration.playback = .null
        let alice = try TestUser(configuration, secret: nil)
        alice.client.start()
        let error = try await alice.failure()
        // Without any name server the answer is that the network failed.
        #expect(error?.code == .nameNotFound || error?.code == .network)
        await alice.client.terminate()
    }

    @Test(arguments: [
        "192.0.2.7:5060;transport=udp", "192.0.2.7:5060;transport=tcp", "192.0.2.7;transport=ws",
        "[2001:db8::7]:5060;transport=udp",
    ])
    func tokenNeverLeavesTheMachineWithoutTLS(proxy: String) async throws {
        var configuration = TestEnvironment.configuration("alice", at: TransportAddress(host: "127.0.0.1", port: 5060))
        configuration.outboundProxy = proxy
        let alice = try TestUser(configuration, secret: ApplicationSecret(bytes: [UInt8](repeating: 7, count: 16)))
        alice.client.start()
        let error = try await alice.failure()
        #expect(error?.code == .tls)
        // Local: no socket was even opened, so nobody was asked and no token made.
        #expect(error?.sipStatus == nil)
        #expect(alice.log.events == [.failed(.tls)])
        #expect(await status(of: alice.client).localAddress == nil)
        await alice.client.terminate()
    }

    @Test func terminatedClientIsNotRestartable() async throws {
        try await withEnvironment { environment in
            let alice = try environment.user("alice")
            try await alice.start()
            await alice.client.terminate()
            alice.client.start()
            #expect(try await alice.failure()?.code == .notStarted)
            // A second termination returns, too.
            await alice.client.terminate()
        }
    }

    @Test(arguments: ["udp", "tcp"]) func terminationDoesNotWaitForALostEnvironment(transport: String) async throws {
        let environment = try await TestEnvironment.start()
        let alice = try environment.user("alice", transport: transport)
        try await alice.start()
        await environment.server.stop()
        let clock = ContinuousClock()
        let began = clock.now
        await alice.client.terminate()
        #expect(clock.now - began < .seconds(4), "two seconds and what a busy machine adds")
    }

    @Test func answersThatComeTwiceOrLateAreIgnored() async throws {
        try await withEnvironment { environment in
            let delegate = TwiceAnswering(secret: environment.secret)
            let client = try SinchRTC.client(
                configuration: TestEnvironment.configuration("alice", at: environment.address))
            client.delegate = delegate
            client.start()
            try await delegate.log.wait("start") { $0.contains("started") }
            delegate.repeatAnswer()
            await client.terminate()
            delegate.repeatAnswer()
            await drainCallbacks()
            #expect(delegate.log.events == ["asked", "started"])
        }
    }

    private func status(of client: SinchClient) async -> SinchClientStatus {
        await withCheckedContinuation { continuation in
            client.status { continuation.resume(returning: $0) }
        }
    }
}

/// Answers the question for a token with a good one, and then with failures.
private final class TwiceAnswering: SinchClientDelegate, @unchecked Sendable {
    // @unchecked: `callback` is written on the callback queue before anyone reads it.
    let log = EventLog<String>()
    private let secret: ApplicationSecret
    private var callback: SinchClientRegistration?

    init(secret: ApplicationSecret) {
        self.secret = secret
    }

    func repeatAnswer() {
        callback?.registerDidFail(error: TestUser.NoToken())
        callback?.register(withJWT: "not.a.token")
    }

    func clientRequiresRegistrationCredentials(
        _ client: SinchClient, withCallback callback: SinchClientRegistration
    ) {
        self.callback = callback
        log.append("asked")
        if let token = try? SinchJWT.sign(
            applicationKey: TestEnvironment.key, applicationSecret: secret, userId: client.userId)
        {
            callback.register(withJWT: token)
        }
        repeatAnswer()
    }

    func clientDidStart(_ client: SinchClient) { log.append("started") }
    func clientDidFail(_ client: SinchClient, error: Error) { log.append("failed") }
}
