import Agent
import Audio
import Configuration
import Glibc
import Testing

/// Two nodes that share who is where: each is a machine of its own, and so is each client.
struct KamailioClusterTests {
    /// In continuous integration this is never skipped: there, a failure to make namespaces is a failure.
    @Test(.enabled(if: Namespaces.areAllowed || getenv("CI") != nil, "making network namespaces needs root"))
    func clientsOfBothNodesReachEachOtherAndOneNodeMayDie() async throws {
        try await Scratch.with { world in
            let machines = try await Namespaces(
                in: world,
                [("one", "10.77.0.1"), ("two", "10.77.0.2"), ("alice", "10.77.0.11"), ("bob", "10.77.0.12")])
            do {
                try await run(world, machines)
            } catch {
                await machines.remove()
                throw error
            }
            await machines.remove()
        }
    }

    private func run(_ world: Scratch, _ machines: Namespaces) async throws {
        let tls = world.root + "/tls"
        let made = try await RunningCommand(
            KamailioNode.script("certificates"), [tls, "sip.test"], environment: world.environment,
            directory: world.root
        ).end(within: .seconds(20))
        #expect(made.exit == 0, "\(made.errors)")
        func start(_ name: String, _ address: String, other: String) async throws -> KamailioNode {
            try await KamailioNode(
                in: world,
                KamailioNode.Settings(
                    address: address, options: ["--cluster", address + ":5070", "--node", other + ":5070"],
                    prefix: machines.prefix(name), name: name, domain: "sip.test", certificates: tls))
        }
        let one = try await start("one", "10.77.0.1", other: "10.77.0.2")
        let two = try await start("two", "10.77.0.2", other: "10.77.0.1")
        do {
            try await callAcross(world, machines)
            try await machines.kill("one")
            await one.stop()
            try await callAfterTheLoss(world, machines)
            // The lost node comes back, and knows at once who is where.
            let again = try await start("one", "10.77.0.1", other: "10.77.0.2")
            let knows = await world.eventually {
                (try? await again.control("ul.dump", in: world).contains("bob@")) == true
            }
            #expect(knows, "the node that came back has learnt the locations")
            await again.stop()
        } catch {
            for node in [one, two] { print(node.log) }
            await two.stop()
            throw error
        }
        await two.stop()
    }

    /// Each client is at home with another node.
    private func callAcross(_ world: Scratch, _ machines: Namespaces) async throws {
        try machines.resolve("sip.test", to: ["10.77.0.1", "10.77.0.2"], on: "bob")
        try machines.resolve("sip.test", to: ["10.77.0.2", "10.77.0.1"], on: "alice")
        try world.configure(
            """
            { profiles: { default: { applicationKey: "\(KamailioNode.applicationKey)",
              applicationSecret: "\(KamailioNode.applicationSecret)", environmentHost: "sip.test:5061;transport=tls",
              caFile: "\(world.root)/tls/ca.pem", mediaSecurity: "none" } } }
            """)
        let melody = Sound.melody(seconds: 2)
        try writeFile(world.root + "/melody.wav", Sound.wav(melody))
        try await on("bob", machines, world, "start", "--user", "bob", "--auto-answer", "--record", "bob.wav")
        try await on("alice", machines, world, "start", "--user", "alice")
        let run = try await world.run("call", "bob", "--as", "alice", "--play", "melody.wav", "--hangup-after-play")
        #expect(run.exit == 0, "\(run.errors)")
        try await world.must("wait", "--as", "bob", "--for", "ended", "--timeout", "5")
        #expect(try await world.calls("bob").first?["times"]?["answered"] != nil)
        let heard = SignalMatch.compare(reference: melody, heard: try Sound.read(world.root + "/bob.wav")[1])
        #expect(heard.score > 0.8 && heard.comparedSeconds > 1, "\(heard)")
        // And the other way, declined by the callee.
        let call = try world.begin(["call", "alice", "--as", "bob", "--json"])
        try await world.must("wait", "--as", "alice", "--for", "incoming", "--timeout", "5")
        try await world.must("hangup", "--as", "alice")
        try await call.end().expectFailure(.declined, "alice", "declined")
    }

    /// Bob's node is gone: he registers with the other one, and is called there.
    private func callAfterTheLoss(_ world: Scratch, _ machines: Namespaces) async throws {
        // What is tested is that a call gets through, and only a call can tell.
        let reached = try await world.eventually(within: .seconds(60)) {
            try await world.run("call", "bob", "--as", "alice", "--duration", "1", "--ring-timeout", "3").exit == 0
        }
        let status = try await world.status("bob")
        #expect(reached, "bob is reachable again: \(status)")
        #expect(status["registration"]?["state"]?.string == "registered")
    }

    @discardableResult
    private func on(
        _ machine: String, _ machines: Namespaces, _ world: Scratch, _ arguments: String...
    ) async throws -> CommandRun {
        let words = machines.prefix(machine) + [Scratch.program] + arguments
        let run = try await RunningCommand(
            words[0], Array(words.dropFirst()), environment: world.environment, directory: world.root,
            workingDirectory: world.root
        ).end()
        #expect(run.exit == 0, "\(arguments): \(run.errors)")
        guard run.exit == 0 else { throw TestFailure("\(arguments) failed: \(run.errors)") }
        return run
    }
}
