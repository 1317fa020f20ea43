import Agent
import Audio
import Configuration
import Testing

/// What happens in a call with phones of other makers behind a real server: hold from each side, and transfers.
struct PeerConversationTests {
    /// baresip as `bob`, who answers and sends a tone, at a Kamailio of its own, and alice's client.
    private func with(_ body: (Scratch, PeerServer, Baresip) async throws -> Void) async throws {
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
                do {
                    try await body(world, server, bob)
                } catch {
                    await bob.stop()
                    throw error
                }
                await bob.stop()
            }
        }
    }

    /// Waits until a recording is so much longer.
    private func pass(_ seconds: Double, of recording: String, in world: Scratch) async throws {
        let path = world.root + "/" + recording
        // 48 kHz, 16 bits, two channels.
        let goal = readBytes(path).count + Int(seconds * 48_000 * 4)
        let hasGrown = await world.eventually(within: .seconds(20)) { readBytes(path).count >= goal }
        #expect(hasGrown, "\(recording) does not grow")
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
        try await with { world, _, bob in
            let call = try world.begin(["call", "bob", "--as", "alice", "--record", "alice.wav", "--json"])
            try await world.must("wait", "--as", "alice", "--for", "established", "--timeout", "10")
            try await bob.event("CALL_ESTABLISHED")
            try await pass(1.2, of: "alice.wav", in: world)
            bob.command("hold")
            #expect(try await world.eventually { try await isHeld(world) })
            #expect(try await world.must("calls", "--as", "alice").output.contains("held by the other side"))
            try await pass(1.6, of: "alice.wav", in: world)
            bob.command("resume")
            #expect(try await world.eventually { try await !isHeld(world) })
            try await pass(1.6, of: "alice.wav", in: world)
            bob.command("hangup")
            let end = await call.end()
            #expect(end.exit == 0, "\(end.errors)")
            expectOneHold(try Sound.read(world.root + "/alice.wav")[1], "heard by alice")
        }
    }

    @Test func weHoldAndResume() async throws {
        try await with { world, _, bob in
            let call = try world.begin(["call", "bob", "--as", "alice", "--record", "alice.wav", "--json"])
            try await world.must("wait", "--as", "alice", "--for", "established", "--timeout", "10")
            try await bob.event("CALL_ESTABLISHED")
            try await pass(1.2, of: "alice.wav", in: world)
            let held = try await world.must("hold", "--as", "alice", "--json").document()
            #expect(held["onHold"]?.bool == true)
            try await pass(1.6, of: "alice.wav", in: world)
            let resumed = try await world.must("resume", "--as", "alice", "--json").document()
            #expect(resumed["onHold"] == nil)
            try await pass(1.6, of: "alice.wav", in: world)
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
        try await with { world, server, bob in
            let melody = Sound.melody(seconds: 20)
            try writeFile(world.root + "/carol.wav", Sound.wav(melody))
            var options = Baresip.Options()
            options.answersItself = true
            let carol = try await Baresip.start(
                user: "carol", at: server, playing: world.root + "/carol.wav", in: world, options: options)
            do {
                let call = try world.begin(["call", "bob", "--as", "alice", "--json"])
                try await world.must("wait", "--as", "alice", "--for", "established", "--timeout", "10")
                try await bob.event("CALL_ESTABLISHED")
                let transfer = try await world.must("transfer", "--to", "carol", "--as", "alice", "--json").document()
                #expect(transfer["remote"]?.string == "bob")
                try await carol.line(containing: "Call established: sip:bob@")
                let end = await call.end()
                #expect(end.exit == 0, "\(end.errors)")
                await carol.stop()
            } catch {
                await carol.stop()
                throw error
            }
        }
    }

    @Test func baresipTransfersUsToAnother() async throws {
        try await with { world, server, bob in
            let melody = Sound.melody(seconds: 20)
            try writeFile(world.root + "/carol.wav", Sound.wav(melody))
            var options = Baresip.Options()
            options.answersItself = true
            let carol = try await Baresip.start(
                user: "carol", at: server, playing: world.root + "/carol.wav", in: world, options: options)
            do {
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
                // Two seconds of carol: 48 kHz, 16 bits, two channels.
                #expect(await world.eventually(within: .seconds(20)) { readBytes(path).count > 48_000 * 4 * 2 })
                try await world.must("hangup", "--as", "alice")
                try await carol.event("CALL_CLOSED")
                let match = SignalMatch.compare(reference: melody, heard: try Sound.read(path)[1])
                #expect(match.score > 0.7 && match.comparedSeconds > 0.9, "\(match)")
                await carol.stop()
            } catch {
                await carol.stop()
                throw error
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
                do {
                    try await world.start("alice", "--capture", "tone:440")
                    let call = try world.begin(["call", "bob", "--as", "alice", "--record", "alice.wav", "--json"])
                    try await bob.line(containing: "incoming call from")
                    bob.command("answer")
                    try await world.must("wait", "--as", "alice", "--for", "established", "--timeout", "10")
                    try await pass(1, of: "alice.wav", in: world)
                    bob.command("pause")
                    #expect(try await world.eventually { try await isHeld(world) })
                    try await pass(1, of: "alice.wav", in: world)
                    bob.command("resume")
                    #expect(try await world.eventually { try await !isHeld(world) })
                    try await pass(1.5, of: "alice.wav", in: world)
                    bob.command("terminate")
                    let end = await call.end()
                    #expect(end.exit == 0, "\(end.errors)")
                    let (levels, _) = Sound.loudness(try Sound.read(world.root + "/alice.wav")[1])
                    #expect(levels.last ?? 0 > 1_000, "\(levels)")
                    await bob.stop()
                } catch {
                    await bob.stop()
                    throw error
                }
            }
        }
    }
}
