import Configuration
import Crypto
import Glibc
import Primitives
import SIP
import Testing

/// Who may register with Kamailio, and what it stores.
struct KamailioRegistrationTests {
    /// A token, and the answer that it gets from both environments.
    struct Case: Sendable {
        var name: String
        var status: Int
        var user = "alice"
        var change: @Sendable (inout TokenForge) -> Void

        init(
            _ name: String, _ status: Int, user: String = "alice",
            _ change: @escaping @Sendable (inout TokenForge) -> Void
        ) {
            (self.name, self.status, self.user, self.change) = (name, status, user, change)
        }
    }

    private static func header(_ name: String, _ json: String?, _ status: Int = 401) -> Case {
        Case("header \(name) \(json ?? "missing")", status) { $0.header = [(name, json)] }
    }

    private static func claim(_ name: String, _ json: String?, _ status: Int = 401) -> Case {
        Case("claim \(name) \(json ?? "missing")", status) { $0.claims = [(name, json)] }
    }

    static let cases: [Case] = {
        let now = TokenForge.now
        let foreign = "\"//rtc.sinch.com/applications/\(KamailioNode.otherKey)/users/alice\""
        var cases: [Case] = [
            Case("good", 200) { _ in },
            // Signature and key
            Case("bad signature", 401) { $0.finish = { String($0.dropLast(8)) + "AAAAAAAA" } },
            Case("other secret", 401) { $0.secret = KamailioNode.otherSecret },
            Case("unknown application", 401) { $0.applicationKey = "00000000-0000-4000-8000-000000000000" },
            Case("application in capitals", 200) { $0.applicationKey = $0.applicationKey.uppercased() },
            Case("key of the day before", 401) { $0.keyDay = -1 },
            Case("key of the day after", 401) { $0.keyDay = 1 },
            // Times
            Case("issued yesterday", 200) { $0.issued = -86_400 },
            Case("issued 400 days ago", 200) { $0.issued = -400 * 86_400 },
            Case("expired within the leeway", 200) { ($0.issued, $0.expiry) = (-600, -50) },
            Case("expired", 401) { ($0.issued, $0.expiry) = (-600, -70) },
            Case("valid for a minute", 200) { $0.expiry = 60 },
            Case("valid for less than a minute", 401) { $0.expiry = 59 },
            Case("issued within the leeway ahead", 200) { ($0.issued, $0.expiry) = (50, 700) },
            Case("issued in the future", 401) { ($0.issued, $0.expiry) = (80, 700) },
            claim("exp", "4102444800", 200), claim("exp", "253402300800"), claim("exp", "\"\(now + 600)\""),
            claim("exp", "\(now + 600).5"), claim("exp", "-5"), claim("exp", "null"), claim("exp", "true"),
            claim("nbf", "\(now + 40)", 200), claim("nbf", "\(now + 90)"), claim("nbf", "\"0\""),
            claim("sinch:rtc:instance:exp", "\(now + 172_900)", 200),
            claim("sinch:rtc:instance:exp", "\(now + 172_000)"),
            claim("sinch:rtc:instance:exp", "\"never\""),
            Case("registration limit has passed", 401) {
                ($0.issued, $0.claims) = (-172_900, [("sinch:rtc:instance:exp", "\(now - 10)")])
            },
            // Whose
            Case("another user's", 403) { $0.user = "bob" },
            Case("of a user with another case", 403) { $0.user = "Alice" },
            Case("the user escaped", 200, user: "%61lice") { _ in },
            Case("an odd user", 200, user: "a-b_c=") { $0.user = "a-b_c=" },
            Case("no user", 401) { $0.user = "" },
            Case("a user with a forbidden character", 401) { $0.user = "a@b" },
            claim("sub", foreign), claim("iss", "\"x\""), claim("iss", "5"), claim("sub", "5"),
            // Form
            Case("not a token", 401) { $0.finish = { _ in "rubbish" } },
            Case("two parts", 401) { $0.finish = { String($0[..<($0.lastIndex(of: ".") ?? $0.endIndex)]) } },
            Case("four parts", 401) { $0.finish = { $0 + ".AAAA" } },
            Case("no signature", 401) { $0.finish = { String($0[...($0.lastIndex(of: ".") ?? $0.startIndex)]) } },
            Case("padding", 401) { $0.finish = { $0 + "=" } },
            Case("a claim twice", 401) { $0.rewrite = { $0.dropLast() + ",\"sub\":\"x\"}" } },
            Case("a claim twice, one escaped", 401) { $0.rewrite = { $0.dropLast() + ",\"s\\u0075b\":\"x\"}" } },
            Case("text after the claims", 401) { $0.rewrite = { $0 + "x" } },
            Case("claims in an array", 401) { $0.rewrite = { "[" + $0 + "]" } },
            Case("spaces", 200) { $0.rewrite = { " " + $0.split(separator: ",").joined(separator: " ,\n\t") } },
            Case("escaped slashes", 200) {
                $0.rewrite = { $0.split(separator: "/", omittingEmptySubsequences: false).joined(separator: "\\/") }
            },
            claim("x", "{\"a\":[{}]}", 200), claim("x", "{\"a\":[{\"b\":[]}]}"), claim("x", "[[[[]]]]"),
            claim("aud", "\"x\""), claim("nonce", "\"\""), claim("nonce", "5"),
            header("typ", "\"JWT\"", 200), header("typ", "\"jwt\"", 200), header("typ", "\"at+jwt\""),
            header("typ", "1"),
            header("kid", "\"hkdfv2-20260101\""), header("kid", "\"hkdfv1-2026\""), header("kid", "5"),
        ]
        cases += ["none", "None", "hs256", "HS512", "RS256", ""].map { header("alg", "\"\($0)\"") }
        cases += ["crit", "jku", "jwk", "x5c", "x5u", "zip", "b64"].map { header($0, "\"x\"") }
        cases += ["alg", "kid"].map { header($0, nil) }
        cases += ["iss", "sub", "iat", "exp", "nonce"].map { claim($0, nil) }
        return cases
    }()

