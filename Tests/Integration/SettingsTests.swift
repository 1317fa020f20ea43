import Agent
import Configuration
import FoundationEssentials
import Glibc
import Network
import Primitives
import Testing
import Token

/// What is wrong before anything is on the wire: configuration, files, names.
struct SettingsTests {
    static let key = "11111111-2222-4333-8444-555555555555"
    static let secret = "c2VjcmV0LWNhbmFyeS1zZWNyZXQtY2FuYXJ5LTAx"

    @Test func worksWithoutAnyConfiguration() async throws {
        try await Scratch.with { world in
            let status = try await world.start("alice")
            #expect(status["registration"]?["state"]?.string == "registered")
            #expect(status["user"]?.string == "alice")
        }
    }

    @Test func brokenConfigurationIsNamedWithItsPlace() async throws {
        try await Scratch.with { world in
            try world.configure("{ profiles: { default: { capture: \"silence\" \n oops } }")
            for command in [["start", "--user", "alice"], ["call", "echo", "--user", "alice"], ["config", "check"]] {
                let run = try await world.begin(command + ["--json"]).end()
                #expect(run.exit == 78, "\(command): \(run.errors)")
                #expect(run.errors.contains("config.json"), "\(run.errors)")
            }
            try await world.run("start", "--user", "alice", "--json").expectFailure(.configuration, "config.json")
        }
    }

    @Test func secretReadableByOthersIsRefused() async throws {
        try await Scratch.with { world in
            try world.configure(
                "{ profiles: { default: { applicationKey: \"\(Self.key)\", applicationSecret: \"\(Self.secret)\" } } }",
                mode: 0o644)
            try await world.run("start", "--user", "alice", "--json").expectFailure(.configuration, "chmod")
            try world.configure(
                "{ profiles: { default: { applicationKey: \"\(Self.key)\", applicationSecretFile: \"s\" } } }")
            try writeFile(world.root + "/config/sinchctl/s", Array(Self.secret.utf8), mode: 0o640)
            try await world.run("start", "--user", "alice", "--json").expectFailure(.configuration, "chmod")
        }
    }

    @Test func unknownProfileIsRefused() async throws {
        try await Scratch.with { world in
            try world.configure("{ profiles: { default: {}, work: {} } }")
            try await world.run("start", "--user", "alice", "--profile", "wrok", "--json")
                .expectFailure(.configuration, "wrok", "work")
        }
    }

    @Test(arguments: ["a b", "../alice", "a/b", "alice@example.com", "", "é", String(repeating: "a", count: 256)])
    func userIdThatBreaksTheRulesIsRefused(user: String) async throws {
        try await Scratch.with { world in
            try await world.run("start", "--user", user, "--json").expectFailure(.usage)
            #expect(world.processes.isEmpty)
        }
    }

    @Test func longAndReservedUserIdsWork() async throws {
        try await Scratch.with { world in
            let long = String(repeating: "a", count: 254)
            try await world.start(long + "b")
            try await world.start(long + "c")
            // The environment has files of its own beside the clients'.
            try await world.start("environment")
            let document = try await world.must("status", "--json").document()
            guard case .array(let clients)? = document["clients"] else { throw TestFailure("no clients") }
            #expect(Set(clients.compactMap { $0["user"]?.string }) == [long + "b", long + "c", "environment"])
            try await world.must("terminate", "--user", long + "b")
            try await world.must("status", "--user", long + "c")
        }
    }

    @Test func directoriesMayHaveSpaces() async throws {
        try await Scratch.with(" a b") { world in
            try writeFile(world.root + "/tone file.wav", Sound.wav(Sound.melody(seconds: 1)))
            try await world.start("alice", "--play", "tone file.wav")
            try await world.must(
                "call", "echo", "--as", "alice", "--duration", "1", "--record", "heard it.wav")
            #expect(try Sound.read(world.root + "/heard it.wav").count == 2)
        }
    }

    // MARK: Tokens

