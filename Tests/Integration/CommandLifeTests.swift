import Agent
import Configuration
import Glibc
import Testing

/// Commands that stay: interrupted, killed, detached, and those that only watch.
struct CommandLifeTests {
    @Test func interruptHangsUp() async throws {
        try await Scratch.with { world in
            try await world.start("bob", "--auto-answer")
            try await world.start("alice")
            let call = try world.begin(["call", "bob", "--as", "alice", "--json"])
            try await world.must("wait", "--as", "bob", "--for", "established")
            call.signal(SIGINT)
            let run = await call.end(within: .seconds(5))
            try run.expectFailure(.interrupted, "hung up")
            #expect(run.output.contains("\"packetsSent\""), "the measurements are not lost")
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")

            let terminated = try world.begin(["call", "echo", "--user", "carol", "--json"])
            #expect(await world.eventually { world.sockets.count == 3 })
            try await world.must("wait", "--as", "carol", "--for", "established")
            terminated.signal(SIGTERM)
            try await terminated.end(within: .seconds(5)).expectFailure(.terminated)
            #expect(world.sockets.count == 2)
        }
    }

    @Test func secondInterruptEndsAtOnce() async throws {
        try await Scratch.with { world in
            try await world.start("bob", "--auto-answer")
            try await world.start("alice")
            let call = try world.begin(["call", "bob", "--as", "alice"])
            try await world.must("wait", "--as", "alice", "--for", "established")
            // An agent that is stuck cannot hang up, and yet the command can be left.
            let pid = try await world.pid("alice")
            kill(pid, SIGSTOP)
            call.signal(SIGINT)
            try await Task.sleep(for: .milliseconds(300))
            call.signal(SIGINT)
            let run = await call.end(within: .seconds(4))
            kill(pid, SIGCONT)
            #expect(run.exit == 130 && !run.wasKilled, "\(run.exit) \(run.errors)")
            // The call belonged to the command.
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
        }
    }

    @Test(arguments: [SIGKILL, SIGHUP])
    func killedCommandLeavesNothing(signal: Int32) async throws {
        try await Scratch.with { world in
            try await world.must("environment", "start")
            let call = try world.begin(["call", "echo", "--user", "carol"])
            #expect(await world.eventually { !world.sockets.isEmpty })
            try await world.must("wait", "--as", "carol", "--for", "established")
            // Long enough for a pool's idle threads to end.
            try await Task.sleep(for: .seconds(signal == SIGKILL ? 7 : 0))
            call.signal(signal)
            _ = await call.end(within: .seconds(5))
            #expect(await world.eventually { world.processes.count == 1 }, "the environment only")
            #expect(world.sockets.isEmpty)
            // Un-registered, not merely gone.
            try await world.start("alice")
            let again = try await world.run("call", "carol", "--as", "alice", "--json")
            #expect([12, 13].contains(again.exit) && again.duration < .seconds(4), "\(again.errors)")
        }
    }

    @Test func killedCommandOfARunningClientEndsItsCallOnly() async throws {
        try await Scratch.with { world in
            try await world.start("bob", "--auto-answer")
            try await world.start("alice")
            let call = try world.begin(["call", "bob", "--as", "alice"])
            try await world.must("wait", "--as", "bob", "--for", "established")
            call.signal(SIGKILL)
            _ = await call.end()
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
            try await world.must("call", "echo", "--as", "alice", "--duration", "1")
        }
    }

    @Test func detachedCallGoesOn() async throws {
        try await Scratch.with { world in
            try await world.start("bob", "--auto-answer")
            try await world.start("alice")
            let call = try await world.must("call", "bob", "--as", "alice", "--detach", "--json").document()
            #expect(call["state"]?.string == "established")
            let id = try #require(call["id"]?.string)
            try await world.must("wait", "--as", "bob", "--for", "established", "--timeout", "2")
            try await world.run("hangup", "nosuch", "--as", "alice", "--json").expectFailure(.unreachable, "nosuch")
            try await world.must("hangup", String(id.prefix(8)), "--as", "alice")
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
            let ended = try #require(try await world.calls("alice").first)
            #expect(ended["end"]?["code"]?.string == "ok" && ended["id"]?.string == id)
            try await world.run("hangup", "--as", "alice", "--json").expectFailure(.unreachable, "no call")
        }
    }

