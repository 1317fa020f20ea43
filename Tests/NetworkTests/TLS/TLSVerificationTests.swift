import Primitives
import Testing

@testable import Network
@testable import TestCertificates

/// What a client does with the certificate it is shown.
struct VerificationCase: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var options: TestCertificateOptions
    var serverName = "example.com"
    var rule = TLSNameRule.sip
    /// Nil: the stream opens.
    var failure: TLSFailure?

    init(
        _ description: String, _ failure: TLSFailure?, serverName: String = "example.com", rule: TLSNameRule = .sip,
        _ change: (inout TestCertificateOptions) -> Void
    ) {
        testDescription = description
        self.failure = failure
        self.serverName = serverName
        self.rule = rule
        options = TestCertificateOptions(change)
    }

    static func wrongName(_ expected: String, _ presented: String...) -> TLSFailure {
        .nameMismatch(expected: expected, presented: presented)
    }

    static let all = [
        VerificationCase("good", nil) { _ in },
        VerificationCase("good, RSA", nil) { $0.key = .rsa(bits: 2_048) },
        VerificationCase("good for every use", nil) { $0.extendedKeyUsage = nil },
        VerificationCase("expired", .expired) { $0.validity = -7_200 ... -3_600 },
        VerificationCase("not valid yet", .notYetValid) { $0.validity = 3_600...7_200 },
        VerificationCase("for another domain", wrongName("example.com", "example.org", "sip:example.net")) {
            $0.alternativeNames = "DNS:example.org,URI:sip:example.net"
        },
        VerificationCase("the name is in the common name only", wrongName("example.com")) {
            $0.commonName = "example.com"
            $0.alternativeNames = nil
        },
        VerificationCase("another name beside the right common name", wrongName("example.com", "example.org")) {
            $0.commonName = "example.com"
            $0.alternativeNames = "DNS:example.org"
        },
        VerificationCase("a domain for an address", wrongName("127.0.0.1", "example.com"), serverName: "127.0.0.1") {
            _ in
        },
        VerificationCase("an address for a domain", wrongName("example.com", "127.0.0.1")) {
            $0.alternativeNames = "IP:127.0.0.1"
        },
        VerificationCase("an address", nil, serverName: "127.0.0.1") { $0.alternativeNames = "IP:127.0.0.1" },
        VerificationCase("an IPv6 address", nil, serverName: "::1") { $0.alternativeNames = "IP:::1" },
        VerificationCase("a SIP URI", nil) { $0.alternativeNames = "URI:sip:example.com" },
        VerificationCase(
            "a wildcard, for SIP", wrongName("sip.example.com", "*.example.com"), serverName: "sip.example.com"
        ) { $0.alternativeNames = "DNS:*.example.com" },
        VerificationCase("a wildcard, for WebSocket", nil, serverName: "sip.example.com", rule: .web) {
            $0.alternativeNames = "DNS:*.example.com"
        },
        VerificationCase(
            "a wildcard two levels up", wrongName("a.b.example.com", "*.example.com"), serverName: "a.b.example.com",
            rule: .web
        ) { $0.alternativeNames = "DNS:*.example.com" },
        VerificationCase("a client's certificate", .wrongUsage) { $0.extendedKeyUsage = "clientAuth" },
        VerificationCase(
            "many hostile names", wrongName("example.com", "a0", "an unprintable name", "a2", "a3", "a4", "35 more")
        ) {
            $0.alternativeNames = (0..<40).map { $0 == 1 ? "DNS:\u{1B}[2J" : "DNS:a\($0)" }.joined(separator: ",")
        },
    ]
}

