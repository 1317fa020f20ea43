import Crypto
import Glibc

/// One node of `deploy/kamailio` for a test: an application of ours, and a phone with a password for `bob`, `carol`
/// and `dave`.
final class PeerServer: SIPServer {
    let host = "127.0.0.1"
    let domain = "sip.test"
    let caFile: String
    private let ports: [String: UInt16]
    private let process: PeerProcess
    private static let application = "5d1c7a0e-9d43-4c02-8f26-3a4f1b8f6e11"
    private static let secret = "c2luY2hjdGwtdGVzdC1hcHBsaWNhdGlvbg=="

    /// Runs a test with a node of its own.
    static func with(_ world: Scratch, _ body: (PeerServer) async throws -> Void) async throws {
        let server = try await PeerServer(world)
        do {
            try await body(server)
        } catch {
            await server.process.stop()
            throw error
        }
        await server.process.stop()
    }

    private init(_ world: Scratch) async throws {
        let state = world.root + "/kamailio"
        guard mkdir(state, 0o700) == 0 else { throw TestFailure("cannot make \(state)") }
        caFile = state + "/tls/ca.pem"
        try writeFile(state + "/applications", Array("\(Self.application) \(Self.secret)\n".utf8))
        var phones = ""
        for user in ["bob", "carol", "dave"] {
            let hash = hexadecimal(md5(Array("\(user):\(domain):\(Self.password(user))".utf8)))
            phones += "\(user) \(Self.application) \(user) \(hash)\n"
        }
        try writeFile(state + "/phones", Array(phones.utf8))
        var ports: [String: UInt16] = [:]
        for transport in ["udp", "tcp", "tls", "ws", "wss"] { ports[transport] = try freePort() }
        self.ports = ports
        var arguments = ["--state", state, "--domain", domain, "--memory", "64", "--show-profile"]
        for (transport, port) in ports { arguments += ["--" + transport, String(port)] }
        process = try PeerProcess(
            "bash", [Self.repository + "/deploy/kamailio/run"] + arguments, directory: world.root)
        do {
            try await process.line(containing: "The node is up", within: .seconds(20))
        } catch {
            await process.stop()
            throw error
        }
    }

    private static let repository: String = {
        let parts = #filePath.split(separator: "/", omittingEmptySubsequences: true)
        return "/" + parts.dropLast(5).joined(separator: "/")
    }()

    private static func password(_ user: String) -> String { "password-of-" + user }

    func port(_ transport: String) -> UInt16 { ports[transport] ?? 0 }

    func password(of user: String) -> String { Self.password(user) }

    func configuration(transport: String) -> String {
        """
        {"profiles": {"default": {
          "environmentHost": "\(domain)", "outboundProxy": "\(host):\(port(transport));transport=\(transport)",
          "applicationKey": "\(Self.application)", "applicationSecret": "\(Self.secret)", "caFile": "\(caFile)"
        }}}
        """
    }
}
