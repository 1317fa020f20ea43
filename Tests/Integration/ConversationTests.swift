import Agent
import Audio
import Configuration
import FoundationEssentials
import Testing

/// Hold, keys and transfer through the built program, judged by exit codes, events and recordings.
struct ConversationTests {
    private func events(_ world: Scratch, _ user: String) async throws -> [JSONValue] {
        try await world.must("events", "--as", user, "--jsonl").output.split(separator: "\n").compactMap { line in
            try? JSONDecoder().decode(JSONValue.self, from: Data(line.utf8))
        }
    }

    private func keys(_ world: Scratch, _ user: String) async throws -> String {
        try await events(world, user).filter { $0["event"]?.string == "dtmf" }.compactMap { $0["key"]?.string }.joined()
    }

    @Test func holdSilencesBothSidesAndResumeBringsThemBack() async throws {
        try await Scratch.with { world in
            try await world.start("alice", "--capture", "tone:440")
            try await world.start("bob", "--auto-answer", "--capture", "tone:700", "--record", "bob.wav")
            let call = try world.begin(["call", "bob", "--as", "alice", "--record", "alice.wav", "--json"])
            try await world.must("wait", "--as", "alice", "--for", "established")
            await world.pass(1, of: "alice.wav")
            let held = try await world.must("hold", "--as", "alice", "--json").document()
            #expect(held["onHold"]?.bool == true)
            #expect(try await world.calls("bob").first?["heldByRemote"]?.bool == true)
            #expect(try await world.must("calls", "--as", "alice").output.contains("on hold"))
            try await world.must("hold", "--as", "alice")
            try await world.run("dtmf", "1", "--as", "alice", "--json").expectFailure(.unreachable, "on hold")
            await world.pass(1.5, of: "alice.wav")
            let resumed = try await world.must("resume", "--as", "alice", "--json").document()
            #expect(resumed["onHold"] == nil)
            try await world.must("resume", "--as", "alice")
            await world.pass(1, of: "alice.wav")
            try await world.must("hangup", "--as", "alice")
            #expect(await call.end().exit == 0)
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
            for (name, channel) in [("alice", 0), ("alice", 1), ("bob", 0), ("bob", 1)] {
                let (levels, changes) = Sound.loudness(try Sound.read(world.root + "/\(name).wav")[channel])
                #expect(changes == 2, "\(name) \(channel): \(levels)")
                #expect(levels.first ?? 0 > 1_000 && levels.last ?? 0 > 1_000, "\(name) \(channel): \(levels)")
                #expect(levels.filter { $0 < 20 }.count >= 5, "\(name) \(channel): \(levels)")
            }
            let names = try await events(world, "bob").compactMap { $0["event"]?.string }
            #expect(names.filter { $0.hasSuffix("ByRemote") } == ["heldByRemote", "resumedByRemote"])
        }
    }

    @Test func keysArriveInTheirOrder() async throws {
        try await Scratch.with { world in
            try await world.start("alice", "--capture", "tone:440")
            try await world.start("bob", "--auto-answer")
            try await world.run("dtmf", "1", "--as", "alice", "--json").expectFailure(.unreachable, "no call")
            try await world.must("call", "bob", "--as", "alice", "--detach")
            let sent = try await world.must("dtmf", "0123456789*#abcd", "--as", "alice", "--json")
            #expect(sent.duration > .milliseconds(1_600), "it returns when the last key has been sent")
            try await world.must("wait", "--as", "bob", "--for", "established")
            #expect(try await keys(world, "bob") == "0123456789*#ABCD")
            try await world.must("dtmf", "99", "--as", "bob")
            #expect(try await keys(world, "alice") == "99")
            try await world.run("dtmf", "12x", "--as", "alice", "--json").expectFailure(.usage, "keys")
            try await world.must("hangup", "--as", "alice")
        }
    }

