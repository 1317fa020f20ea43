import Glibc
import Primitives
import Security
import Testing

@Suite struct DTLSTests {
    /// Two endpoints, the datagrams between them, and what becomes of those.
    private struct Pair {
        let client: DTLSEndpoint
        let server: DTLSEndpoint
        let clientCertificate: DTLSCertificate
        let serverCertificate: DTLSCertificate
        var sent = 0
        /// How long the endpoints asked to wait, in all.
        var waited = Duration.zero

        init(
            client: [SRTPProfile] = SRTPProfile.preferred, server: [SRTPProfile] = SRTPProfile.preferred
        ) throws {
            clientCertificate = try DTLSCertificate()
            serverCertificate = try DTLSCertificate()
            self.client = DTLSEndpoint(certificate: clientCertificate, profiles: client)
            self.server = DTLSEndpoint(certificate: serverCertificate, profiles: server)
        }

        /// Carries datagrams until both are silent. Those that `isLost` names by their number vanish; timers are
        /// waited for as the endpoints ask, 20 times at most.
        mutating func run(isLost: (Int) -> Bool = { _ in false }) async throws {
            var waits = 0
            while true {
                var isQuiet = true
                for (from, to) in [(client, server), (server, client)] {
                    for datagram in from.takeDatagrams() {
                        isQuiet = false
                        #expect(datagram.count <= 1_200)
                        sent += 1
                        if !isLost(sent) { to.receive(datagram) }
                    }
                }
                guard isQuiet else { continue }
                let timers = [client.timeUntilTimeout, server.timeUntilTimeout].compactMap(\.self)
                guard let next = timers.min(), waits < 20 else { return }
                waits += 1
                waited += next
                // OpenSSL's clock is the machine's: its timer is awaited.
                try await Task.sleep(for: next + .milliseconds(1))
                client.timeout()
                server.timeout()
            }
        }

        func expectSameKeys(_ profile: SRTPProfile? = nil, sourceLocation: SourceLocation = #_sourceLocation) throws {
            let one = try #require(client.keys, "\(client.state)", sourceLocation: sourceLocation)
            let other = try #require(server.keys, "\(server.state)", sourceLocation: sourceLocation)
            #expect(one.local == other.remote && one.remote == other.local, sourceLocation: sourceLocation)
            #expect(one.local != one.remote, sourceLocation: sourceLocation)
            if let profile { #expect(one.local.profile == profile, sourceLocation: sourceLocation) }
        }
    }

