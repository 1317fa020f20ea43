import Configuration
import Network
import Testing

@testable import Agent

/// Tokens from a backend, over HTTP on loopback and HTTPS.
struct TokenEndpointTests {
    private static let token = "aGVhZGVy.Y2xhaW1z.c2lnbmF0dXJl"

    private func endpoint(_ url: String, caFile: String? = nil, timeout: Duration = .seconds(20)) -> TokenEndpoint {
        TokenEndpoint(url: url, applicationKey: "key", caFile: caFile, timeout: timeout)
    }

    private func failure(_ endpoint: TokenEndpoint) async -> CommandFailure? {
        do throws(CommandFailure) {
            _ = try await endpoint.token(for: "alice")
            return nil
        } catch {
            return error
        }
    }

    @Test func answersInEitherForm() async throws {
        let server = try await TokenServer.start()
        defer { withExtendedLifetime(server) {} }
        let base = "http://127.0.0.1:\(server.port)"
        let json = try await endpoint(base + "/json?user={user}").token(for: "alice")
        #expect(json == Self.token)
        let bare = try await endpoint(base + "/bare?user={user}").token(for: "alice")
        #expect(bare == Self.token)
        // The user's id goes into the URL, or into the body of a POST.
        let asked = try await endpoint(base + "/user?user={user}").token(for: "a-b=")
        #expect(asked == "aGVhZGVy.a-b_.c2ln")
        let posted = try await endpoint(base + "/anything").token(for: "bob")
        #expect(posted == "aGVhZGVy.bob.key")
    }

    @Test(arguments: [
        ("/status/401", ExitCode.registrationRefused, "401"), ("/status/404", .registrationRefused, "404"),
        ("/status/500", .network, "500"), ("/status/503", .network, "503"),
        ("/huge", .dataUnusable, "65536 bytes"), ("/endless", .dataUnusable, "65536 bytes"),
        ("/garbage", .dataUnusable, "token"), ("/page", .dataUnusable, "token"),
        ("/other-json", .dataUnusable, "no JSON object with a token"), ("/empty", .dataUnusable, "there is none"),
        ("/redirect", .configuration, "not followed"), ("/half", .network, "did not answer"),
        ("/nonsense", .network, "did not answer"),
    ])
    func misbehaviourIsNamed(path: String, exit: ExitCode, text: String) async throws {
        let server = try await TokenServer.start()
        defer { withExtendedLifetime(server) {} }
        let found = await failure(endpoint("http://127.0.0.1:\(server.port)\(path)?key=canary&user={user}"))
        let failure = try #require(found)
        #expect(failure.exit == exit, "\(failure)")
        #expect(failure.message.contains(text), "\(failure)")
        #expect(failure.hint != nil)
        #expect(failure.step == "token" || exit == .dataUnusable)
        #expect(!failure.description.contains("canary"), "\(failure)")
    }

    @Test func silenceEndsInTime() async throws {
        let server = try await TokenServer.start()
        defer { withExtendedLifetime(server) {} }
        let url = "http://127.0.0.1:\(server.port)/silent?user={user}"
        let found = await failure(endpoint(url, timeout: .milliseconds(300)))
        #expect(found?.exit == .network)
        #expect(found?.message.contains("timed out") == true, "\(String(describing: found))")
        #expect(found?.hint?.contains("overloaded") == true)
    }

    @Test func nobodyThere() async throws {
        #expect(await failure(endpoint("http://127.0.0.1:1/t"))?.exit == .network)
        #expect(await failure(endpoint("https://no-such-host.invalid/t"))?.message.contains("no-such-host") == true)
        #expect(await failure(endpoint("http://127.0.0.1:1/\u{0A}"))?.exit == .network)
        #expect(await failure(endpoint("ftp://127.0.0.1/t"))?.exit == .network)
    }

    @Test func certificatesAreVerified() async throws {
        try await withScratchDirectory { directory in
            let loop = try EventLoop(name: "openssl")
            defer { loop.stop() }
            func openssl(_ arguments: String...) async throws {
                let run = try await ChildProcess.run(
                    ["openssl"] + arguments, environment: ProcessEnvironment.all, timeout: .seconds(30), on: loop)
                try #require(run.status == .exited(0), "\(String(decoding: run.errorOutput, as: UTF8.self))")
            }
            func certificate(_ name: String, _ subject: String) async throws {
                try await openssl(
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=test", "-addext", "subjectAltName=\(subject)", "-keyout", "\(directory)/\(name).key",
                    "-out", "\(directory)/\(name).pem")
            }
            try await certificate("good", "DNS:localhost,IP:127.0.0.1")
            try await certificate("wrong-name", "DNS:elsewhere.example")
            try await certificate("other", "DNS:localhost")
            func server(_ name: String) async throws -> TokenServer {
                try await TokenServer.start(certificate: "\(directory)/\(name).pem", key: "\(directory)/\(name).key")
            }
            let good = try await server("good")
            let url = "https://localhost:\(good.port)/json?user={user}"
            let secure = try await endpoint(url, caFile: directory + "/good.pem").token(for: "alice")
            #expect(secure == Self.token)
            // An authority that nobody knows, or the wrong one.
            for caFile in [nil, directory + "/other.pem"] {
                let found = await failure(endpoint(url, caFile: caFile))
                #expect(found?.exit == .tls, "\(String(describing: found))")
                #expect(found?.message.contains("self-signed") == true, "\(String(describing: found))")
            }
            #expect(await failure(endpoint(url, caFile: directory + "/none.pem"))?.exit == .tls)
            let wrong = try await server("wrong-name")
            let found = await failure(
                endpoint("https://localhost:\(wrong.port)/json?user={user}", caFile: directory + "/wrong-name.pem"))
            #expect(found?.exit == .tls)
            #expect(found?.message.contains("localhost") == true, "\(String(describing: found))")
            // No TLS where TLS is expected.
            let plain = try await TokenServer.start()
            #expect(await failure(endpoint("https://127.0.0.1:\(plain.port)/json"))?.exit == .tls)
        }
    }
}
