import Agent
import Audio
import Configuration
import Testing

/// What happens in a call with phones of other makers behind a real server: hold from each side, and transfers.
struct PeerConversationTests {
    /// baresip as `bob`, who answers and sends a tone, at a Kamailio of its own, and alice's client.
    private func withBob(_ body: (Scratch, PeerServer, Baresip) async throws -> Void) async throws {
        try await Scratch.with { world in
            try await PeerServer.with(world) { server in
                try world.configure(server.configuration(transport: "udp"))
                try writeFile(world.root + "/tone.wav", Sound.wav(Sound.tone(700, seconds: 40)))
                try await world.start(
                    "alice", "--capture", "tone:440", "--record", "calls.wav", "--accept-transfers")
                var options = Baresip.Options()
                options.answersItself = true
                let bob = try await Baresip.start(
                    user: "bob", at: server, playing: world.root + "/tone.wav", in: world, options: options)
                try await with(bob) { try await body(world, server, $0) }
            }
        }
    }

    /// A second baresip as `carol`, who answers and plays a melody.
    private func carol(_ melody: [Int16], at server: PeerServer, in world: Scratch) async throws -> Baresip {
        try writeFile(world.root + "/carol.wav", Sound.wav(melody))
        var options = Baresip.Options()
        options.answersItself = true
        return try await Baresip.start(
            user: "carol", at: server, playing: world.root + "/carol.wav", in: world, options: options)
    }

