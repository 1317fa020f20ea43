import Audio
import Network
import Primitives
import SinchEnvironment
import SinchRTC
import Synchronization
import Token

/// An embedded environment on loopback, and users of it. Every test has its own.
final class TestEnvironment: Sendable {
    static let key = "a32e5a8d-f7d8-411c-9645-9038e8dd051d"

    let server: EnvironmentServer
    let address: TransportAddress
    let secret: ApplicationSecret

    private init(server: EnvironmentServer, address: TransportAddress, secret: ApplicationSecret) {
        self.server = server
        self.address = address
        self.secret = secret
    }

    static func start(
        port: UInt16 = 0, secret: ApplicationSecret? = nil, announcement: String? = nil,
        certificate: TLSServerContext? = nil
    ) async throws -> TestEnvironment {
        var random = RandomSource.system
        let secret = secret ?? ApplicationSecret.generate(random: &random)
        var options = EnvironmentServer.Options()
        options.port = port
        options.applications = [EnvironmentConfiguration.Application(key: key, secret: secret)]
        options.announcementPath = announcement
        options.certificate = certificate
        let server = try EnvironmentServer(options: options)
        return TestEnvironment(server: server, address: try await server.start(), secret: secret)
    }

    /// An address on which nothing listens, by UDP or TCP: one that was just given back.
    static func deadAddress() async throws -> TransportAddress {
        let environment = try await start()
        await environment.server.stop()
        return environment.address
    }

    static func configuration(
        _ user: String, at address: TransportAddress, transport: String = "udp"
    ) -> SinchClientConfiguration {
        var configuration = SinchClientConfiguration(
            applicationKey: key, environmentHost: "sinchctl.localhost", userId: user)
        configuration.outboundProxy = "\(address);transport=\(transport)"
        configuration.capture = .tone(440)
        configuration.playback = .null
        return configuration
    }

    func user(
        _ name: String, policy: TestUser.Policy = .hold, transport: String = "udp",
        incomingMedia: SinchCallMedia = SinchCallMedia(), _ change: (inout SinchClientConfiguration) -> Void = { _ in }
    ) throws -> TestUser {
        var configuration = Self.configuration(name, at: address, transport: transport)
        change(&configuration)
        return try TestUser(configuration, secret: secret, policy: policy, incomingMedia: incomingMedia)
    }
}

/// Runs a test with an environment of its own, which is stopped afterwards.
func withEnvironment(
    announcement: String? = nil, _ body: (TestEnvironment) async throws -> Void
) async throws {
    let environment = try await TestEnvironment.start(announcement: announcement)
    do {
        try await body(environment)
    } catch {
        await environment.server.stop()
        throw error
    }
    await environment.server.stop()
}

/// Two started users, terminated afterwards.
func withUsers(
    policy: TestUser.Policy = .answer, transport: String = "udp",
    _ body: (TestUser, TestUser, TestEnvironment) async throws -> Void
) async throws {
    try await withEnvironment { environment in
        let alice = try environment.user("alice", transport: transport)
        let bob = try environment.user("bob", policy: policy, transport: transport)
        try await alice.start()
        try await bob.start()
        do {
            try await body(alice, bob, environment)
        } catch {
            await alice.client.terminate()
            await bob.client.terminate()
            throw error
        }
        await alice.client.terminate()
        await bob.client.terminate()
    }
}