    @Test func bothEnvironmentsGiveTheSameVerdictOnTokens() async throws {
        try await Scratch.with { world in
            try await world.must("environment", "start")
            let embedded = try #require(try EnvironmentFile.running(world.runtime + "/environment.json"))
            let address = TransportAddress(host: embedded.host, port: embedded.port)
            try await world.withKamailio(.init(options: ["--max-failures", "10000"])) { node in
                for transport in ["udp", "tcp"] {
                    let here = try await RawPhone("alice", over: transport, at: node)
                    let there = try await RawPhone("alice", over: transport, to: address)
                    for token in Self.cases {
                        var forge = TokenForge(user: "alice")
                        token.change(&forge)
                        let kamailio = try await here.register(
                            [("Authorization", "Bearer " + forge.token())], as: token.user)
                        #expect(kamailio.status == token.status, "Kamailio, \(transport), \(token.name)")
                        let challenge = kamailio.headers["WWW-Authenticate"]
                        #expect((challenge != nil) == (token.status == 401), "\(token.name): \(challenge ?? "none")")
                        // The embedded environment has an application of its own.
                        if forge.applicationKey == KamailioNode.applicationKey {
                            forge.applicationKey = embedded.applicationKey
                        }
                        if forge.applicationKey == KamailioNode.applicationKey.uppercased() {
                            forge.applicationKey = embedded.applicationKey.uppercased()
                        }
                        if forge.secret == KamailioNode.applicationSecret {
                            forge.secret = embedded.applicationSecret.revealed()
                        }
                        let other = try await there.register(
                            [("Authorization", "Bearer " + forge.token())], as: token.user)
                        #expect(other.status == token.status, "embedded, \(transport), \(token.name)")
                    }
                }
                // Neither tokens nor secrets are told to the log.
                #expect(!node.log.contains("eyJ"))
                #expect(!node.log.contains(KamailioNode.applicationSecret))
            }
        }
    }

