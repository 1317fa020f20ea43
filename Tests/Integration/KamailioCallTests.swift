import Agent
import Audio
import Configuration
import Testing

/// The program itself with Kamailio between its clients, over every transport.
struct KamailioCallTests {
    /// The transports that the client speaks.
    static let transports = ["udp", "tcp", "tls", "ws", "wss"]

    @Test(arguments: transports)
    func bothSidesHearEachOther(transport: String) async throws {
        try await Scratch.with { world in
            try await world.withKamailio { node in
                try world.configure("{ profiles: { default: \(node.profile(transport)) } }")
                let melody = Sound.melody(seconds: 3)
                try writeFile(world.root + "/melody.wav", Sound.wav(melody))
                try await world.start("bob", "--auto-answer", "--capture", "tone:440", "--record", "bob.wav")
                let status = try await world.start("alice")
                #expect(status["registration"]?["state"]?.string == "registered")
                try await world.must(
                    "call", "bob", "--as", "alice", "--play", "melody.wav", "--record", "alice.wav",
                    "--hangup-after-play",
                    "--json")
                try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
                let heard = SignalMatch.compare(reference: melody, heard: try Sound.read(world.root + "/bob.wav")[1])
                #expect(heard.score > 0.8 && heard.comparedSeconds > 2, "\(heard)")
                #expect(Sound.level(try Sound.read(world.root + "/alice.wav")[1], from: 1, to: 2) > 1_000)
                // The callee ends a call just as well.
                try await world.must("call", "bob", "--as", "alice", "--detach")
                try await world.must("hangup", "--as", "bob")
                try await world.must("wait", "--as", "alice", "--for", "ended", "--timeout", "5")
                #expect(!node.log.contains(KamailioNode.applicationSecret) && !node.log.contains("eyJ"))
            }
        }
    }

    @Test(arguments: transports)
    func outcomesAreThoseOfTheEmbeddedEnvironment(transport: String) async throws {
        try await Scratch.with { world in
            try await world.withKamailio { node in
                try world.configure(
                    """
                    { profiles: { default: \(node.profile(transport)),
                      stranger: \(node.profile(transport, key: KamailioNode.otherKey, secret: KamailioNode.otherSecret)),
                      wrong: \(node.profile(transport, secret: KamailioNode.otherSecret)) } }
                    """)
                try await world.run("start", "--user", "bob", "--profile", "wrong", "--json")
                    .expectFailure(.registrationRefused, "token")
                try await world.start("alice")
                try await world.start("bob")
                try await world.run("call", "nobody", "--as", "alice", "--json").expectFailure(.noSuchUser, "nobody")
                let declined = try world.begin(["call", "bob", "--as", "alice", "--json"])
                try await world.must("wait", "--as", "bob", "--for", "incoming", "--timeout", "10")
                try await world.must("hangup", "--as", "bob")
                try await declined.end().expectFailure(.declined, "bob", "declined")
                try await world.run("call", "bob", "--as", "alice", "--ring-timeout", "1", "--json")
                    .expectFailure(.noAnswer, "did not answer")
                try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
                // Users of another application are strangers.
                try await world.start("carol", "--profile", "stranger")
                try await world.run("call", "bob", "--as", "carol", "--json").expectFailure(.noSuchUser, "bob")
                try await world.must("terminate", "--user", "bob")
                let absent = try await world.run("call", "bob", "--as", "alice", "--json")
                #expect(absent.exit == ExitCode.noSuchUser.rawValue || absent.exit == ExitCode.noAnswer.rawValue)
            }
        }
    }
}
