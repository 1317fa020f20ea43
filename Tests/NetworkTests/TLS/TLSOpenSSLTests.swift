import Glibc
import Primitives
import Testing

@testable import Network
@testable import TestCertificates

/// Against another implementation's server: `openssl s_server`, on its own port of loopback.
private struct OpenSSLServer: Sendable {
    let program: ExternalProgram
    let address: TransportAddress

    init(_ loop: EventLoop, _ files: TLSFiles, _ certificate: TestCertificate, _ options: String...) async throws {
        let command =
            [
                "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
                try files.write(certificate.pem, "s_server.pem"), "-key",
                try files.write(certificate.keyPEM(), "s_server.key"), "-cert_chain",
                try files.write(certificate.chainPEM, "s_server.chain"),
            ] + options
        program = try ExternalProgram(command, loop: loop)
        let line = try await program.line(containing: "ACCEPT 127.0.0.1:")
        address = TransportAddress(host: "127.0.0.1", port: try #require(UInt16(line.split(separator: ":").last ?? "")))
    }
}

extension NetworkTests {
    @Suite struct TLSOpenSSLTests {
        private let files: TLSFiles
        private let authority: TestCertificate
        private let client: TLSClientContext

        init() throws {
            files = try TLSFiles()
            authority = try TestCertificate.authority()
            client = try files.client(trusting: [authority])
        }

        @Test(arguments: ["-tls1_2", "-tls1_3"])
        func bytesFlowBothWays(_ version: String) async throws {
            try await withLoop { loop in
                let server = try await OpenSSLServer(loop, files, authority.issue(), version)
                let events = Inbox<StreamEvent>()
                let stream = try await loop.call { [client] in
                    let stream = TLSStream(
                        client: TCPConnection.connect(loop: loop, to: server.address), context: client,
                        serverName: "example.com")
                    stream.reportStream(to: events)
                    return stream
                }
                #expect(await events.next() == .open)
                let cipher = try #require(try await loop.call { stream.cipher })
                #expect(cipher.hasPrefix(version == "-tls1_2" ? "TLSv1.2 ECDHE-ECDSA-" : "TLSv1.3 TLS_"))
                loop.execute { stream.send(Array("OPTIONS sip:example.com SIP/2.0\r\n".utf8)) }
                _ = try await server.program.line(containing: "OPTIONS sip:example.com SIP/2.0")
                server.program.write("SIP/2.0 200 OK\n")
                #expect(try await events.bytes(15) == Array("SIP/2.0 200 OK\n".utf8))
                // At the end of its input it just closes the socket, as many servers do.
                server.program.endInput()
                #expect(await events.next() == .closed(.tls(.truncated)))
            }
        }

        @Test func ourEndIsOrderlyForTheServer() async throws {
            try await withLoop { loop in
                let server = try await OpenSSLServer(loop, files, authority.issue(), "-naccept", "1")
                let outcome = try await attemptTLS(loop, to: server.address, client)
                #expect(outcome.error == nil)
                // After an end without close_notify it prints an error in the place of this.
                _ = try await server.program.line(containing: "DONE")
                _ = try await server.program.line(containing: "CONNECTION CLOSED")
            }
        }

        @Test func aServerThatDiesIsNoOrderlyEnd() async throws {
            try await withLoop { loop in
                let server = try await OpenSSLServer(loop, files, authority.issue())
                let events = Inbox<StreamEvent>()
                try await loop.call { [client] in
                    TLSStream(
                        client: TCPConnection.connect(loop: loop, to: server.address), context: client,
                        serverName: "example.com"
                    ).reportStream(to: events)
                }
                #expect(await events.next() == .open)
                // When it has read all that we sent; else its end is a reset.
                _ = try await server.program.line(containing: "CIPHER is")
                server.program.signal(SIGKILL)
                #expect(await events.next() == .closed(.tls(.truncated)))
            }
        }

        @Test func aServerThatHangsInTheHandshakeIsGivenUp() async throws {
            try await withLoop { loop in
                let server = try await OpenSSLServer(loop, files, authority.issue())
                // The system still completes TCP's handshake for it.
                server.program.signal(SIGSTOP)
                let outcome = try await attemptTLS(
                    loop, to: server.address, client, handshakeTimeout: .milliseconds(50))
                #expect(outcome.failure == .timedOut)
                server.program.signal(SIGCONT)
            }
        }

        @Test(arguments: ["-tls1", "-tls1_1"])
        func oldVersionsAreRefused(_ version: String) async throws {
            try await withLoop { loop in
                let server = try await OpenSSLServer(
                    loop, files, authority.issue { $0.key = .rsa(bits: 2_048) }, version, "-cipher",
                    "DEFAULT@SECLEVEL=0")
                #expect(try await attemptTLS(loop, to: server.address, client).failure == .protocolVersion)
            }
        }