    @Test func challengesSayWhatIsWanted() async throws {
        try await Scratch.with { world in
            try await world.withKamailio { node in
                let alice = try await RawPhone("alice", at: node)
                let asked = try await alice.register()
                #expect(asked.status == 401)
                // Nothing was presented, so there is no error (RFC 6750 section 3).
                #expect(asked.headers.all("WWW-Authenticate") == [#"Bearer realm="localhost", scope="register""#])
                #expect(asked.headers["Date"] != nil)
                var forge = TokenForge(user: "alice")
                forge.expiry = -100
                forge.issued = -1_000
                let refused = try await alice.register([("Authorization", "Bearer " + forge.token())])
                let challenge = try #require(refused.headers["WWW-Authenticate"])
                #expect(challenge.hasPrefix(#"Bearer realm="localhost", scope="register", error="invalid_token""#))
                #expect(challenge.contains(#"error_description="the token has expired""#))
                let token = TokenForge(user: "alice").token()
                let bearer = ("Authorization", "Bearer " + token)
                #expect(try await alice.register([bearer, bearer]).status == 400)
                #expect(try await alice.register([("Authorization", "Bearer")]).status == 401)
                let digest = ("Authorization", #"Digest username="x", realm="y", nonce="z", uri="sip:x", response="0""#)
                #expect(try await alice.register([digest, ("Authorization", "bEaReR  " + token)]).status == 200)
                #expect(try await alice.register([bearer], domain: "example.com").status == 404)
                var large = TokenForge(user: "alice")
                large.claims = [("x", "\"" + String(repeating: "x", count: 6_200) + "\"")]
                #expect(try await alice.register([("Authorization", "Bearer " + large.token())]).status == 401)
            }
        }
    }

    @Test func guessingIsStopped() async throws {
        try await Scratch.with { world in
            try await world.withKamailio(.init(options: ["--max-failures", "5"])) { node in
                let mallory = try await RawPhone("mallory", at: node)
                var forge = TokenForge(user: "mallory")
                forge.secret = KamailioNode.otherSecret
                var statuses: [Int?] = []
                for _ in 0..<8 {
                    statuses.append(try await mallory.register([("Authorization", "Bearer " + forge.token())]).status)
                }
                #expect(statuses.prefix(5).allSatisfy { $0 == 401 } && statuses.last == 503, "\(statuses)")
                #expect(node.log.contains("guessing: 127.0.0.1"))
            }
        }
    }

    @Test func phonesRegisterWithAPassword() async throws {
        try await Scratch.with { world in
            let ha1 = hexadecimal(md5(Array("desk:localhost:correct-horse".utf8)))
            let settings = KamailioNode.Settings(phones: [
                "# login key user HA1", "desk \(KamailioNode.applicationKey) bob \(ha1)",
            ])
            try await world.withKamailio(settings) { node in
                // Phones read the first challenge only, or give up at one that they do not know.
                let bob = try await RawPhone("bob", at: node)
                let schemes = try await bob.register().headers.all("WWW-Authenticate").map { $0.prefix(6) }
                #expect(schemes == ["Digest", "Bearer"])
                for (user, password, status) in [
                    ("bob", "correct-horse", 200), ("bob", "wrong", 401), ("alice", "correct-horse", 403),
                ] {
                    try writeFile(world.root + "/register.xml", Array(Self.sippScenario(user, status, password).utf8))
                    let run = try await RunningCommand(
                        "/usr/bin/sipp",
                        [
                            "\(node.address):5060", "-sf", world.root + "/register.xml", "-m", "1", "-i", "127.0.0.1",
                            "-au", "desk",
                            "-ap", password, "-nostdin", "-timeout", "5",
                        ],
                        environment: world.environment, directory: world.root, workingDirectory: world.root
                    ).end(within: .seconds(10))
                    #expect(run.exit == 0, "\(user), \(password): \(run.errors) \(run.output.suffix(1_500))")
                }
                // Its user is reached by the users of its application, and by no other.
                let alice = try await RawPhone("alice", at: node)
                try await alice.signIn()
                let call = try await alice.ask(alice.request(.invite, "sip:desk@localhost", body: "v=0\r\n"))
                #expect(call.status == 404, "the login is no user")
                #expect(try await node.control("ul.dump", in: world).contains("bob@" + KamailioNode.applicationKey))
            }
        }
    }

    /// REGISTER, answered by a challenge, repeated with the password, and then `status`.
    private static func sippScenario(_ user: String, _ status: Int, _ password: String) -> String {
        func register(_ sequence: Int, _ more: String) -> String {
            """
            <send retrans="500"><![CDATA[
            REGISTER sip:localhost SIP/2.0
            Via: SIP/2.0/UDP [local_ip]:[local_port];branch=[branch]
            From: <sip:\(user)@localhost>;tag=[call_number]
            To: <sip:\(user)@localhost>
            Call-ID: [call_id]
            CSeq: \(sequence) REGISTER
            Contact: <sip:\(user)@[local_ip]:[local_port]>
            Max-Forwards: 70
            \(more)Expires: 60
            Content-Length: 0

            ]]></send>
            """
        }
        return """
            <?xml version="1.0" encoding="UTF-8"?><scenario name="register">
            \(register(1, ""))
            <recv response="401" auth="true"/>
            \(register(2, "[authentication username=desk password=\(password)]\n"))
            <recv response="\(status)"/>
            </scenario>
            """
    }

    // MARK: What is stored

    @Test func devicesAreKeptByInstance() async throws {
        try await Scratch.with { world in
            try await world.withKamailio(.init(options: ["--max-devices", "3"])) { node in
                let alice = try await RawPhone("alice", at: node)
                let bearer = ("Authorization", "Bearer " + TokenForge(user: "alice").token())
                let outbound = ("Supported", "outbound, path, gruu")
                func device(_ number: Int, port: Int, flow: Int = 1) -> String {
                    "<sip:alice@127.0.0.1:\(port)>;+sip.instance=\"<urn:uuid:00000000-0000-4000-8000-00000000000\(number)>\";reg-id=\(flow)"
                }
                let first = try await alice.register([bearer, outbound], contact: device(1, port: 7_001))
                #expect(first.status == 200 && first.headers.values("Require").contains("outbound"))
                #expect(Int(first.headers["Flow-Timer"] ?? "") ?? 0 > 0)
                let contact = try #require(first.headers["Contact"])
                #expect(contact.contains("pub-gruu=") && contact.contains("temp-gruu=") && contact.contains("reg-id=1"))
                // From another port: the same device.
                #expect(
                    try await alice.register([bearer, outbound], contact: device(1, port: 7_002)).contacts.count == 1)
                // Another flow of it, another device, and one more, for which the oldest makes room.
                #expect(
                    try await alice.register([bearer, outbound], contact: device(1, port: 7_003, flow: 2)).contacts
                        .count == 2)
                #expect(
                    try await alice.register([bearer, outbound], contact: device(2, port: 7_004)).contacts.count == 3)
                let last = try await alice.register([bearer, outbound], contact: device(3, port: 7_005))
                #expect(last.status == 200 && last.contacts.count == 3)
                // Times
                let brief = try await alice.register([bearer], expires: 5)
                #expect(brief.status == 423 && brief.minExpires == 30)
                let ended = try await alice.register([bearer, ("X", "y")], expires: 0, contact: "*")
                #expect(ended.status == 200 && ended.contacts.isEmpty)
                let long = try await alice.register([bearer], expires: 100_000)
                #expect(long.contacts.first?.parameters["expires"] == "3600")
                // A delayed request does not undo a later one.
                var dialog = RawPhone.Dialog()
                dialog.sequence = 5
                #expect(try await alice.register([bearer], dialog: dialog).status == 200)
                dialog.sequence = 3
                let late = try await alice.register([bearer], expires: 0, dialog: dialog)
                #expect((late.status ?? 0) >= 400, "\(late.startLine)")
                #expect(try await node.control("ul.dump", in: world).contains(dialog.callID))
            }
        }
    }

    @Test func bindingRequestsAreAnswered() async throws {
        try await Scratch.with { world in
            try await world.withKamailio { node in
                // The keep-alive of RFC 5626 section 4.4.2, on the port of SIP.
                let alice = try await RawPhone("alice", at: node)
                let identifier = (0..<12).map { UInt8($0) }
                alice.send([0x00, 0x01, 0x00, 0x00, 0x21, 0x12, 0xA4, 0x42] + identifier)
                let answer = try #require(await alice.nextBytes())
                #expect(answer.prefix(2) == [0x01, 0x01] && Array(answer[8..<20]) == identifier)
                // XOR-MAPPED-ADDRESS: the port that it came from.
                let port = alice.local.port ^ 0x2112
                let mapped = [0x00, 0x20, 0x00, 0x08, 0x00, 0x01, UInt8(port >> 8), UInt8(port & 0xFF)] as [UInt8]
                #expect(answer.indices.dropLast(7).contains { Array(answer[$0..<($0 + 8)]) == mapped })
            }
        }
    }

    @Test func lostConnectionsAreForgotten() async throws {
        try await Scratch.with { world in
            try await world.withKamailio { node in
                do {
                    let bob = try await RawPhone("bob", over: "tcp", at: node)
                    try await bob.signIn()
                    #expect(try await node.control("ul.dump", in: world).contains("bob@"))
                }
                let alice = try await RawPhone("alice", at: node)
                try await alice.signIn()
                // At once, since no connection is opened to a client.
                let call = try await alice.ask(alice.request(.invite, "sip:bob@localhost", body: "v=0\r\n"))
                #expect(call.status == 480, "\(call.startLine)")
            }
        }
    }
}
