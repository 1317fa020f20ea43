import Configuration
import Network
import Primitives
import SinchEnvironment
import SinchRTC
import Testing
import Token

/// The example program, as a user would run it.
@Suite struct ExampleTests {
    private func run(_ arguments: [String]) async throws -> ProcessOutput {
        let loop = try EventLoop(name: "example-test")
        defer { loop.stop() }
        return try await ChildProcess.run(
            [productsDirectory() + "/first-call-example"] + arguments, environment: ["HOME": "/nonexistent"],
            timeout: .seconds(30), on: loop)
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    /// The discovery file of an environment in this process; removed with `removeFile`.
    private func describe(_ environment: TestEnvironment, secret: ApplicationSecret? = nil) throws -> String {
        var random = RandomSource.system
        let path = "/tmp/sinchrtc-test-" + random.hexadecimal(bits: 64) + ".json"
        try EnvironmentFile(
            host: environment.address.host, port: environment.address.port, transports: [.udp, .tcp],
            realm: "sinchctl.localhost", applicationKey: TestEnvironment.key,
            applicationSecret: secret ?? environment.secret, startedAt: 0, version: version()
        ).write(to: path)
        return path
    }

    @Test func aFirstCall() async throws {
        try await withEnvironment { environment in
            let path = try describe(environment)
            defer { removeFile(path) }
            let result = try await run([path, "alice", "echo", "1"])
            #expect(result.status == .exited(0), "\(text(result.errorOutput))")
            let lines = text(result.output).split(separator: "\n").map(String.init)
            #expect(lines.first == "registered as alice")
            #expect(lines.contains("echo rings"))
            #expect(lines.contains("talking to echo for 1 s"))
            #expect(lines.last?.hasPrefix("ended: hungUp, ") == true)
            #expect(lines.last?.hasSuffix(" 0 packets received") == false)
            #expect(result.errorOutput.isEmpty)
            // It has left: only echo is registered.
            #expect(await environment.server.registrations == 1)
        }
    }

    @Test func aCallToNobody() async throws {
        try await withEnvironment { environment in
            let path = try describe(environment)
            defer { removeFile(path) }
            let result = try await run([path, "alice", "nobody", "1"])
            #expect(result.status == .exited(1))
            #expect(text(result.errorOutput).contains("check the name"))
        }
    }

    @Test func aWrongSecret() async throws {
        try await withEnvironment { environment in
            var random = RandomSource.system
            let path = try describe(environment, secret: ApplicationSecret.generate(random: &random))
            defer { removeFile(path) }
            let result = try await run([path, "alice", "echo", "1"])
            #expect(result.status == .exited(1))
            #expect(text(result.errorOutput).contains("check that the token"))
        }
    }

    @Test func badArguments() async throws {
        #expect(try await run([]).status == .exited(64))
        #expect(try await run(["/nonexistent.json", "alice", "echo", "soon"]).status == .exited(64))
        #expect(try await run(["/nonexistent.json", "alice", "echo", "1"]).status == .exited(78))
    }
}
