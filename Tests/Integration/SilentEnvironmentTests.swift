import Agent
import Configuration
import Glibc
import Testing

/// An environment that takes everything and says nothing: commands keep to their time and can be interrupted.
struct SilentEnvironmentTests {
    /// A UDP port that is open and silent.
    private final class Silence {
        let descriptor: Int32
        let port: UInt16

        init() {
            let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    _ = bind(descriptor, address, length)
                    _ = getsockname(descriptor, address, &length)
                }
            }
            self.descriptor = descriptor
            port = UInt16(bigEndian: address.sin_port)
        }

        deinit { close(descriptor) }
    }

    private func with(_ body: (Scratch, [String]) async throws -> Void) async throws {
        let silence = Silence()
        try await Scratch.with { world in
            try world.configure(
                """
                { profiles: { default: { applicationKey: "\(SettingsTests.key)",
                  applicationSecret: "\(SettingsTests.secret)", environmentHost: "127.0.0.1:\(silence.port)" } } }
                """)
            try await body(world, ["--user", "alice", "--json"])
        }
        _ = silence.port
    }

    @Test(arguments: ["start", "register", "call bob"])
    func timeIsKept(command: String) async throws {
        try await with { world, options in
            let run = try await world.begin(
                command.split(separator: " ").map(String.init) + options + ["--timeout", "1"]
            ).end(within: .seconds(10))
            try run.expectFailure(.timeout)
            #expect(run.duration < .seconds(4), "\(run.duration)")
            #expect(await world.eventually { world.processes.isEmpty }, "nothing goes on trying")
        }
    }

    @Test(arguments: ["register", "call bob"])
    func interruptEndsIt(command: String) async throws {
        try await with { world, options in
            let running = try world.begin(command.split(separator: " ").map(String.init) + options)
            #expect(await world.eventually { world.processes.count == 2 }, "the command and its client")
            running.signal(SIGINT)
            let run = await running.end(within: .seconds(3))
            #expect(run.exit == 130 && !run.wasKilled, "\(run.exit) \(run.errors)")
            #expect(await world.eventually { world.processes.isEmpty }, "the client ends with its command")
        }
    }

    @Test func foregroundClientCanBeEndedWhileItRegisters() async throws {
        try await with { world, options in
            let running = try world.begin(["start", "--foreground"] + options)
            #expect(await world.eventually { world.runtimeFiles.contains("client-alice.lock") })
            try await Task.sleep(for: .milliseconds(500))
            running.signal(SIGTERM)
            try await running.end(within: .seconds(8)).expectFailure(.terminated)
        }
    }
}