    /// Loud, silent, loud: what a recording of a call that was held once must be.
    private func expectOneHold(
        _ samples: [Int16], _ name: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let (levels, changes) = Sound.loudness(samples)
        #expect(changes == 2, "\(name): \(levels)", sourceLocation: sourceLocation)
        #expect(
            levels.first ?? 0 > 1_000 && levels.last ?? 0 > 1_000, "\(name): \(levels)",
            sourceLocation: sourceLocation)
        #expect(levels.count { $0 < 20 } >= 4, "\(name): \(levels)", sourceLocation: sourceLocation)
    }

    private func isHeld(_ world: Scratch) async throws -> Bool {
        try await world.calls("alice").first?["heldByRemote"]?.bool == true
    }

    @Test func baresipHoldsAndResumes() async throws {
        try await withBob { world, _, bob in
            let call = try world.begin(["call", "bob", "--as", "alice", "--record", "alice.wav", "--json"])
            try await world.must("wait", "--as", "alice", "--for", "established", "--timeout", "10")
            try await bob.event("CALL_ESTABLISHED")
            await world.pass(1.2, of: "alice.wav")
            bob.command("hold")
            #expect(try await world.eventually { try await isHeld(world) })
            #expect(try await world.must("calls", "--as", "alice").output.contains("held by the other side"))
            await world.pass(1.6, of: "alice.wav")
            bob.command("resume")
            #expect(try await world.eventually { try await !isHeld(world) })
            await world.pass(1.6, of: "alice.wav")
            bob.command("hangup")
            let end = await call.end()
            #expect(end.exit == 0, "\(end.errors)")
            expectOneHold(try Sound.read(world.root + "/alice.wav")[1], "heard by alice")
        }
    }

    @Test func weHoldAndResume() async throws {
        try await withBob { world, _, bob in
            let call = try world.begin(["call", "bob", "--as", "alice", "--record", "alice.wav", "--json"])
            try await world.must("wait", "--as", "alice", "--for", "established", "--timeout", "10")
            try await bob.event("CALL_ESTABLISHED")
            await world.pass(1.2, of: "alice.wav")
            let held = try await world.must("hold", "--as", "alice", "--json").document()
            #expect(held["onHold"]?.bool == true)
            await world.pass(1.6, of: "alice.wav")
            let resumed = try await world.must("resume", "--as", "alice", "--json").document()
            #expect(resumed["onHold"] == nil)
            await world.pass(1.6, of: "alice.wav")
            try await world.must("hangup", "--as", "alice")
            #expect(await call.end().exit == 0)
            try await bob.event("CALL_CLOSED")
            expectOneHold(try Sound.read(world.root + "/alice.wav")[1], "heard by alice")
            await bob.stop()
            // baresip begins a new recording when the call goes on.
            let (levels, _) = Sound.loudness(try bob.heard())
            #expect(!levels.isEmpty && levels.allSatisfy { $0 > 1_000 }, "heard by bob after the hold: \(levels)")
        }
    }

    @Test func baresipIsTransferredToAnother() async throws {
        try await withBob { world, server, bob in
            let melody = Sound.melody(seconds: 20)
            try await with(try await carol(melody, at: server, in: world)) { carol in
                let call = try world.begin(["call", "bob", "--as", "alice", "--json"])
                try await world.must("wait", "--as", "alice", "--for", "established", "--timeout", "10")
                try await bob.event("CALL_ESTABLISHED")
                let transfer = try await world.must("transfer", "--to", "carol", "--as", "alice", "--json").document()
                #expect(transfer["remote"]?.string == "bob")
                try await carol.line(containing: "Call established: sip:bob@")
                let end = await call.end()
                #expect(end.exit == 0, "\(end.errors)")
            }
        }
    }

    @Test func baresipTransfersUsToAnother() async throws {
        try await withBob { world, server, bob in
            let melody = Sound.melody(seconds: 20)
            try await with(try await carol(melody, at: server, in: world)) { carol in
                let call = try world.begin(["call", "bob", "--as", "alice", "--json"])
                try await world.must("wait", "--as", "alice", "--for", "established", "--timeout", "10")
                try await bob.event("CALL_ESTABLISHED")
                bob.command("transfer", "sip:carol@\(server.domain)")
                try await carol.line(containing: "Call established: sip:alice@")
                #expect(await call.end().exit == 0)
                #expect(
                    try await world.eventually {
                        try await world.calls("alice").first { $0["state"]?.string == "established" }?["remote"]?.string
                            == "carol"
                    })
                let calls = try await world.calls("alice")
                let new = try #require(calls.first { $0["remote"]?.string == "carol" })
                let old = try #require(calls.first { $0["remote"]?.string == "bob" })
                #expect(new["previous"]?.string == old["id"]?.string, "\(new)")
                let path = try #require(new["recording"]?.string)
                await world.pass(2, of: path)
                try await world.must("hangup", "--as", "alice")
                try await carol.event("CALL_CLOSED")
                let match = SignalMatch.compare(reference: melody, heard: try Sound.read(path)[1])
                #expect(match.score > 0.7 && match.comparedSeconds > 0.9, "\(match)")
            }
        }
    }

    /// While linphonec holds a call it may play music, so that there is no silence to listen for; its sound returns.
    @Test(arguments: ["tcp", "tls"])
    func linphoneHoldsAndResumes(_ transport: String) async throws {
        try await Scratch.with { world in
            try await PeerServer.with(world) { server in
                try world.configure(server.configuration(transport: transport))
                try writeFile(world.root + "/tone.wav", Sound.wav(Sound.tone(700, seconds: 40)))
                let bob = try await Linphone.start(
                    user: "bob", at: server, playing: world.root + "/tone.wav", in: world, transport: transport,
                    caFile: server.caFile)
                try await with(bob) { bob in
                    try await world.start("alice", "--capture", "tone:440")
                    let call = try world.begin(["call", "bob", "--as", "alice", "--record", "alice.wav", "--json"])
                    try await bob.line(containing: "incoming call from")
                    bob.command("answer")
                    try await world.must("wait", "--as", "alice", "--for", "established", "--timeout", "10")
                    await world.pass(1, of: "alice.wav")
                    bob.command("pause")
                    #expect(try await world.eventually { try await isHeld(world) })
                    await world.pass(1, of: "alice.wav")
                    bob.command("resume")
                    #expect(try await world.eventually { try await !isHeld(world) })
                    await world.pass(1.5, of: "alice.wav")
                    bob.command("terminate")
                    let end = await call.end()
                    #expect(end.exit == 0, "\(end.errors)")
                    let (levels, _) = Sound.loudness(try Sound.read(world.root + "/alice.wav")[1])
                    #expect(levels.last ?? 0 > 1_000, "\(levels)")
                }
            }
        }
    }
}
