import Crypto
import Testing

/// A node of `deploy/kamailio` as phones and our clients need to know it: `bob`, `carol` and `dave` may register phones,
/// each with a password.
struct PeerServer: Sendable {
    private let node: KamailioNode

    /// Runs a test with a server of its own.
    static func with(_ world: Scratch, _ body: (PeerServer) async throws -> Void) async throws {
        var settings = KamailioNode.Settings()
        settings.phones = ["bob", "carol", "dave"].map { user in
            let hash = hexadecimal(md5(Array("\(user):\(KamailioNode.domain):\(password(of: user))".utf8)))
            return "\(user) \(KamailioNode.applicationKey) \(user) \(hash)"
        }
        try await world.withKamailio(settings) { try await body(PeerServer(node: $0)) }
    }

    /// Where it listens.
    var host: String { node.address }
    /// The domain of its users.
    var domain: String { KamailioNode.domain }
    /// What to trust.
    var caFile: String { node.state + "/tls/ca.pem" }

    /// The port of `udp`, `tcp`, `tls`, `ws` or `wss`.
    func port(_ transport: String) -> UInt16 { KamailioNode.ports[transport] ?? 0 }

    /// The digest password of a phone's user.
    func password(of user: String) -> String { Self.password(of: user) }

    private static func password(of user: String) -> String { "password-of-" + user }

    /// The configuration file of a client of ours that reaches it over this transport.
    func configuration(transport: String) -> String {
        "{ profiles: { default: \(node.profile(transport)) } }"
    }
}

/// A program of somebody else that plays a part in a test.
protocol Peer: Sendable {
    /// Ends it; once more does nothing.
    func stop() async
}

/// Runs a part of a test with a peer, and ends the peer whatever happens.
func with<Program: Peer>(_ peer: Program, _ body: (Program) async throws -> Void) async throws {
    do {
        try await body(peer)
    } catch {
        await peer.stop()
        throw error
    }
    await peer.stop()
}

extension Scratch {
    /// Waits until a recording of two channels is so many seconds longer than now: time as the sound has it.
    func pass(_ seconds: Double, of recording: String, sourceLocation: SourceLocation = #_sourceLocation) async {
        let path = recording.hasPrefix("/") ? recording : root + "/" + recording
        // 48 kHz, 16 bits, two channels.
        let goal = readBytes(path).count + Int(seconds * 48_000 * 4)
        let hasGrown = await eventually(within: .seconds(20)) { readBytes(path).count >= goal }
        #expect(hasGrown, "\(recording) does not grow", sourceLocation: sourceLocation)
    }
}