extension NetworkTests {
    @Suite struct TLSVerificationTests {
        @Test(arguments: VerificationCase.all)
        func theFailingCheckIsNamed(_ example: VerificationCase) async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let authority = try TestCertificate.authority()
                let context = try files.server(TestCertificate(example.options, issuer: authority))
                let server = try await loop.call { try TLSTestServer(loop, context) }
                let outcome = try await attemptTLS(
                    loop, to: server.listener.localAddress, files.client(trusting: [authority]),
                    serverName: example.serverName, rule: example.rule)
                #expect(outcome.failure == example.failure)
                if example.failure == nil {
                    #expect(outcome.error == nil)
                    #expect(outcome.cipher?.hasPrefix("TLSv1.3 TLS_") == true)
                    #expect(await server.events.next() == .open)
                } else {
                    #expect(outcome.error?.message.hasPrefix("TLS with \(example.serverName): ") == true)
                    // The server learns of it within the handshake, and never sees the stream open.
                    guard case .closed(.tls) = await server.events.next() else {
                        Issue.record("the server was not refused")
                        return
                    }
                }
            }
        }

        @Test func theDatesAreInTheMessage() async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let authority = try TestCertificate.authority()
                let context = try files.server(authority.issue { $0.validity = -86_400 * 800 ... -86_400 * 365 })
                let server = try await loop.call { try TLSTestServer(loop, context) }
                let outcome = try await attemptTLS(
                    loop, to: server.listener.localAddress, files.client(trusting: [authority]))
                let message = try #require(outcome.error?.message)
                #expect(message.contains(/\(valid until 20\d\d-\d\d-\d\d \d\d:\d\d UTC\)/))
            }
        }

        @Test func whoVouchesForItselfIsTrustedWhenNamed() async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let certificate = try TestCertificate(TestCertificateOptions())
                let context = try files.server(certificate)
                let server = try await loop.call { try TLSTestServer(loop, context) }
                let address = server.listener.localAddress
                #expect(try await attemptTLS(loop, to: address, files.client(trusting: [])).failure == .selfSigned)
                #expect(try await attemptTLS(loop, to: address, files.client(trusting: [certificate])).error == nil)
                // Trust in the certificate is none in any name.
                let other = try await attemptTLS(
                    loop, to: address, files.client(trusting: [certificate]), serverName: "example.org")
                #expect(other.failure == .nameMismatch(expected: "example.org", presented: ["example.com"]))
            }
        }

        @Test func authoritiesAreTrustedAsFarAsTheyAreKnown() async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let root = try TestCertificate.authority("Root")
                let middle = try TestCertificate.authority("Middle", issuer: root)
                let stranger = try TestCertificate.authority("Root")
                let certificate = try middle.issue()
                let complete = try files.server(certificate)
                let incomplete = try TLSServerContext(
                    certificateFile: files.write(certificate.pem, "alone.pem"),
                    keyFile: files.write(certificate.keyPEM(), "alone.key"))
                let server = try await loop.call { try TLSTestServer(loop, complete) }
                let address = server.listener.localAddress
                func failure(_ trusted: TestCertificate...) async throws -> TLSFailure? {
                    let outcome = try await attemptTLS(loop, to: address, files.client(trusting: trusted))
                    if let error = outcome.error, outcome.failure == nil { throw error }
                    return outcome.failure
                }
                #expect(try await failure(root) == nil)
                #expect(try await failure(middle) == nil)
                #expect(try await failure() == .unknownAuthority)
                // The same name does not make the same authority.
                #expect(try await failure(stranger) != nil)
                server.use(incomplete)
                #expect(try await failure(root) == .unknownAuthority)
                #expect(try await failure(middle) == nil)
            }
        }

        @Test func whatAnAuthorityMayNotDoIsRefused() async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let root = try TestCertificate.authority("Root")
                // A server's certificate signs another: the classic mistake of verifiers.
                let server = try root.issue { $0.alternativeNames = "DNS:evil.org" }
                let forged = try TestCertificate(TestCertificateOptions { $0.commonName = "Forged" }, issuer: server)
                let expired = try TestCertificate.authority("Old", issuer: root) { $0.validity = -7_200 ... -3_600 }
                let listener = try await loop.call { [context = try files.server(forged)] in
                    try TLSTestServer(loop, context)
                }
                let address = listener.listener.localAddress
                let client = try files.client(trusting: [root])
                #expect(try await attemptTLS(loop, to: address, client).failure == .wrongUsage)
                listener.use(try files.server(expired.issue()))
                let outcome = try await attemptTLS(loop, to: address, client)
                #expect(outcome.failure == .expired)
                #expect(outcome.error?.message.contains("an authority's certificate in the chain valid until") == true)
            }
        }

        @Test func revokedCertificatesAreRefused() async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let authority = try TestCertificate.authority()
                let other = try TestCertificate.authority("Authority without a list")
                let (good, bad) = (try authority.issue(), try authority.issue())
                let list = try authority.revocationList([bad])
                let client = try TLSClientContext(
                    caFile: files.write(authority.pem + other.pem + list, "with-list.pem"))
                let server = try await loop.call { [context = try files.server(good)] in
                    try TLSTestServer(loop, context)
                }
                let address = server.listener.localAddress
                #expect(try await attemptTLS(loop, to: address, client).error == nil)
                server.use(try files.server(bad))
                #expect(try await attemptTLS(loop, to: address, client).failure == .revoked)
                server.use(try files.server(other.issue()))
                #expect(try await attemptTLS(loop, to: address, client).error == nil)
            }
        }

        @Test func aCertificateIsCheckedAtEveryConnection() async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let authority = try TestCertificate.authority()
                let client = try files.client(trusting: [authority])
                let server = try await loop.call { [context = try files.server(authority.issue())] in
                    try TLSTestServer(loop, context)
                }
                let address = server.listener.localAddress
                #expect(try await attemptTLS(loop, to: address, client).error == nil)
                server.use(try files.server(authority.issue { $0.alternativeNames = "DNS:example.org" }))
                #expect(
                    try await attemptTLS(loop, to: address, client).failure
                        == .nameMismatch(expected: "example.com", presented: ["example.org"]))
                server.use(try files.server(TestCertificate(TestCertificateOptions())))
                #expect(try await attemptTLS(loop, to: address, client).failure == .selfSigned)
            }
        }

        @Test func filesThatCannotBeUsedAreNamed() throws {
            let files = try TLSFiles()
            let authority = try TestCertificate.authority()
            let (one, two) = (try authority.issue(), try authority.issue())
            let certificate = try files.write(one.pem, "one.pem")
            let key = try files.write(one.keyPEM(), "one.key")
            let empty = try files.write("", "empty.pem")
            func message(_ body: () throws -> Void) throws -> String {
                let error = try #require(throws: NetworkError.self) { try body() }
                #expect(error.code == .tls(.unusableFile))
                return error.message
            }
            #expect(
                try message { _ = try TLSClientContext(caFile: "/nonexistent/ca.pem") }
                    == "cannot use the CA file /nonexistent/ca.pem: No such file or directory")
            #expect(try message { _ = try TLSClientContext(caFile: empty) }.contains(empty))
            #expect(try message { _ = try TLSClientContext(caFile: key) }.contains(key))
            #expect(try message { _ = try TLSServerContext(certificateFile: empty, keyFile: key) }.contains(empty))
            #expect(
                try message { _ = try TLSServerContext(certificateFile: certificate, keyFile: empty) }.contains(empty))
            let foreign = try files.write(two.keyPEM(), "two.key")
            #expect(
                try message { _ = try TLSServerContext(certificateFile: certificate, keyFile: foreign) }
                    == "cannot use the key file \(foreign): it does not belong to the certificate")
            // No question for a password on the terminal.
            let locked = try files.write(one.keyPEM(password: "secret"), "locked.key")
            let words = try message { _ = try TLSServerContext(certificateFile: certificate, keyFile: locked) }
            #expect(words.contains(locked) && !words.contains("secret"))
        }
    }
}
