import Agent
import Audio
import Configuration
import Glibc
import Testing

/// Calls with phones of other makers through a real server, each way: what is heard, and how it ends.
struct PeerCallTests {
    static let transports = ["udp", "tcp", "tls"]

    /// A client of ours and a phone at one Kamailio.
    private func withServer(
        _ transport: String,
        _ body: (Scratch, PeerServer, _ melody: [Int16], _ speech: [Int16]) async throws -> Void
    ) async throws {
        try await Scratch.with { world in
            try await PeerServer.with(world) { server in
                try world.configure(server.configuration(transport: transport))
                let melody = Sound.melody(seconds: 6)
                let speech = Sound.melody(seconds: 6, seed: 99)
                try writeFile(world.root + "/ours.wav", Sound.wav(melody))
                try writeFile(world.root + "/theirs.wav", Sound.wav(speech))
                try await body(world, server, melody, speech)
            }
        }
    }

    private func expectHeard(
        _ sound: [Int16], in recording: [Int16], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let match = SignalMatch.compare(reference: sound, heard: recording)
        #expect(match.score > 0.7 && match.comparedSeconds > 0.9, "\(match)", sourceLocation: sourceLocation)
    }

    /// A baresip as `bob`, who plays `theirs.wav`.
    private func baresip(_ transport: String, at server: PeerServer, in world: Scratch) async throws -> Baresip {
        var options = Baresip.Options()
        options.transport = transport
        options.caFile = server.caFile
        return try await Baresip.start(
            user: "bob", at: server, playing: world.root + "/theirs.wav", in: world, options: options)
    }

    /// A linphonec as `bob`, who plays `theirs.wav`.
    private func linphone(_ transport: String, at server: PeerServer, in world: Scratch) async throws -> Linphone {
        try await Linphone.start(
            user: "bob", at: server, playing: world.root + "/theirs.wav", in: world, transport: transport,
            caFile: server.caFile)
    }

    /// Talks for two and a half seconds of recorded sound.
    private func talk(_ world: Scratch) async { await world.pass(2.5, of: "alice.wav") }

    @Test("baresip is called by us and hangs up", arguments: transports)
    func baresipIsCalled(_ transport: String) async throws {
        try await withServer(transport) { world, server, melody, speech in
            try await with(try await baresip(transport, at: server, in: world)) { phone in
                try await world.start("alice")
                let call = try world.begin([
                    "call", "bob", "--as", "alice", "--play", "ours.wav", "--record", "alice.wav", "--json",
                ])
                let incoming = try await phone.event("CALL_INCOMING")
                #expect(incoming.parameter.contains("alice@"), "\(incoming)")
                phone.command("accept")
                try await phone.event("CALL_ESTABLISHED")
                await talk(world)
                phone.command("hangup")
                let end = await call.end()
                #expect(end.exit == 0, "\(end.errors)")
                let report = try end.document()
                #expect(report["end"]?["isLocal"]?.bool == false && report["end"]?["cause"]?.string == "hungUp")
                expectHeard(speech, in: try Sound.read(world.root + "/alice.wav")[1])
                await phone.stop()
                expectHeard(melody, in: try phone.heard())
            }
        }
    }

    @Test("baresip calls us and we hang up", arguments: transports)
    func baresipCalls(_ transport: String) async throws {
        try await withServer(transport) { world, server, melody, speech in
            try await with(try await baresip(transport, at: server, in: world)) { phone in
                try await world.start("alice")
                phone.command("dial", "sip:alice@\(server.domain)")
                let incoming = try await world.must(
                    "wait", "--as", "alice", "--for", "incoming", "--timeout", "10", "--json")
                #expect(try incoming.document()["remote"]?.string == "bob")
                try await phone.event("CALL_RINGING")
                try await world.must("answer", "--as", "alice", "--play", "ours.wav", "--record", "alice.wav")
                try await phone.event("CALL_ESTABLISHED")
                await talk(world)
                try await world.must("hangup", "--as", "alice")
                try await phone.event("CALL_CLOSED")
                try await world.must("wait", "--as", "alice", "--for", "ended", "--timeout", "5")
                expectHeard(speech, in: try Sound.read(world.root + "/alice.wav")[1])
                await phone.stop()
                expectHeard(melody, in: try phone.heard())
            }
        }
    }

