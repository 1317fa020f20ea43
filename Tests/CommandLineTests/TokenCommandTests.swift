import Configuration
import Glibc
import Testing

@testable import CommandLineInterface

/// The key and secret of the published examples; `published` is the token of the vendor's guide for them.
private let profile = """
    {profiles: {default: {
        applicationKey: "a32e5a8d-f7d8-411c-9645-9038e8dd051d", applicationSecret: "ax8hTTQJF0OPXL32r1LHMA==",
    }}}
    """
private let published =
    "eyJhbGciOiJIUzI1NiIsImtpZCI6ImhrZGZ2MS0yMDE4MDEwMiJ9."
    + "eyJpc3MiOiIvL3J0Yy5zaW5jaC5jb20vYXBwbGljYXRpb25zL2EzMmU1YThkLWY3ZDgtNDExYy05NjQ1LTkwMzhlOGRkMDUxZCIsInN1YiI6"
    + "Ii8vcnRjLnNpbmNoLmNvbS9hcHBsaWNhdGlvbnMvYTMyZTVhOGQtZjdkOC00MTFjLTk2NDUtOTAzOGU4ZGQwNTFkL3VzZXJzL2ZvbyIsImlh"
    + "dCI6MTUxNDg2MjI0NSwiZXhwIjoxNTE0ODYyODQ1LCJub25jZSI6IjZiNDM4YmRhLTJkNWMtNGU4Yy05MmIwLTM5ZjIwYTk0YjM0ZSJ9."
    + "EUltTTD4fxhkwCgLgj6qSQXKawpwQ952Ywm3OwQSARo"

@Suite struct TokenCommands {
    private let scratch: Scratch
    private let environment: [String: String]

    init() throws {
        scratch = try Scratch()
        environment = ["SINCHCTL_CONFIG": scratch.write(profile, to: "config.json"), "HOME": scratch.path]
    }

    @Test func signedTokenVerifies() async {
        let signed = await run("jwt", "sign", "--user", "foo", "--instance-ttl", "48h", environment: environment)
        #expect(signed.code == .ok)
        #expect(signed.output.split(separator: ".").count == 3)
        let input = pipe(holding: signed.output)
        let verified = await run("jwt", "verify", environment: environment, json: true, standardInput: input)
        close(input)
        #expect(verified.code == .ok)
        #expect(verified.output.contains(#""isExpired":false"#))
        #expect(verified.output.contains(#""signature":"valid","userId":"foo""#))
        #expect(!verified.output.contains(#""registrationLimit":null"#))
    }

    @Test func everyWayToGiveAToken() async {
        let file = scratch.write("  \(published)\n", to: "t.jwt")
        let descriptor = open(file, O_RDONLY)
        defer { close(descriptor) }
        for arguments in [
            [published], ["--token-file", file], ["--token-fd", "\(descriptor)"], ["--token-file", "-"], ["-"], [],
        ] {
            let input = pipe(holding: published)
            let capture = Capture()
            let invocation = Invocation(
                arguments: ["jwt", "inspect"] + arguments, environment: [:], handlers: .all,
                output: capture.makeOutput(), standardInput: input)
            close(input)
            guard case .finished(.ok) = invocation else {
                Issue.record("\(arguments): \(capture.error)")
                continue
            }
            #expect(capture.output.hasPrefix("user          foo\n"))
            #expect(capture.output.contains("issued        2018-01-02T03:04:05Z, "))
            #expect(capture.output.hasSuffix("signature     not checked\n"))
        }
    }

    @Test func expiredTamperedAndMissingTokens() async {
        let expired = await run("jwt", "verify", published, environment: environment)
        #expect(expired.code == .dataUnusable)
        #expect(expired.error.contains("expired"))
        let tampered = await run("jwt", "verify", published + "x", environment: environment)
        #expect(tampered.code == .dataUnusable)
        #expect(await run("jwt", "inspect", "a.b").code == .dataUnusable)
        #expect(await run("jwt", "inspect", "--token-file", "\(scratch.path)/none").code == .inputMissing)
        #expect(await run("jwt", "inspect", "--token-file", scratch.path).code == .ioError)
        #expect(await run("jwt", "inspect", "--token-fd", "65000").code == .ioError)
        #expect(await run("jwt", "inspect", published, "--token-fd", "0").code == .usage)
        let empty = pipe(holding: " \n")
        #expect(await run("jwt", "inspect", standardInput: empty).code == .dataUnusable)
        close(empty)
        let huge = scratch.write(String(repeating: "a", count: 1 << 20), to: "huge")
        #expect(await run("jwt", "inspect", "--token-file", huge).code == .dataUnusable)
    }

    @Test func signingNeedsAKeyAndAUser() async throws {
        let none = ["SINCHCTL_CONFIG": "/dev/null", "HOME": scratch.path]
        let result = await run("jwt", "sign", "--user", "foo", environment: none)
        #expect(result.code == .configuration)
        #expect(result.error.hasPrefix("sinchctl: jwt sign: the profile 'default' has no applicationKey; add it"))
        #expect(await run("jwt", "sign", "--user", "f/o", environment: environment).code == .usage)
        #expect(await run("jwt", "sign", environment: environment).code == .usage)
        #expect(await run("jwt", "verify", published, environment: none).code == .configuration)
    }

    @Test func secretsAreNotPrinted() async {
        for arguments in [["config", "show"], ["config", "check", "--json"], ["jwt", "inspect", published]] {
            let capture = Capture()
            _ = Invocation(
                arguments: arguments, environment: environment, handlers: .all, output: capture.makeOutput())
            #expect(!capture.output.isEmpty)
            #expect(!(capture.output + capture.error).contains("ax8hTTQJ"))
        }
    }
}
