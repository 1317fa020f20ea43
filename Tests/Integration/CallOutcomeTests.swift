import Agent
import Configuration
import Glibc
import Testing

/// How calls end, and what the command says then.
struct CallOutcomeTests {
    @Test func unknownUserIsToldFromAnAbsentOne() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            try await world.run("call", "nobody", "--as", "alice", "--json").expectFailure(.noSuchUser, "nobody")
            try await world.start("bob")
            try await world.must("terminate", "--user", "bob")
            let run = try await world.run("call", "bob", "--as", "alice", "--json")
            #expect(run.exit == ExitCode.noSuchUser.rawValue || run.exit == ExitCode.noAnswer.rawValue)
            #expect(run.complaints.count == 1)
            #expect(run.duration < .seconds(5))
        }
    }

    @Test func nobodyAnswers() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            try await world.start("bob")
            let run = try await world.run("call", "bob", "--as", "alice", "--ring-timeout", "1", "--json")
            try run.expectFailure(.noAnswer, "did not answer")
            #expect(run.duration > .seconds(1) && run.duration < .seconds(5))
            // Nothing rings on when the caller has given up.
            #expect(try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5").exit == 0)
            let missed = try #require(try await world.calls("bob").first)
            #expect(missed["end"]?["cause"]?.string == "canceled")
        }
    }

    @Test func overallTimeEnds() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            try await world.start("bob")
            // While it rings …
            let ringing = try await world.run("call", "bob", "--as", "alice", "--timeout", "1", "--json")
            try ringing.expectFailure(.timeout, "--timeout")
            // … and while it is talked.
            let talking = try await world.run("call", "echo", "--as", "alice", "--timeout", "2", "--json")
            try talking.expectFailure(.timeout, "--timeout")
            #expect(talking.duration < .seconds(5))
            for user in ["alice", "bob"] {
                try await world.must("wait", "--as", user, "--for", "ended", "--timeout", "5")
            }
        }
    }

    @Test(arguments: [false, true])
    func declinedOrBusyByHand(isBusy: Bool) async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            try await world.start("bob")
            let call = try world.begin(["call", "bob", "--as", "alice", "--json"])
            try await world.must("wait", "--as", "bob", "--for", "incoming", "--timeout", "10")
            if isBusy {
                try await world.must("hangup", "--as", "bob", "--busy")
                try await call.end().expectFailure(.busy, "bob", "busy")
            } else {
                try await world.must("hangup", "--as", "bob")
                try await call.end().expectFailure(.declined, "bob", "declined")
            }
        }
    }

    @Test func secondCallerFindsTheLineBusy() async throws {
        try await Scratch.with { world in
            try await world.start("bob", "--auto-answer", "--max-calls", "1")
            try await world.start("alice")
            try await world.start("carol")
            try await world.must("call", "bob", "--as", "alice", "--detach")
            try await world.run("call", "bob", "--as", "carol", "--json").expectFailure(.busy, "bob", "busy")
            try await world.must("wait", "--as", "alice", "--for", "established", "--timeout", "1")
            try await world.must("hangup", "--as", "alice")
            // The line is free again.
            try await world.must("call", "bob", "--as", "carol", "--duration", "1")
        }
    }

    @Test func callerHangsUpWhileItRings() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            try await world.start("bob")
            let call = try world.begin(["call", "bob", "--as", "alice", "--json"])
            try await world.must("wait", "--as", "bob", "--for", "incoming")
            try await world.must("hangup", "--as", "alice")
            try await call.end().expectFailure(.canceled)
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
        }
    }

    // MARK: Files and devices

    @Test func filesThatCannotBeUsedAreToldBeforeAnythingRings() async throws {
        try await Scratch.with { world in
            try writeFile(world.root + "/text.wav", Array("this is not a WAV file at all, however long it may be".utf8))
            try writeFile(world.root + "/alaw.wav", Sound.wav([1, 2, 3], format: 0x55))
            try writeFile(world.root + "/tone.wav", Sound.wav(Sound.melody(seconds: 0.5)))
            mkfifo(world.root + "/pipe.wav", 0o600)
            try await world.start("bob")
            try await world.start("alice")
            func call(_ options: String...) async throws -> CommandRun {
                try await world.begin(["call", "bob", "--as", "alice", "--json"] + options).end(within: .seconds(10))
            }
            try await call("--play", "none.wav").expectFailure(.inputMissing, "none.wav")
            try await call("--play", "text.wav").expectFailure(.dataUnusable, "text.wav")
            try await call("--play", "alaw.wav").expectFailure(.dataUnusable, "alaw.wav")
            try await call("--record", "/proc/none/x.wav").expectFailure(.cannotCreate, "/proc/none/x.wav")
            try await call("--record", "none/x.wav").expectFailure(.cannotCreate, "none/x.wav")
            try await call("--record", ".").expectFailure(.cannotCreate)
            try await call("--record", "pipe.wav").expectFailure(.cannotCreate, "pipe.wav")
            try await call("--capture", "nonsense:1").expectFailure(.usage)
            #expect(try await world.calls("bob").isEmpty, "nothing rang")
            // The same for a client that is to play or record.
            try await world.run("start", "--user", "c", "--play", "none.wav", "--json")
                .expectFailure(.inputMissing, "none.wav")
            try await world.run("start", "--user", "c", "--play", "text.wav", "--json")
                .expectFailure(.dataUnusable, "text.wav")
            try await world.run("start", "--user", "c", "--record", "none/x.wav", "--json")
                .expectFailure(.cannotCreate, "none/x.wav")
            #expect(world.sockets.count == 2)
        }
    }

    @Test func soundDeviceThatIsMissing() async throws {
        try await Scratch.with { world in
            let started = try await world.run("start", "--user", "alice")
            #expect(started.exit == 0)
            #expect(started.errors.split(separator: "\n").count == 1, "it warns once: \(started.errors)")
            #expect(started.errors.hasPrefix("sinchctl: warning: "))
            let run = try await world.run(
                "call", "echo", "--as", "alice", "--capture", "alsa:nosuch", "--json", within: .seconds(15))
            try run.expectFailure(.mediaFailed, "nosuch", "--capture tone:440")
            #expect(run.duration < .seconds(8))
            // The client is none the worse for it.
            try await world.must("call", "echo", "--as", "alice", "--duration", "1")
        }
    }
}
