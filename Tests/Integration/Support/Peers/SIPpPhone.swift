import Glibc
import Synchronization
import Testing

/// sipp as the other side: a scenario of `Tests/Integration/Scenarios` says what it does in its calls, right or wrong.
/// What it hears it sends back.
final class SIPpPhone: Peer {
    /// Where it waits, at 127.0.0.1 by UDP.
    let port: UInt16
    private let scenario: String
    private let command: RunningCommand
    private let errorFile: String
    private let hasEnded = Atomic(false)

    /// Registers a phone's user from a port of its own, and then makes calls from there, or waits for them.
    static func start(
        _ scenario: String, user: String, calls: Int = 1, at server: PeerServer, in world: Scratch
    ) async throws -> SIPpPhone {
        let port = try freePort()
        let credentials = ["-au", user, "-ap", server.password(of: user)]
        let proxy = "\(server.host):\(server.port("udp"))"
        func phone(_ scenario: String, _ calls: Int, _ more: [String]) throws -> SIPpPhone {
            try SIPpPhone(
                scenario, user: user, domain: server.domain, port: port, calls: calls, in: world, more + [proxy])
        }
        try await phone("register", 1, credentials).expectSuccess()
        return try phone(scenario, calls, [])
    }

    /// Waits for clients with no server in between: each Call-ID is a call of the scenario, and so many are expected.
    static func serve(_ scenario: String, calls: Int, domain: String, in world: Scratch) throws -> SIPpPhone {
        try SIPpPhone(
            scenario, user: "carol", domain: domain, port: try freePort(), calls: calls, in: world,
            ["-deadcall_wait", "0"])
    }

    private init(
        _ scenario: String, user: String, domain: String, port: UInt16, calls: Int = 1, in world: Scratch,
        _ more: [String]
    ) throws {
        guard let path = PeerProcess.find("sipp") else {
            throw TestFailure("sipp is not installed; run: scripts/setup test")
        }
        self.scenario = scenario
        self.port = port
        errorFile = world.root + "/sipp-\(scenario).log"
        var arguments = ["-sf", Self.directory + scenario + ".xml", "-s", user, "-key", "domain", domain]
        arguments += ["-i", "127.0.0.1", "-p", String(port), "-rtp_echo", "-m", String(calls)]
        arguments += ["-nostdin", "-timeout", "25", "-timeout_error", "-trace_err", "-error_file", errorFile]
        command = try RunningCommand(
            path, arguments + more, environment: world.environment, directory: world.root,
            workingDirectory: world.root)
    }

    private static let directory: String = {
        let parts = #filePath.split(separator: "/").dropLast(3)
        return "/" + parts.joined(separator: "/") + "/Scenarios/"
    }()

    /// Waits for the scenario's end, which must be the one that it describes.
    func expectSuccess(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let run = await command.end(within: .seconds(28))
        hasEnded.store(true, ordering: .relaxed)
        #expect(
            run.exit == 0, "sipp, \(scenario): \(readFile(errorFile).suffix(3_000)) \(run.errors.suffix(500))",
            sourceLocation: sourceLocation)
        guard run.exit == 0 else { throw TestFailure("sipp did not see what \(scenario).xml describes") }
    }

    /// Ends it, whatever it waits for.
    func stop() async {
        guard !hasEnded.load(ordering: .relaxed) else { return }
        command.signal(SIGKILL)
        _ = await command.end(within: .seconds(5))
    }
}
