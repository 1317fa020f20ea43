import Dispatch
import Primitives
import SIP
import Synchronization
import Testing
import Token

@testable import SinchRTC

/// A delegate that gives tokens as a test says, and keeps what it was told.
private final class TokenGiver: SinchClientDelegate, Sendable {
    let log = EventLog<String>()
    let client: SinchClient
    private let give: @Sendable (Int) throws -> String
    private let state = Mutex<(asked: Int, errors: [SinchError])>((0, []))

    init(_ configuration: SinchClientConfiguration, give: @escaping @Sendable (Int) throws -> String) throws {
        self.give = give
        client = try SinchRTC.client(configuration: configuration)
        client.delegate = self
    }

    var errors: [SinchError] { state.withLock { $0.errors } }

    func status() async -> SinchClientStatus {
        await withCheckedContinuation { continuation in client.status { continuation.resume(returning: $0) } }
    }

    func clientRequiresRegistrationCredentials(
        _ client: SinchClient, withCallback callback: SinchClientRegistration
    ) {
        let number = state.withLock { state in
            state.asked += 1
            return state.asked
        }
        log.append("asked \(number)")
        do {
            callback.register(withJWT: try give(number))
        } catch {
            callback.registerDidFail(error: error)
        }
    }

    func clientDidStart(_ client: SinchClient) { log.append("started") }

    func clientDidFail(_ client: SinchClient, error: Error) {
        if let error = error as? SinchError { state.withLock { $0.errors.append(error) } }
        log.append("failed \((error as? SinchError)?.code.rawValue ?? "?")")
    }
}

/// Passwords, tokens and what becomes of them at the edge of the library.
@Suite struct CredentialTests {
    private static let secret = "c2VjcmV0LWNhbmFyeS1zZWNyZXQtY2FuYXJ5LTAx"

    private static func token(_ lifetime: Int64 = 600) throws -> String {
        try SinchJWT.sign(
            applicationKey: TestEnvironment.key, applicationSecret: secret, userId: "alice", lifetime: lifetime)
    }

    private static func challenge(_ request: SIPMessage, _ value: String, date: String? = nil) -> [SIPMessage] {
        var response = request.response(status: 401, toTag: "fake")
        response.headers["WWW-Authenticate"] = value
        response.headers["Date"] = date
        return [response]
    }

    /// A registrar that knows one user's password.
    private static func digestPlatform() async throws -> FakePlatform {
        let verifier = Mutex(DigestVerifier(realm: "pbx", algorithms: [.md5, .sha256]))
        return try await FakePlatform.start { request in
            guard request.method == .register else { return nil }
            let answer = verifier.withLock { verifier -> SIPMessage? in
                let now = MonotonicTime(nanoseconds: 1)
                let verdict = verifier.verify(request, at: now) { username, algorithm in
                    guard username == "1001", !algorithm.rawValue.hasPrefix("MD5") else { return nil }
                    return DigestInput.secret(
                        algorithm: algorithm, username: username, realm: "pbx", password: "canary password")
                }
                if case .accepted = verdict { return nil }
                return verifier.challenge(request, toTag: "fake", at: now)
            }
            return answer.map { [$0] }
        }
    }

    private func configuration(
        _ platform: FakePlatform, _ authentication: SinchAuthentication
    ) -> SinchClientConfiguration {
        var configuration = TestEnvironment.configuration("alice", at: platform.address)
        configuration.authentication = authentication
        return configuration
    }

    @Test func passwordRegisters() async throws {
        let logged = EventLog<String>()
        setLogCallback { _, area, message, _ in logged.append("\(area) \(message)") }
        let platform = try await Self.digestPlatform()
        let giver = try TokenGiver(
            configuration(platform, .digest(username: "1001", password: "canary password"))
        ) { _ in "" }
        giver.client.start()
        try await giver.log.wait("the start") { $0.contains("started") }
        #expect(giver.log.events == ["started"])
        // The strongest of what was offered, though it came last.
        #expect(platform.log.events.last?.headers["Authorization"]?.contains("algorithm=SHA-256") == true)
        let wire = try platform.log.events.map { String(decoding: try $0.encoded(), as: UTF8.self) }
        #expect(!(wire + logged.events).contains { $0.contains("canary") })
        await giver.client.terminate()
        try await platform.stop()
    }

