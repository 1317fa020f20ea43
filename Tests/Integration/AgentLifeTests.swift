import Agent
import Configuration
import Glibc
import Testing

/// Background clients and the environment: started, started twice, killed, and started again.
struct AgentLifeTests {
    @Test func killedClientStartsAgain() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            kill(try await world.pid("alice"), SIGKILL)
            #expect(await world.eventually { world.processes.count == 1 })
            #expect(world.sockets.count == 1, "the socket is stale")
            try await world.run("status", "--user", "alice", "--json").expectFailure(.unreachable, "alice", "start")
            try await world.run("hangup", "--as", "alice", "--json").expectFailure(.unreachable, "alice")
            #expect(try await world.must("status", "--json").output.contains("\"clients\":[]"))
            try await world.start("alice")
            #expect(try await world.status("alice")["registration"]?["state"]?.string == "registered")
        }
    }

    @Test func secondStartFailsFast() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            let second = try await world.run("start", "--user", "alice", "--json")
            try second.expectFailure(.usage, "alice", "running already", "terminate")
            #expect(second.duration < .seconds(3))
            // `register` and a one-shot call are clients, too.
            try await world.run("register", "--user", "alice", "--json").expectFailure(.usage, "running already")
            try await world.run("call", "echo", "--user", "alice", "--json").expectFailure(.usage, "running already")
            #expect(try await world.status("alice")["registration"]?["state"]?.string == "registered")
        }
    }

    @Test func oneOfManyConcurrentStartsWins() async throws {
        try await Scratch.with { world in
            let runs = try (0..<5).map { _ in try world.begin(["start", "--user", "alice", "--json"]) }
            var codes: [Int32] = []
            for run in runs { codes.append(await run.end().exit) }
            #expect(codes.filter { $0 == 0 }.count == 1, "\(codes)")
            #expect(codes.filter { $0 == ExitCode.usage.rawValue }.count == 4, "\(codes)")
            #expect(world.processes.count == 2, "a client and the environment")
            #expect(try await world.status("alice")["registration"]?["state"]?.string == "registered")
        }
    }

    @Test func registerLeavesNothingBehind() async throws {
        try await Scratch.with { world in
            try await world.must("environment", "start")
            let run = try await world.must("register", "--user", "alice", "--json")
            #expect(try run.document()["registration"]?["lifetimeSeconds"]?.double ?? 0 > 0)
            #expect(world.sockets.isEmpty)
            #expect(world.processes.count == 1, "the environment only")
            // Un-registered, too: nobody is there.
            let call = try await world.run("call", "alice", "--user", "bob", "--json")
            #expect([12, 13].contains(call.exit), "\(call.errors)")
        }
    }

    @Test func statusAndTerminateOfSeveral() async throws {
        try await Scratch.with { world in
            for user in ["alice", "bob", "carol"] { try await world.start(user) }
            try await world.run("hangup", "--json").expectFailure(.usage, "alice, bob, carol", "--as")
            let text = try await world.must("status").output
            for user in ["alice", "bob", "carol"] { #expect(text.contains(user)) }
            try await world.must("terminate", "--user", "bob")
            #expect(world.sockets.count == 2)
            try await world.run("call", "alice", "--as", "carol", "--ring-timeout", "1", "--json").expectFailure(
                .noAnswer)
            // Without --as the calls of all.
            let document = try await world.must("calls", "--json").document()
            guard case .array(let calls)? = document["calls"] else { throw TestFailure("no calls") }
            #expect(Set(calls.compactMap { $0["user"]?.string }) == ["alice", "carol"])
            let ended = try await world.must("terminate", "--all", "--json").document()
            #expect(ended["terminated"] == .array([.string("alice"), .string("carol")]))
            #expect(world.sockets.isEmpty)
            #expect(world.processes.count == 1, "terminate returns when the processes are gone")
            #expect(try await world.must("terminate", "--all").exit == 0)
            try await world.run("terminate", "--json").expectFailure(.unreachable)
            try await world.run("calls", "--json").expectFailure(.unreachable)
        }
    }

    @Test func stuckClientIsEndedByForce() async throws {
        try await Scratch.with { world in
            try await world.start("alice")
            try await world.start("bob")
            let pid = try await world.pid("alice")
            kill(pid, SIGSTOP)
            let status = try await world.run("status", "--json", within: .seconds(15))
            #expect(status.exit == 0 && status.output.contains("\"bob\""), "\(status.errors)")
            #expect(status.errors.contains("did not answer"))
            try await world.run("terminate", "--user", "alice", "--timeout", "1", "--json", within: .seconds(10))
                .expectFailure(.timeout, "killed")
            #expect(await world.eventually { !world.processes.contains(pid) })
            try await world.start("alice")
        }
    }

    @Test func foregroundClientObeysSignals() async throws {
        try await Scratch.with { world in
            let client = try world.begin(["start", "--user", "alice", "--foreground"])
            #expect(await world.eventually { client.outputSoFar.contains("registered") && !world.sockets.isEmpty })
            try await world.must("call", "echo", "--as", "alice", "--duration", "1")
            client.signal(SIGTERM)
            let run = await client.end(within: .seconds(10))
            #expect(run.exit == 0 && !run.wasKilled, "\(run.errors)")
            #expect(world.sockets.isEmpty)
        }
    }

    // MARK: The environment

    @Test func environmentCommands() async throws {
        try await Scratch.with { world in
            try await world.run("environment", "status", "--json").expectFailure(.unreachable, "not running")
            try await world.run("environment", "stop", "--json").expectFailure(.unreachable, "not running")
            let first = try await world.must("environment", "start", "--json").document()
            let second = try await world.must("environment", "start", "--json").document()
            #expect(first == second, "it runs already")
            let status = try await world.must("environment", "status", "--json").document()
            #expect(status == first)
            try await world.run("environment", "run", "--json").expectFailure(.usage, "running already")
            try await world.must("environment", "stop")
            #expect(world.processes.isEmpty)
            // The port stays, so that clients find it again.
            let third = try await world.must("environment", "start", "--json").document()
            #expect(third["port"] == first["port"])
            #expect(third["pid"] != first["pid"])
            try await world.must("environment", "stop")

            let foreground = try world.begin(["environment", "run"])
            #expect(await world.eventually { foreground.errorsSoFar.contains("listens on 127.0.0.1") })
            foreground.signal(SIGINT)
            let run = await foreground.end(within: .seconds(8))
            #expect(!run.wasKilled && run.exit == 0, "\(run.exit) \(run.errors)")
        }
    }

    @Test func concurrentClientsShareOneEnvironment() async throws {
        try await Scratch.with { world in
            let runs = try ["a", "b", "c", "d"].map { try world.begin(["start", "--user", $0, "--json"]) }
            for run in runs {
                let run = await run.end()
                #expect(run.exit == 0, "\(run.errors)")
            }
            #expect(world.processes.count == 5)
        }
    }

    @Test(arguments: ["udp", "tcp"])
    func environmentRestart(transport: String) async throws {
        try await Scratch.with { world in
            try world.configure("{ profiles: { default: { transport: \"\(transport)\" } } }")
            try await world.start("alice", "--capture", "tone:440")
            try await world.start("bob", "--auto-answer", "--capture", "tone:600")
            try await world.must("call", "bob", "--as", "alice", "--detach")
            let pid = try #require(try await world.must("environment", "status", "--json").document()["pid"]?.integer)
            kill(pid_t(pid), SIGKILL)
            for user in ["alice", "bob"] {
                let lost = await world.eventually {
                    (try? await world.must("events", "--as", user, "--jsonl").output.contains("registrationLost"))
                        ?? false
                }
                #expect(lost, "\(user) knows that the registration is lost")
                try await world.run("wait", "--as", user, "--for", "registered", "--timeout", "0.3", "--json")
                    .expectFailure(.timeout)
                #expect(try await world.status(user)["registration"]?["state"]?.string != "registered")
            }
            // Media is direct: the call goes on.
            try await world.must("wait", "--as", "alice", "--for", "established", "--timeout", "1")
            let before = try #require(try await world.calls("alice").first?["media"]?["packetsReceived"]?.integer)
            #expect(
                try await world.eventually {
                    try await world.calls("alice").first?["media"]?["packetsReceived"]?.integer ?? 0 > before + 20
                })
            try await world.must("environment", "start")
            for user in ["alice", "bob"] {
                try await world.must("wait", "--as", user, "--for", "registered", "--timeout", "10")
                let events = try await world.must("events", "--as", user, "--jsonl").output
                    .split(separator: "\n").filter { $0.contains("\"event\":\"regist") }
                #expect(events.count == 3, "registered, lost, registered: \(events)")
            }
            try await world.must("wait", "--as", "bob", "--for", "established", "--timeout", "1")
            // The environment knows the dialog no more, or does: hanging up ends the call here at least, and a new one works.
            try await world.must("hangup", "--as", "alice", within: .seconds(40))
            try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
            try await world.must("call", "bob", "--as", "alice", "--duration", "1")
        }
    }

    @Test func hangUpWorksWithoutTheEnvironment() async throws {
        try await Scratch.with { world in
            try await world.start("alice", "--capture", "tone:440")
            try await world.start("bob", "--auto-answer", "--capture", "tone:600")
            try await world.must("call", "bob", "--as", "alice", "--detach")
            let pid = try #require(try await world.must("environment", "status", "--json").document()["pid"]?.integer)
            kill(pid_t(pid), SIGKILL)
            #expect(await world.eventually { world.processes.count == 2 })
            let run = try await world.must("hangup", "--as", "alice")
            #expect(run.duration < .seconds(3))
            // Bob hears of it by the silence (30 s) at the latest; he can hang up, too.
            try await world.must("hangup", "--as", "bob")
            let end = try #require(try await world.calls("alice").first?["end"])
            #expect(end["cause"]?.string == "hungUp")
        }
    }
}
