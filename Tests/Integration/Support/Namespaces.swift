import Glibc
import Testing

/// Network namespaces of a test's own: machines on one wire, which a program joins by `ip netns exec`.
final class Namespaces: Sendable {
    /// Whether this process may make them.
    static var areAllowed: Bool { geteuid() == 0 }

    private let world: Scratch
    private let mark: String
    private let names: [String]

    /// Makes a machine for each name and address, all in 10.77.0.0/24.
    init(in world: Scratch, _ machines: [(name: String, address: String)]) async throws {
        self.world = world
        mark = "s" + String(UInt32.random(in: 0 ... .max), radix: 36)
        names = machines.map(\.name)
        do {
            try await ip("netns", "add", id("hub"))
            try await ip("-n", id("hub"), "link", "add", "wire", "type", "bridge")
            try await ip("-n", id("hub"), "link", "set", "wire", "up")
            for (name, address) in machines {
                try await ip("netns", "add", id(name))
                try await ip(
                    "link", "add", "eth", "netns", id(name), "type", "veth", "peer", "name", name, "netns", id("hub"))
                try await ip("-n", id("hub"), "link", "set", name, "master", "wire", "up")
                try await ip("-n", id(name), "address", "add", address + "/24", "dev", "eth")
                try await ip("-n", id(name), "link", "set", "eth", "up")
                try await ip("-n", id(name), "link", "set", "lo", "up")
            }
        } catch {
            await remove()
            throw error
        }
    }

    private func id(_ name: String) -> String { mark + name }

    private func ip(_ arguments: String...) async throws {
        let run = try await RunningCommand(
            "/usr/sbin/ip", arguments, environment: world.environment, directory: world.root
        ).end(within: .seconds(10))
        guard run.exit == 0 else { throw TestFailure("ip \(arguments.joined(separator: " ")): \(run.errors)") }
    }

    /// The words before a command that runs it on a machine.
    func prefix(_ name: String) -> [String] { ["/usr/sbin/ip", "netns", "exec", id(name)] }

    /// Gives a host name addresses on one machine, in this order; `ip netns exec` shows that file as /etc/hosts.
    func resolve(_ host: String, to addresses: [String], on name: String) throws {
        mkdir("/etc/netns", 0o755)
        mkdir("/etc/netns/" + id(name), 0o755)
        let lines = addresses.map { "\($0) \(host)\n" }.joined()
        try writeFile("/etc/netns/\(id(name))/hosts", Array(("127.0.0.1 localhost\n" + lines).utf8), mode: 0o644)
    }

    /// Ends every process on a machine at once, as a power cut would.
    func kill(_ name: String) async throws {
        let pids = try await RunningCommand(
            "/usr/sbin/ip", ["netns", "pids", id(name)], environment: world.environment, directory: world.root
        ).end(within: .seconds(5)).output
        for pid in pids.split(separator: "\n").compactMap({ pid_t($0) }) { Glibc.kill(pid, SIGKILL) }
    }

    /// Removes all of it.
    func remove() async {
        for name in names + ["hub"] {
            try? await ip("netns", "delete", id(name))
            unlink("/etc/netns/\(id(name))/hosts")
            rmdir("/etc/netns/\(id(name))")
        }
        rmdir("/etc/netns")
    }
}