    @Test func wrongPasswordIsRefusedAndNotShown() async throws {
        let platform = try await Self.digestPlatform()
        let giver = try TokenGiver(
            configuration(platform, .digest(username: "1001", password: "canary wrong"))
        ) { _ in "" }
        giver.client.start()
        try await giver.log.wait("the failure") { $0.contains("failed registrationRefused") }
        let report = await giver.status()
        var texts = "\(giver.errors) \(report) \(String(reflecting: giver.client))"
        dump(configuration(platform, .digest(username: "1001", password: "canary wrong")), to: &texts)
        #expect(!texts.contains("canary"))
        #expect(texts.contains("did not accept the user name and password"))
        #expect(platform.log.events.count { $0.method == .register } == 2)
        await giver.client.terminate()
        try await platform.stop()
    }

    @Test(arguments: [SinchAuthentication.none, .digest(username: "u", password: "canary")])
    func platformThatWantsATokenIsNamed(authentication: SinchAuthentication) async throws {
        let platform = try await FakePlatform.start { Self.challenge($0, "Bearer realm=\"r\"") }
        let giver = try TokenGiver(configuration(platform, authentication)) { _ in "" }
        giver.client.start()
        try await giver.log.wait("the failure") { $0.contains("failed noCredentials") }
        #expect(giver.errors.first?.message.contains("asks for a token") == true)
        #expect(!giver.log.events.contains("asked 1"))
        await giver.client.terminate()
        try await platform.stop()
    }

    @Test func nothingIsNeededWhereNothingIsAsked() async throws {
        let platform = try await FakePlatform.start()
        let giver = try TokenGiver(configuration(platform, .none)) { _ in "" }
        giver.client.start()
        try await giver.log.wait("the start") { $0.contains("started") }
        await giver.client.terminate()
        try await platform.stop()
    }

    @Test func tokenIsRenewedBeforeItEndsAndTheCallGoesOn() async throws {
        try await withEnvironment { environment in
            var configuration = TestEnvironment.configuration("alice", at: environment.address)
            configuration.tokenRenewal.fraction = 0.002...0.003
            let secret = environment.secret
            let giver = try TokenGiver(configuration) { _ in
                try SinchJWT.sign(applicationKey: TestEnvironment.key, applicationSecret: secret, userId: "alice")
            }
            giver.client.start()
            try await giver.log.wait("the start") { $0.contains("started") }
            let call = try giver.client.callClient.callUser(withId: "echo").get()
            try await eventually("the call") { call.state == .established }
            let asked = giver.log.events.count
            try await giver.log.wait("two renewals") { $0.count >= asked + 2 }
            #expect(call.state == .established)
            #expect(giver.client.isStarted)
            #expect(!giver.log.events.contains { $0.hasPrefix("failed") })
            await giver.client.terminate()
        }
    }

    @Test func clientThatWasRegisteredAsksAgainWhenThereIsNoToken() async throws {
        struct NoToken: Error {}
        let isRefusing = Mutex(false)
        let platform = try await FakePlatform.start { request in
            let token = Challenge.bearerToken(in: request)
            let isRefused = token == nil || (isRefusing.withLock { $0 } && token == "a.b.1")
            return isRefused ? Self.challenge(request, "Bearer realm=\"r\", error=\"invalid_token\"") : nil
        }
        let giver = try TokenGiver(configuration(platform, .token)) { number in
            if number == 2 || number == 3 { throw NoToken() }
            return "a.b.\(number)"
        }
        giver.client.start()
        try await giver.log.wait("the start") { $0.contains("started") }
        isRefusing.withLock { $0 = true }
        giver.client.renewRegistration()
        try await giver.log.wait("the fourth question") { $0.contains("asked 4") }
        try await eventually("the registration") { await giver.status().lastFailure == nil }
        #expect(giver.log.events == ["asked 1", "started", "asked 2", "asked 3", "asked 4"])
        #expect(giver.client.isStarted)
        await giver.client.terminate()
        try await platform.stop()
    }