    @Test func handshakeGivesBothTheSameKeys() async throws {
        var pair = try Pair()
        pair.client.expect(pair.serverCertificate.fingerprint)
        pair.server.expect(pair.clientCertificate.fingerprint)
        pair.server.start(as: .server)
        pair.client.start(as: .client)
        try await pair.run()
        try pair.expectSameKeys(.aeadAES128GCM)
        let keys = try #require(pair.client.keys)
        let sender = try SRTPSession(.outbound, key: keys.local)
        let receiver = try SRTPSession(.inbound, key: try #require(pair.server.keys).remote)
        let packet: [UInt8] = [0x80, 111, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4, 9, 9, 9]
        #expect(try receiver.unprotect(try sender.protect(packet)) == packet)
    }

    @Test("the first flight before anybody listens is kept, and the fingerprint may come last")
    func early() async throws {
        var pair = try Pair()
        pair.client.start(as: .client)
        for datagram in pair.client.takeDatagrams() { pair.server.receive(datagram) }
        #expect(pair.server.state == .idle)
        pair.server.start(as: .server)
        try await pair.run()
        #expect(pair.client.state == .unverified && pair.server.state == .unverified)
        #expect(pair.client.keys == nil, "no keys before the certificate is known to be right")
        pair.client.expect(pair.serverCertificate.fingerprint)
        pair.server.expect(pair.clientCertificate.fingerprint)
        try pair.expectSameKeys()
    }

    @Test func aStrangersCertificateIsRefused() async throws {
        let stranger = try DTLSCertificate()
        for isEarly in [true, false] {
            var pair = try Pair()
            if isEarly { pair.client.expect(stranger.fingerprint) }
            pair.server.start(as: .server)
            pair.client.start(as: .client)
            try await pair.run()
            if !isEarly { pair.client.expect(stranger.fingerprint) }
            #expect(pair.client.state == .failed(.fingerprintMismatch))
            #expect(pair.client.keys == nil)
        }
    }

    @Test("each datagram of the handshake is lost once", arguments: 1...8)
    func loss(_ number: Int) async throws {
        var pair = try Pair()
        pair.client.expect(pair.serverCertificate.fingerprint)
        pair.server.expect(pair.clientCertificate.fingerprint)
        pair.server.start(as: .server)
        pair.client.start(as: .client)
        try await pair.run { $0 == number }
        try pair.expectSameKeys()
        // 50 ms for the first repetition; a second is OpenSSL's own habit.
        #expect(pair.waited < .milliseconds(900))
    }

    @Test func nobodyAnswers() async throws {
        let endpoint = DTLSEndpoint(certificate: try DTLSCertificate())
        endpoint.start(as: .client)
        var flights = 0
        for _ in 0..<4 {
            flights += endpoint.takeDatagrams().isEmpty ? 0 : 1
            let wait = try #require(endpoint.timeUntilTimeout)
            #expect(wait <= .milliseconds(50 << (flights - 1)))
            try await Task.sleep(for: wait + .milliseconds(1))
            endpoint.timeout()
        }
        #expect(flights == 4)
        #expect(endpoint.state == .handshaking)
    }

    @Test func profilesAreNegotiatedAndNoneInCommonFails() async throws {
        for (client, server, expected) in [
            ([SRTPProfile.aes128CounterModeSHA1_80], SRTPProfile.preferred, SRTPProfile.aes128CounterModeSHA1_80),
            (SRTPProfile.preferred, [.aeadAES256GCM], .aeadAES256GCM),
        ] {
            var pair = try Pair(client: client, server: server)
            pair.client.expect(pair.serverCertificate.fingerprint)
            pair.server.expect(pair.clientCertificate.fingerprint)
            pair.server.start(as: .server)
            pair.client.start(as: .client)
            try await pair.run()
            try pair.expectSameKeys(expected)
        }
        var pair = try Pair(client: [.aeadAES128GCM], server: [.aes128CounterModeSHA1_80])
        pair.server.start(as: .server)
        pair.client.start(as: .client)
        try await pair.run()
        for endpoint in [pair.client, pair.server] {
            guard case .failed = endpoint.state else {
                Issue.record("\(endpoint.state)")
                continue
            }
        }
    }

    @Test func closingIsToldToTheOtherSide() async throws {
        var pair = try Pair()
        pair.client.expect(pair.serverCertificate.fingerprint)
        pair.server.expect(pair.clientCertificate.fingerprint)
        pair.server.start(as: .server)
        pair.client.start(as: .client)
        try await pair.run()
        pair.client.close()
        try await pair.run()
        #expect(pair.server.state == .failed(.closed))
    }

    @Test("nothing a stranger sends ends an association")
    func garbage() async throws {
        var random = RandomSource.seeded(5)
        var pair = try Pair()
        pair.client.expect(pair.serverCertificate.fingerprint)
        pair.server.expect(pair.clientCertificate.fingerprint)
        func disturb() {
            for _ in 0..<200 {
                var bytes = (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
                // Half of it looks like a DTLS record.
                if random.next() % 2 == 0, bytes.count > 13 {
                    let kinds: [UInt8] = [20, 21, 22, 23]
                    bytes.replaceSubrange(0..<3, with: [kinds[Int(random.next() % 4)], 0xFE, 0xFD])
                    bytes.replaceSubrange(11..<13, with: [0, UInt8(clamping: bytes.count - 13)])
                }
                pair.client.receive(bytes)
                pair.server.receive(bytes)
            }
        }
        pair.server.start(as: .server)
        pair.client.start(as: .client)
        try await pair.run()
        disturb()
        try await pair.run()
        #expect(pair.client.state == .connected && pair.server.state == .connected)
    }

    @Test func fingerprintsAreReadAndWritten() throws {
        let own = try DTLSCertificate().fingerprint
        #expect(CertificateFingerprint(attribute: own.description) == own)
        #expect(CertificateFingerprint(attribute: own.description.lowercased()) == own)
        for bad in [
            "", "sha-256", "sha-1 " + own.description.dropFirst(8), "sha-256 AB", own.description + ":00",
            String(own.description.dropLast()), "sha-256 " + String(repeating: "GG:", count: 31) + "GG", "sha-256  ",
        ] {
            #expect(CertificateFingerprint(attribute: String(bad)) == nil, "\(bad)")
        }
        let other = try DTLSCertificate().fingerprint
        #expect(own != other)
    }
}