    @Test func killedClientEndsTheCallForTheOtherSide() async throws {
        try await Scratch.with { world in
            try await world.start("bob", "--auto-answer", "--capture", "tone:440")
            try await world.start("alice", "--capture", "tone:600")
            try await world.must("call", "bob", "--as", "alice", "--detach")
            kill(try await world.pid("alice"), SIGKILL)
            // Nothing tells bob but the silence; it may last 30 s.
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "45", within: .seconds(50))
            let end = try #require(try await world.calls("bob").first?["end"])
            #expect(end["cause"]?.string == "inactive", "\(end)")
            #expect(end["exitCode"]?.integer == Int64(ExitCode.mediaFailed.rawValue))
            // What the killed client left in the way is cleared by the next one.
            try await world.start("alice")
        }
    }

    @Test func eventsAreFollowedToTheEnd() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            let following = try world.begin(["events", "--as", "alice", "--follow", "--jsonl"])
            #expect(await world.eventually { following.outputSoFar.contains("registered") })
            try await world.must("call", "echo", "--as", "alice", "--duration", "1")
            try await world.must("mute", "--as", "alice")
            #expect(await world.eventually { following.outputSoFar.contains("\"muted\"") }, "each event at once")
            try await world.must("terminate", "--user", "alice")
            let run = await following.end(within: .seconds(5))
            #expect(run.exit == 0 && !run.wasKilled, "\(run.errors)")
            let events = try run.output.split(separator: "\n").map { line in
                try CommandRun(
                    arguments: [], exit: 0, output: String(line), errors: "", duration: .zero, wasKilled: false
                ).document()
            }
            let names = events.compactMap { $0["event"]?.string }
            #expect(names.first == "registered" && names.last == "terminated", "\(names)")
            for name in ["initiating", "answered", "established", "ended", "muted"] {
                #expect(names.contains(name), "\(names)")
            }
            #expect(events.compactMap { $0["seq"]?.integer } == (1...events.count).map(Int64.init), "no gap")
            #expect(events.allSatisfy { $0["user"]?.string == "alice" && $0["time"]?.string?.hasSuffix("Z") == true })
        }
    }

    @Test func eventsEndWithTheirReader() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            let pipeline = try RunningCommand(
                "/bin/sh", ["-c", "'\(Scratch.program)' events --as alice --follow --jsonl | head -n 1"],
                environment: world.environment, directory: world.root)
            #expect(await world.eventually { pipeline.outputSoFar.contains("registered") })
            // The reader has gone by now, or goes; some events later the writer knows.
            #expect(
                try await world.eventually {
                    try await world.must("mute", "--as", "alice")
                    return world.processes.count == 2
                }, "the client and the environment")
            _ = await pipeline.end(within: .seconds(5))
        }
    }

    @Test func waitOutlivesTheClientWithAWord() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            for state in ["incoming", "established"] {
                try await world.run("wait", "--as", "alice", "--for", state, "--timeout", "0.2", "--json")
                    .expectFailure(.timeout, "alice", state)
            }
            // What is so already is met at once.
            for state in ["registered", "ended"] {
                let met = try await world.must("wait", "--as", "alice", "--for", state, "--json")
                #expect(met.duration < .seconds(2))
                _ = try met.document()
            }
            let waiting = try world.begin(["wait", "--as", "alice", "--for", "incoming", "--json"])
            try await Task.sleep(for: .milliseconds(300))
            try await world.must("terminate", "--user", "alice")
            try await waiting.end(within: .seconds(5)).expectFailure(.unreachable, "alice", "ended")
        }
    }
}