    @Test("linphonec is called by us and hangs up", arguments: transports)
    func linphoneIsCalled(_ transport: String) async throws {
        try await withServer(transport) { world, server, melody, speech in
            try await with(try await linphone(transport, at: server, in: world)) { phone in
                try await world.start("alice")
                let call = try world.begin([
                    "call", "bob", "--as", "alice", "--play", "ours.wav", "--record", "alice.wav", "--json",
                ])
                try await phone.line(containing: "incoming call from")
                phone.command("answer")
                try await phone.line(containing: "Media streams established")
                await talk(world)
                phone.command("terminate")
                let end = await call.end()
                #expect(end.exit == 0, "\(end.errors)")
                expectHeard(speech, in: try Sound.read(world.root + "/alice.wav")[1])
                await phone.stop()
                expectHeard(melody, in: try Sound.readAny(phone.recording))
            }
        }
    }

    @Test("linphonec calls us and we hang up", arguments: transports)
    func linphoneCalls(_ transport: String) async throws {
        try await withServer(transport) { world, server, melody, speech in
            try await with(try await linphone(transport, at: server, in: world)) { phone in
                try await world.start("alice")
                phone.command("call sip:alice@\(server.domain)")
                try await world.must("wait", "--as", "alice", "--for", "incoming", "--timeout", "10")
                try await world.must("answer", "--as", "alice", "--play", "ours.wav", "--record", "alice.wav")
                try await phone.line(containing: "Media streams established")
                await talk(world)
                try await world.must("hangup", "--as", "alice")
                try await phone.line(containing: "ended")
                expectHeard(speech, in: try Sound.read(world.root + "/alice.wav")[1])
                await phone.stop()
                expectHeard(melody, in: try Sound.readAny(phone.recording))
            }
        }
    }

    @Test("busy, declined and cancelled", arguments: transports)
    func outcomes(_ transport: String) async throws {
        try await withServer(transport) { world, server, _, _ in
            try await with(try await baresip(transport, at: server, in: world)) { phone in
                try await world.start("alice")
                // The phone refuses with 486 what it is told to hang up while it rings.
                let refused = try world.begin(["call", "bob", "--as", "alice", "--json"])
                try await phone.event("CALL_INCOMING")
                phone.command("hangup")
                try await refused.end().expectFailure(.busy, "bob")
                try await phone.event("CALL_CLOSED")

                let unanswered = try world.begin(["call", "bob", "--as", "alice", "--ring-timeout", "1", "--json"])
                try await phone.event("CALL_INCOMING")
                try await unanswered.end().expectFailure(.noAnswer, "did not answer")
                try await phone.event("CALL_CLOSED")

                phone.command("dial", "sip:alice@\(server.domain)")
                try await world.must("wait", "--as", "alice", "--for", "incoming", "--timeout", "10")
                try await world.must("hangup", "--as", "alice")
                let closed = try await phone.event("CALL_CLOSED")
                #expect(closed.parameter.contains("603") || closed.parameter.contains("Decline"), "\(closed)")

                phone.command("dial", "sip:alice@\(server.domain)")
                try await world.must("wait", "--as", "alice", "--for", "incoming", "--timeout", "10")
                phone.command("hangup")
                try await world.must("wait", "--as", "alice", "--for", "ended", "--timeout", "10")
                let missed = try #require(try await world.calls("alice").first)
                #expect(missed["end"]?["cause"]?.string == "canceled", "\(missed)")
            }
        }
    }
}