    @Test func tokenFileMustBeThereAndHoldAToken() async throws {
        try await Scratch.with { world in
            try await world.run("start", "--user", "alice", "--token-file", "none.jwt", "--json")
                .expectFailure(.inputMissing, "none.jwt")
            try writeFile(world.root + "/rubbish.jwt", Array("this is no token".utf8))
            try await world.run("start", "--user", "alice", "--token-file", "rubbish.jwt", "--json")
                .expectFailure(.dataUnusable, "rubbish.jwt")
            try writeFile(world.root + "/empty.jwt", [])
            try await world.run("start", "--user", "alice", "--token-file", "empty.jwt", "--json")
                .expectFailure(.dataUnusable, "empty.jwt")
            try writeFile(world.root + "/binary.jwt", (0..<60_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            try await world.run("start", "--user", "alice", "--token-file", "binary.jwt", "--json")
                .expectFailure(.dataUnusable, "binary.jwt")
            try await world.run("start", "--user", "alice", "--token-file", "-", "--json", input: "rubbish rubbish")
                .expectFailure(.dataUnusable)
        }
    }

    @Test func wrongSecretAndForeignTokenAreRefused() async throws {
        try await Scratch.with { world in
            try await world.must("environment", "start")
            let file = try #require(try EnvironmentFile.running(world.runtime + "/environment.json"))
            try world.configure(
                """
                { profiles: { default: {}, wrong: { applicationKey: "\(file.applicationKey)", applicationSecret: "\(Self.secret)",
                  environmentHost: "\(file.host):\(file.port)" } } }
                """)
            for transport in ["udp", "tcp"] {
                try await world.run(
                    "start", "--user", "alice", "--profile", "wrong", "--json",
                    environment: ["SINCHCTL_TRANSPORT": transport]
                ).expectFailure(.registrationRefused, "token")
            }
            let token = try RegistrationToken.sign(
                applicationKey: file.applicationKey, applicationSecret: file.applicationSecret, userID: "mallory",
                issuedAt: Int64(Date().timeIntervalSince1970), nonce: "n1")
            try writeFile(world.root + "/mallory.jwt", Array(token.utf8))
            try await world.run("start", "--user", "alice", "--token-file", "mallory.jwt", "--json")
                .expectFailure(.registrationRefused, "token")
            try await world.must("start", "--user", "mallory", "--token-file", "mallory.jwt")
        }
    }

    @Test func tokensComeFromACommand() async throws {
        try await Scratch.with { world in
            try await world.must("environment", "start")
            let file = try #require(try EnvironmentFile.running(world.runtime + "/environment.json"))
            let token = try RegistrationToken.sign(
                applicationKey: file.applicationKey, applicationSecret: file.applicationSecret, userID: "alice",
                issuedAt: Int64(Date().timeIntervalSince1970), nonce: "n1")
            try writeFile(world.root + "/alice.jwt", Array(token.utf8))
            let common = "applicationKey: \"\(file.applicationKey)\", environmentHost: \"\(file.host):\(file.port)\""
            try world.configure(
                """
                { profiles: {
                  default: { \(common), tokenCommand: ["cat", "\(world.root)/alice.jwt"] },
                  fails: { \(common), tokenCommand: ["sh", "-c", "echo hush >&2; exit 3"] },
                  missing: { \(common), tokenCommand: ["no-such-program"] },
                  chatty: { \(common), tokenCommand: ["echo", "here", "you", "are"] } } }
                """)
            try await world.run("start", "--user", "alice", "--profile", "fails", "--json")
                .expectFailure(.registrationRefused, "token command", "sh")
            try await world.run("start", "--user", "alice", "--profile", "missing", "--json")
                .expectFailure(.registrationRefused, "no-such-program")
            try await world.run("start", "--user", "alice", "--profile", "chatty", "--json")
                .expectFailure(.dataUnusable, "echo")
            try await world.start("alice")
            try await world.must("call", "echo", "--as", "alice", "--duration", "1")
        }
    }

    // MARK: The environment that is not there

    @Test(arguments: ["127.0.0.1:1", "127.0.0.1:1;transport=tcp", "127.0.0.1:1;transport=udp"])
    func wrongPortFailsAtOnce(host: String) async throws {
        try await Scratch.with { world in
            try world.configure(
                "{ profiles: { default: { applicationKey: \"\(Self.key)\", applicationSecret: \"\(Self.secret)\" } } }")
            for command in ["start", "register"] {
                let run = try await world.run(command, "--user", "alice", "--environment-host", host, "--json")
                try run.expectFailure(.network, "127.0.0.1:1")
                #expect(run.duration < .seconds(3), "\(run.duration)")
            }
            let call = try await world.run("call", "bob", "--user", "alice", "--environment-host", host, "--json")
            try call.expectFailure(.network, "127.0.0.1:1")
            #expect(call.duration < .seconds(3), "\(call.duration)")
        }
    }

    @Test func passwordsAndSecretURLsAreNowhereButWhereTheyBelong() async throws {
        try await Scratch.with { world in
            try await world.must("environment", "start")
            let file = try #require(try EnvironmentFile.running(world.runtime + "/environment.json"))
            try writeFile(world.root + "/config/sinchctl/password", Array("canary password\n".utf8))
            let host = "environmentHost: \"\(file.host):\(file.port)\""
            try world.configure(
                """
                { profiles: {
                  file: { \(host), authentication: "digest", passwordFile: "password" },
                  inside: { \(host), authentication: "digest", authenticationUser: "u", password: "canary inside" },
                  none: { \(host), authentication: "none" },
                  url: { \(host), tokenURL: "http://127.0.0.1:1/token?key=canary-key&user={user}" } } }
                """)
            for (profile, text) in [("file", "digest"), ("inside", "digest"), ("none", "none")] {
                let run = try await world.run("start", "--user", "alice", "--profile", profile, "--json", "-vv")
                try run.expectFailure(.registrationRefused, "asks for a token", text)
                #expect(!(run.output + run.errors).contains("canary"))
                let shown = try await world.run("config", "show", "--profile", profile, "--json")
                #expect(shown.exit == 0 && !(shown.output + shown.errors).contains("canary"))
            }
            // Plain HTTP is for this machine, so no proxy sees it.
            let run = try await world.run(
                "start", "--user", "alice", "--profile", "url", "--json", "-vv",
                environment: ["http_proxy": "http://127.0.0.1:9"])
            try run.expectFailure(.network, "token endpoint", "127.0.0.1 port 1 ")
            #expect(!(run.output + run.errors).contains("canary"))
            for path in Scratch.files(under: world.root) where !path.contains("/config/sinchctl/") {
                #expect(!readFile(path).contains("canary"), "\(path)")
            }
        }
    }

    @Test func tokenFileReadableByOthersIsRefused() async throws {
        try await Scratch.with { world in
            try writeFile(world.root + "/open.jwt", Array("a.b.c".utf8), mode: 0o644)
            try await world.run("start", "--user", "alice", "--token-file", "open.jwt", "--json")
                .expectFailure(.configuration, "chmod 600", "open.jwt")
        }
    }

    @Test func secretsAreNowhereButWhereTheyBelong() async throws {
        try await Scratch.with { world in
            try world.configure(
                "{ profiles: { default: { applicationKey: \"\(Self.key)\", applicationSecret: \"\(Self.secret)\" } } }")
            try await world.start("alice")
            let token = try RegistrationToken.sign(
                applicationKey: Self.key, applicationSecret: ApplicationSecret(base64: Self.secret), userID: "bob",
                issuedAt: Int64(Date().timeIntervalSince1970), nonce: "canarynonce")
            let handed = try await world.run(
                "start", "--user", "bob", "--auto-answer", "--token-file", "-", input: token + "\n")
            #expect(handed.exit == 0, "\(handed.errors)")
            try await world.must("call", "bob", "--as", "alice", "--duration", "1")
            let shown = try await [
                world.must("status", "--json"), world.must("events", "--as", "bob", "--jsonl"),
                world.must("calls", "--json"), world.must("config", "show", "--json"),
                world.must("environment", "status", "--json"),
            ]
            var places = shown.map { (name: "\($0.arguments)", text: $0.output + $0.errors) }
            for path in Scratch.files(under: world.root) {
                if path.hasSuffix("/config.json") || path.hasSuffix("/environment.json") || path.hasSuffix(".in") {
                    continue
                }
                places.append((path, readFile(path)))
            }
            let processes = world.processes
            #expect(processes.count == 3)
            for pid in processes {
                places.append(("cmdline", readFile("/proc/\(pid)/cmdline")))
                places.append(("environ", readFile("/proc/\(pid)/environ")))
            }
            let own = try #require(try EnvironmentFile.running(world.runtime + "/environment.json"))
            for (name, text) in places {
                #expect(!text.contains(Self.secret), "the secret in \(name)")
                #expect(!text.contains(own.applicationSecret.revealed()), "the environment's secret in \(name)")
                #expect(!text.contains(token), "the token in \(name)")
                #expect(!text.contains(token.split(separator: ".")[1]), "the token's claims in \(name)")
            }
        }
    }
}