    @Test func blindTransferToCarol() async throws {
        try await Scratch.with { world in
            let melody = Sound.melody(seconds: 2)
            try writeFile(world.root + "/melody.wav", Sound.wav(melody))
            try await world.start("carol", "--auto-answer", "--play", "melody.wav")
            try await world.start("bob", "--auto-answer", "--accept-transfers", "--record", "bob.wav")
            try await world.start("alice", "--capture", "tone:440")
            let call = try world.begin(["call", "bob", "--as", "alice", "--json"])
            try await world.must("wait", "--as", "alice", "--for", "established")
            try await world.must("wait", "--as", "bob", "--for", "established")
            let result = try await world.must("transfer", "--to", "carol", "--as", "alice", "--json").document()
            #expect(result["remote"]?.string == "bob")
            #expect(await call.end().exit == 0)
            // Bob's new call follows the one with alice, and brings carol's voice.
            #expect(
                try await world.eventually {
                    try await world.calls("bob").first { $0["state"]?.string == "established" }?["remote"]?.string
                        == "carol"
                })
            let recording = try await world.calls("bob").first { $0["remote"]?.string == "carol" }?["recording"]?.string
            await world.pass(2.5, of: try #require(recording))
            try await world.must("hangup", "--as", "carol")
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
            let calls = try await world.calls("bob")
            let new = try #require(calls.first { $0["remote"]?.string == "carol" })
            let old = try #require(calls.first { $0["remote"]?.string == "alice" })
            #expect(new["previous"]?.string == old["id"]?.string && new["direction"]?.string == "outgoing")
            let path = try #require(new["recording"]?.string)
            #expect(path != old["recording"]?.string)
            let match = SignalMatch.compare(reference: melody, heard: try Sound.read(path)[1])
            #expect(match.score > 0.8 && match.comparedSeconds > 1, "\(match)")
            let names = try await events(world, "alice").compactMap { $0["event"]?.string }
            #expect(names.suffix(2) == ["transferred", "ended"] && names.contains("transferProgress"))
            #expect(try await events(world, "bob").contains { $0["event"]?.string == "transferring" })
        }
    }

    @Test func attendedTransferConnectsTheOthers() async throws {
        try await Scratch.with { world in
            try await world.start("carol", "--auto-answer", "--capture", "tone:700")
            try await world.start("bob", "--auto-answer", "--accept-transfers", "--capture", "tone:440")
            try await world.start("alice")
            try await world.must("call", "bob", "--as", "alice", "--detach")
            try await world.must("hold", "--as", "alice")
            let second = try await world.must("call", "carol", "--as", "alice", "--detach", "--json").document()
            let id = try #require(second["id"]?.string)
            try await world.run("transfer", id, "--to-call", id, "--as", "alice", "--json")
                .expectFailure(.usage, "itself")
            try await world.must("transfer", "--to-call", String(id.prefix(12)), "--as", "alice")
            try await world.must("wait", "--as", "alice", "--for", "ended", "--timeout", "5")
            #expect(
                try await world.eventually {
                    let calls = try await world.calls("carol").filter { $0["state"]?.string == "established" }
                    return calls.count == 1 && calls.first?["remote"]?.string == "bob"
                })
            let atCarol = try #require(try await world.calls("carol").first { $0["remote"]?.string == "bob" })
            #expect(atCarol["previous"]?.string == id)
            #expect(try await world.status("alice")["calls"] == .array([]))
            try await world.must("hangup", "--as", "carol")
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
        }
    }

    @Test func transfersThatFailLeaveTheCall() async throws {
        try await Scratch.with { world in
            try await world.start("bob", "--auto-answer")
            try await world.start("alice")
            try await world.run("transfer", "--to", "carol", "--as", "alice", "--json")
                .expectFailure(.unreachable, "no call")
            try await world.must("call", "bob", "--as", "alice", "--detach")
            try await world.run("transfer", "--as", "alice", "--json").expectFailure(.usage, "--to")
            try await world.run("transfer", "--to", "not a user", "--as", "alice", "--json").expectFailure(.usage)
            try await world.run("transfer", "--to", "carol", "--as", "alice", "--json").expectFailure(.declined, "603")
            #expect(try await world.calls("alice").first?["state"]?.string == "established")
            #expect(try await world.calls("bob").first?["state"]?.string == "established")
            try await world.must("terminate", "--user", "bob")
            try await world.start("bob", "--auto-answer", "--accept-transfers")
            try await world.must("call", "bob", "--as", "alice", "--detach")
            try await world.run("transfer", "--to", "nobody-there", "--as", "alice", "--json")
                .expectFailure(.noSuchUser, "404")
            #expect(try await world.calls("alice").first?["state"]?.string == "established")
            try await world.must("hangup", "--as", "alice")
        }
    }
}