    @Test func clocksAreCompared() async throws {
        let now = try #require(TokenValidity(of: Self.token())?.start)
        #expect(unixTime(internetDate: "Mon, 30 Nov 2026 09:00:00 GMT") == 1_796_029_200)
        let platform = try await FakePlatform.start { request in
            guard Challenge.bearerToken(in: request) != nil else {
                return Self.challenge(request, "Bearer realm=\"r\"")
            }
            return Self.challenge(
                request,
                "Bearer realm=\"r\", error=\"invalid_token\", error_description=\"too old\", token_error=\"expired\", "
                    + "authz_server=\"https://issuer.invalid/\"", date: "Fri, 01 Jan 2100 00:00:00 GMT")
        }
        let giver = try TokenGiver(configuration(platform, .token)) { _ in try Self.token() }
        giver.client.start()
        try await giver.log.wait("the failure") { $0.contains("failed registrationRefused") }
        let error = try #require(giver.errors.first)
        #expect(error.message.contains("too old"))
        #expect(error.message.contains("until \(utcText(unixTime: now).prefix(11))"))
        #expect(error.message.contains("it is \(utcText(unixTime: now).prefix(11))"))
        #expect(error.message.contains("and 2100-01-01T00:00:00Z there"))
        #expect(error.message.contains("https://issuer.invalid/"))
        #expect(error.hint?.contains("the clocks differ by") == true)
        #expect(await giver.status().authorizationServer == "https://issuer.invalid/")
        await giver.client.terminate()
        try await platform.stop()
    }

    @Test func unknownApplicationHasACodeOfItsOwn() async throws {
        try await withEnvironment { environment in
            let giver = try TokenGiver(TestEnvironment.configuration("alice", at: environment.address)) { _ in
                try SinchJWT.sign(
                    applicationKey: "00000000-0000-4000-8000-000000000000", applicationSecret: Self.secret,
                    userId: "alice")
            }
            giver.client.start()
            try await giver.log.wait("the failure") { $0.contains("failed unknownApplication") }
            await giver.client.terminate()
        }
    }

    @Test func renewalIsPlannedByTheTokensOwnEnd() throws {
        var random = RandomSource.seeded(3)
        let renewal = TokenRenewal()
        func delay(_ left: Int64?, isRetry: Bool = false) -> Double? {
            var validity = TokenValidity(of: "e30.e30.e30")
            validity?.end = left.map { 1_000_000 + $0 }
            return renewal.delay(of: validity, unixTime: 1_000_000, isRetry: isRetry, random: &random)?.seconds
        }
        #expect(delay(nil) == nil)
        #expect(delay(0) == nil)
        #expect(delay(-5) == nil)
        for _ in 0..<100 {
            let (first, again) = (try #require(delay(600)), try #require(delay(600, isRetry: true)))
            #expect((450...540).contains(first))
            #expect((240...360).contains(again))
            // A year is looked at every week, and a second cannot be missed.
            let (year, second) = (try #require(delay(31_536_000)), try #require(delay(1)))
            #expect(year <= 7 * 86_400)
            #expect(second < 1)
        }
        #expect(delay(6, isRetry: true) == 5)
        #expect(delay(4, isRetry: true) == nil)
        #expect(renewal.delay(of: nil, unixTime: 0, isRetry: false, random: &random) == nil)
    }

    @Test func plainMediaLeavesOnlyWhenAllowed() {
        let (near, far) = (TransportAddress(host: "127.0.0.1", port: 1), TransportAddress(host: "192.0.2.1", port: 1))
        for security in SinchMediaSecurity.allCases {
            #expect(security.allowsPlain(to: near))
            #expect(security.allowsPlain(to: far) == (security == .none))
        }
        #expect(
            SinchClientConfiguration(applicationKey: "k", environmentHost: "h", userId: "u").mediaSecurity == .required)
    }
}