        @Test func weakKeysAndSignaturesAreRefused() async throws {
            try await withLoop { loop in
                for version in ["-tls1_2", "-tls1_3"] {
                    let key = try await OpenSSLServer(
                        loop, files, authority.issue { $0.key = .rsa(bits: 1_024) }, version, "-cipher",
                        "DEFAULT@SECLEVEL=0")
                    #expect(try await attemptTLS(loop, to: key.address, client).failure == .weakCertificate)
                    let signature = try await OpenSSLServer(
                        loop, files, authority.issue { $0.weakSignature = true }, version, "-cipher",
                        "DEFAULT@SECLEVEL=0")
                    #expect(try await attemptTLS(loop, to: signature.address, client).failure == .weakCertificate)
                }
                // The authority's own key counts as much.
                let weak = try TestCertificate.authority("Weak authority") { $0.key = .rsa(bits: 1_024) }
                let server = try await OpenSSLServer(loop, files, weak.issue(), "-cipher", "DEFAULT@SECLEVEL=0")
                let trusting = try files.client(trusting: [weak])
                #expect(try await attemptTLS(loop, to: server.address, trusting).failure == .weakCertificate)
            }
        }

        @Test(arguments: VerificationCase.all.filter { $0.failure != nil })
        func theFailingCheckIsNamed(_ example: VerificationCase) async throws {
            try await withLoop { loop in
                let certificate = try TestCertificate(example.options, issuer: authority)
                let server = try await OpenSSLServer(loop, files, certificate)
                let outcome = try await attemptTLS(
                    loop, to: server.address, client, serverName: example.serverName, rule: example.rule)
                #expect(outcome.failure == example.failure)
                // The server was told by an alert.
                _ = try await server.program.line(containing: "alert")
            }
        }

        @Test func whoIsNotTrustedIsTold() async throws {
            try await withLoop { loop in
                let own = try await OpenSSLServer(loop, files, TestCertificate(TestCertificateOptions()))
                #expect(try await attemptTLS(loop, to: own.address, client).failure == .selfSigned)
                let stranger = try TestCertificate.authority("Stranger")
                let other = try await OpenSSLServer(loop, files, stranger.issue())
                #expect(try await attemptTLS(loop, to: other.address, client).failure == .unknownAuthority)
            }
        }

        @Test func theDomainIsToldToTheServer() async throws {
            try await withLoop { loop in
                let second = try authority.issue()
                let server = try await OpenSSLServer(
                    loop, files, authority.issue { $0.alternativeNames = "DNS:default.example.org,IP:127.0.0.1" },
                    "-servername", "example.com", "-cert2", files.write(second.pem, "second.pem"), "-key2",
                    files.write(second.keyPEM(), "second.key"))
                #expect(try await attemptTLS(loop, to: server.address, client, serverName: "example.com.").error == nil)
                // An address is never told; the server shows its first certificate.
                #expect(try await attemptTLS(loop, to: server.address, client, serverName: "127.0.0.1").error == nil)
            }
        }

        @Test func aDemandForOurCertificateIsNamed() async throws {
            try await withLoop { loop in
                for version in ["-tls1_2", "-tls1_3"] {
                    let server = try await OpenSSLServer(loop, files, authority.issue(), version, "-Verify", "1")
                    let failures = Inbox<NetworkError>()
                    let events = Inbox<StreamEvent>()
                    try await loop.call { [client] in
                        TLSStream(
                            client: TCPConnection.connect(loop: loop, to: server.address), context: client,
                            serverName: "example.com"
                        ).reportStream(to: events, failures: failures)
                    }
                    // With TLS 1.3 the client is done before the server complains.
                    #expect(await failures.next().code == .tls(.clientCertificateRequired))
                }
            }
        }

        @Test func ourServerServesItsClient() async throws {
            try await withLoop { loop in
                let context = try files.server(authority.issue())
                let server = try await loop.call { try TLSTestServer(loop, context) }
                let trusted = try files.write(authority.pem, "trusted.pem")
                func run(_ options: String...) throws -> ExternalProgram {
                    try ExternalProgram(
                        [
                            "openssl", "s_client", "-connect", "127.0.0.1:\(server.listener.localAddress.port)",
                            "-CAfile",
                            trusted, "-verify_return_error", "-verify_hostname", "example.com", "-nocommands",
                        ] + options, loop: loop)
                }
                for version in ["-tls1_2", "-tls1_3"] {
                    let program = try run(version)
                    _ = try await program.line(containing: "Verify return code: 0 (ok)")
                    #expect(await server.events.next() == .open)
                    program.write("hello\n")
                    #expect(try await server.events.bytes(6) == Array("hello\n".utf8))
                    let accepted = await server.connections.next()
                    loop.execute {
                        accepted.send(Array("welcome\n".utf8))
                        accepted.close()
                    }
                    _ = try await program.line(containing: "welcome")
                    _ = try await program.line(containing: "closed")
                    #expect(await server.events.next() == .closed(nil))
                }
                // A client that says that it goes.
                let program = try run()
                #expect(await server.events.next() == .open)
                program.endInput()
                #expect(await server.events.next() == .closed(nil))
                // It is as strict about versions as our client.
                for version in ["-tls1", "-tls1_1"] {
                    let program = try run(version, "-cipher", "DEFAULT@SECLEVEL=0")
                    _ = try await program.line(containing: "alert protocol version")
                    #expect(await server.events.next() == .closed(.tls(.protocolVersion)))
                }
            }
        }
    }
}
