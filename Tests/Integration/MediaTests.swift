import Agent
import Audio
import Configuration
import Glibc
import Testing

/// What is heard: recordings of real calls between real processes, compared with what was played.
struct MediaTests {
    @Test func echoReturnsWhatWasPlayed() async throws {
        try await Scratch.with { world in
            let melody = Sound.melody(seconds: 3)
            try writeFile(world.root + "/melody.wav", Sound.wav(melody))
            let run = try await world.must(
                "call", "echo", "--user", "carol", "--play", "melody.wav", "--record", "heard.wav", "--duration", "5",
                "--json")
            let call = try run.document()
            #expect(call["end"]?["cause"]?.string == "hungUp")
            #expect(call["media"]?["codec"]?.string?.lowercased().contains("opus") == true)
            let channels = try Sound.read(world.root + "/heard.wav")
            #expect(channels.count == 2)
            #expect(channels[0].count > 4 * 48_000)
            for channel in channels {
                let match = SignalMatch.compare(reference: melody, heard: channel)
                #expect(match.score > 0.8, "\(match)")
                #expect(match.comparedSeconds > 2, "\(match)")
            }
            try await world.must("verify", "melody.wav", "heard.wav", "--minimum-match", "80")
            #expect(world.sockets.isEmpty)
            #expect(world.processes.count == 1, "only the environment is left of a one-shot call")
        }
    }

    @Test func announcementEndsByItself() async throws {
        try await Scratch.with { world in
            let run = try await world.must(
                "call", "announcement", "--user", "carol", "--record", "heard.wav", "--json", within: .seconds(25))
            let end = try run.document()["end"]
            #expect(end?["cause"]?.string == "hungUp" && end?["isLocal"]?.bool == false)
            #expect(Sound.level(try Sound.read(world.root + "/heard.wav")[1]) > 100)
        }
    }

    @Test func endsWhenTheFileWasPlayed() async throws {
        try await Scratch.with { world in
            let melody = Sound.melody(seconds: 2)
            try writeFile(world.root + "/melody.wav", Sound.wav(melody))
            try await world.start("bob", "--auto-answer", "--record", "bob.wav")
            try await world.start("alice")
            let run = try await world.must(
                "call", "bob", "--as", "alice", "--play", "melody.wav", "--hangup-after-play", "--header",
                "x-ticket: 4711", "--header", "X-Empty:", "--json")
            #expect(run.duration > .seconds(2) && run.duration < .seconds(8))
            #expect(try run.document()["end"]?["isLocal"]?.bool == true)
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
            let call = try #require(try await world.calls("bob").first)
            let headers = call["headers"]
            #expect(headers?["x-ticket"]?.string == "4711", "\(call)")
            let heard = try Sound.read(world.root + "/bob.wav")
            #expect(heard.count == 2)
            let match = SignalMatch.compare(reference: melody, heard: heard[1])
            #expect(match.score > 0.8 && match.comparedSeconds > 1.5, "\(match)")
            #expect(Sound.level(heard[0]) < 10, "bob said nothing")
        }
    }

    @Test func answerByHandWithAFile() async throws {
        try await Scratch.with { world in
            let melody = Sound.melody(seconds: 2)
            try writeFile(world.root + "/melody.wav", Sound.wav(melody))
            try await world.start("alice")
            try await world.start("bob")
            try await world.run("answer", "--as", "bob", "--json").expectFailure(.unreachable, "nobody is calling bob")
            let call = try world.begin(["call", "bob", "--as", "alice", "--record", "alice.wav", "--json"])
            let incoming = try await world.must("wait", "--as", "bob", "--for", "incoming", "--json").document()
            #expect(incoming["remote"]?.string == "alice" && incoming["direction"]?.string == "incoming")
            try await world.run("answer", "--as", "bob", "--play", "none.wav", "--json").expectFailure(.inputMissing)
            let answered = try await world.must("answer", "--as", "bob", "--play", "melody.wav", "--json").document()
            #expect(answered["state"]?.string == "established")
            for user in ["alice", "bob"] {
                try await world.must("wait", "--as", user, "--for", "established", "--timeout", "5")
            }
            try await world.run("wait", "--as", "bob", "--for", "ended", "--timeout", "2", "--json")
                .expectFailure(.timeout, "bob", "ended")
            try await world.must("hangup", "--as", "bob")
            let end = await call.end()
            #expect(end.exit == 0, "\(end.errors)")
            try await world.must("wait", "--as", "alice", "--for", "ended", "--timeout", "5")
            let match = SignalMatch.compare(reference: melody, heard: try Sound.read(world.root + "/alice.wav")[1])
            #expect(match.score > 0.8 && match.comparedSeconds > 1, "\(match)")
        }
    }

    @Test func muteIsSilenceAndUnmuteIsSound() async throws {
        try await Scratch.with { world in
            try await world.start("alice", "--capture", "tone:440")
            try await world.start("bob", "--auto-answer", "--record", "bob.wav", "--capture", "tone:700")
            try await world.must("call", "bob", "--as", "alice", "--detach")
            await world.pass(1, of: "bob.wav")
            #expect(try await world.must("mute", "--as", "alice", "--json").document()["muted"]?.bool == true)
            #expect(try await world.status("alice")["media"]?["muted"]?.bool == true)
            await world.pass(1.5, of: "bob.wav")
            try await world.must("unmute", "--as", "alice")
            await world.pass(1, of: "bob.wav")
            try await world.must("hangup", "--as", "alice")
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
            let heard = try Sound.read(world.root + "/bob.wav")[1]
            // Fifths of a second, as loud or silent: sound, then silence, then sound.
            let levels = stride(from: 0.2, to: Double(heard.count) / 48_000 - 0.4, by: 0.2).map { time in
                Sound.level(heard, from: time, to: time + 0.2)
            }
            let isLoud = levels.map { $0 > 1_000 }
            #expect(isLoud.first == true && isLoud.last == true, "\(levels)")
            #expect(levels.filter { $0 < 20 }.count >= 5, "\(levels)")
            var changes = 0
            for (one, next) in zip(isLoud, isLoud.dropFirst()) where one != next { changes += 1 }
            #expect(changes == 2, "\(levels)")
        }
    }

    @Test func recordingOfAKilledClientCanBeRead() async throws {
        try await Scratch.with { world in
            try await world.start("alice", "--capture", "tone:440")
            let call = try world.begin(
                ["call", "echo", "--as", "alice", "--record", "heard.wav", "--json"])
            try await world.must("wait", "--as", "alice", "--for", "established")
            await world.pass(3, of: "heard.wav")
            kill(try await world.pid("alice"), SIGKILL)
            try await call.end(within: .seconds(5)).expectFailure(.unreachable, "alice", "ended")
            try await world.start("alice")
            let channels = try Sound.read(world.root + "/heard.wav")
            #expect(channels.count == 2)
            #expect(channels[0].count > 48_000, "\(channels[0].count)")
            #expect(Sound.level(channels[1], from: 0.5, to: 1) > 1_000)
        }
    }

    @Test func twoCallsAtOnceAreRecordedApart() async throws {
        try await Scratch.with { world in
            try await world.start("bob", "--auto-answer", "--record", "bob.wav")
            for user in ["alice", "carol"] {
                try await world.start(user, "--capture", "tone:440")
                try await world.must("call", "bob", "--as", user, "--detach")
            }
            try await world.must("hangup", "--as", "bob", "--all")
            let recordings = Set(try await world.calls("bob").compactMap { $0["recording"]?.string })
            #expect(recordings.count == 2)
            for path in recordings { #expect(try Sound.read(path).count == 2) }
        }
    }
}
