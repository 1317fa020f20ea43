import Glibc
import Network
import Primitives
import Testing

/// One node of the engine for many users, started by `deploy/kamailio/run` on a loopback address of its own, so that its
/// ports are free whatever else runs.
final class KamailioNode: Sendable {
    static let domain = "localhost"
    static let ports: [String: UInt16] = ["udp": 5_060, "tcp": 5_060, "tls": 5_061, "ws": 5_080, "wss": 5_443]

    /// What a node is started with.
    struct Settings: Sendable {
        var address = KamailioNode.freeAddress()
        /// Lines of the file of applications; the default application when empty.
        var applications: [String] = []
        /// Lines of the file of phones.
        var phones: [String] = []
        /// More arguments of `deploy/kamailio/run`.
        var options: [String] = []
        /// What the node's command is run by, such as `ip netns exec NAME`.
        var prefix: [String] = []
        /// The directory's name in the test's world.
        var name = "kamailio"
        /// The domain of the users' addresses.
        var domain = KamailioNode.domain
        /// A directory with the files of `deploy/kamailio/certificates`; nil: the node makes its own.
        var certificates: String?
    }

    static let applicationKey = "5d1c7a0e-9d43-4c02-8f26-3a4f1b8f6e11"
    static let applicationSecret = "c2VjcmV0LWNhbmFyeS1rYW1haWxpby10ZXN0LTAx"
    /// A second application, whose users are strangers to those of the first.
    static let otherKey = "0f3c1e55-6a1b-4d53-9d0b-2f0f6f0e1c22"
    static let otherSecret = "b3RoZXItc2VjcmV0LW9mLXRoZS1vdGhlci1hcHA="

    let address: String
    let state: String
    private let command: RunningCommand

    /// Starts a node and waits until it answers.
    init(in world: Scratch, _ settings: Settings) async throws {
        address = settings.address
        state = world.root + "/" + settings.name
        mkdir(state, 0o700)
        let applications =
            settings.applications.isEmpty
            ? ["\(Self.applicationKey) \(Self.applicationSecret)", "\(Self.otherKey) \(Self.otherSecret)"]
            : settings.applications
        try writeFile(state + "/applications", Array((applications.joined(separator: "\n") + "\n").utf8))
        if !settings.phones.isEmpty {
            try writeFile(state + "/phones", Array((settings.phones.joined(separator: "\n") + "\n").utf8))
        }
        if let certificates = settings.certificates { symlink(certificates, state + "/tls") }
        let run =
            [Self.script("run"), "--state", state, "--address", settings.address, "--domain", settings.domain]
            + ["--owner", String(getpid())] + settings.options
        let words = settings.prefix + run
        command = try RunningCommand(
            words[0], Array(words.dropFirst()), environment: world.environment, directory: world.root,
            workingDirectory: world.root)
        let limit = ContinuousClock.now + .seconds(20)
        while !(try await isUp(world)) {
            guard ContinuousClock.now < limit, command.isRunning else {
                await stop()
                throw TestFailure("Kamailio does not start: \(log.suffix(2_000))")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// A script of the deployment.
    static func script(_ name: String) -> String {
        let parts = #filePath.split(separator: "/").dropLast(4)
        return "/" + (parts + ["deploy", "kamailio", name[...]]).joined(separator: "/")
    }

    /// An address of 127.0.0.0/8 that nobody else is likely to use.
    static func freeAddress() -> String {
        "127.\(Int.random(in: 64...250)).\(Int.random(in: 1...250)).\(Int.random(in: 2...250))"
    }

    /// What it wrote.
    var log: String { command.errorsSoFar + command.outputSoFar }

    /// Runs a command of operators, such as `ul.dump`.
    func control(_ words: String..., in world: Scratch) async throws -> String {
        try await RunningCommand(
            "/usr/sbin/kamcmd", ["-s", "unix:\(state)/control"] + words, environment: world.environment,
            directory: world.root
        ).end(within: .seconds(5)).output
    }

    private func isUp(_ world: Scratch) async throws -> Bool {
        guard access(state + "/control", F_OK) == 0 else { return false }
        return try await control("core.uptime", in: world).contains("uptime")
    }

    /// Ends the node in order.
    func stop() async {
        command.signal(SIGTERM)
        _ = await command.end(within: .seconds(15))
    }

    /// The profile that a client needs.
    func profile(_ transport: String, key: String = applicationKey, secret: String = applicationSecret) -> String {
        """
        { applicationKey: "\(key)", applicationSecret: "\(secret)", environmentHost: "\(Self.domain)",
          outboundProxy: "\(address):\(Self.ports[transport] ?? 5_060);transport=\(transport)",
          caFile: "\(state)/tls/ca.pem" }
        """
    }
}

extension Scratch {
    /// Runs a test with a node, and ends the node whatever happens.
    func withKamailio<Result>(
        _ settings: KamailioNode.Settings = KamailioNode.Settings(), _ body: (KamailioNode) async throws -> Result
    ) async throws -> Result {
        let node = try await KamailioNode(in: self, settings)
        do {
            let result = try await body(node)
            await node.stop()
            return result
        } catch {
            await node.stop()
            throw error
        }
    }
}
