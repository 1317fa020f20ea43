import Testing

@testable import Configuration

@Suite struct EnvironmentHostTests {
    @Test(
        arguments: [
            ("sip.example.com", "sip.example.com", nil, nil), ("SIP.Example.com:5061", "sip.example.com", 5061, nil),
            ("h;transport=TLS", "h", nil, .tls), ("10.0.0.5:65535;transport=udp", "10.0.0.5", 65_535, .udp),
            ("[2001:db8::1]", "2001:db8::1", nil, nil), ("[::1]:5060;Transport=ws", "::1", 5060, .ws),
            ("under_score.example", "under_score.example", nil, nil),
        ] as [(String, String, UInt16?, SignallingTransport?)])
    func reads(_ example: (text: String, host: String, port: UInt16?, transport: SignallingTransport?)) throws {
        let host = try EnvironmentHost(parsing: example.text)
        #expect(host == EnvironmentHost(host: example.host, port: example.port, transport: example.transport))
        #expect(try EnvironmentHost(parsing: host.description) == host)
    }

    @Test(arguments: [
        "", ":5060", "h:", "h:0", "h:65536", "h:+1", "h:5060x", "h:1:2", "::1", "[::1", "[::1]x", "[h]", "[::1]:",
        "a b",
        "-a", "a-", "a..b", ".a", "a.", "h;transport", "h;transport=", "h;transport=sctp", "h;lr",
        "h;transport=tls;transport=tls", "h;", "sip:h", "sips:h", "https://h", "user@h", "h/path", "h\r\nX: y",
        "h\u{0}",
        "ünicode.example", "h:５０６０",
    ])
    func refuses(_ text: String) {
        let error = #expect(throws: ConfigurationError.self) { try EnvironmentHost(parsing: text) }
        #expect(error?.code == .invalidValue)
        #expect(error?.hint != nil)
        #expect(error?.message.contains("\n") == false)
    }

    @Test func longNames() throws {
        let label = String(repeating: "a", count: 63)
        _ = try EnvironmentHost(parsing: label)
        #expect(throws: ConfigurationError.self) { try EnvironmentHost(parsing: label + "a") }
        #expect(throws: ConfigurationError.self) {
            try EnvironmentHost(parsing: Array(repeating: label, count: 4).joined(separator: "."))
        }
    }

    @Test(arguments: [
        ("ocra.api.sinch.com", "{region}.sip.sinch.com"), ("OCRA-euc1.api.sinch.com:443", "euc1.sip.sinch.com"),
        ("ocra-apse2.api.sinch.com;transport=tls", "apse2.sip.sinch.com"), ("ocra.example.com", "{region}"),
    ])
    func vendorHostsGetTheSIPRoute(_ example: (text: String, advice: String)) {
        let error = #expect(throws: ConfigurationError.self) { try EnvironmentHost(parsing: example.text) }
        #expect(error?.code == .vendorHost)
        #expect(error?.hint?.contains(example.advice) == true)
        #expect(error?.hint?.contains("digest") == true)
    }

    @Test func ownHostsThatLookSimilar() throws {
        #expect(try EnvironmentHost(parsing: "ocra-test.example.com").host == "ocra-test.example.com")
        #expect(try EnvironmentHost(parsing: "euc1.sip.sinch.com").host == "euc1.sip.sinch.com")
    }

    @Test func loopback() throws {
        for text in ["localhost", "a.localhost", "127.0.0.1", "127.1.2.3", "[::1]:5060"] {
            #expect(try EnvironmentHost(parsing: text).isLoopback, "\(text)")
        }
        for text in ["127.example.com", "localhost.example.com", "10.0.0.1", "[::2]", "notlocalhost"] {
            #expect(try !EnvironmentHost(parsing: text).isLoopback, "\(text)")
        }
    }

    @Test func nearestNames() {
        #expect(nearestName(to: "transprot", among: ["transport", "tokenURL"]) == "transport")
        #expect(nearestName(to: "TokenUrl", among: ["tokenURL", "tokenFile"]) == "tokenURL")
        #expect(nearestName(to: "secret", among: ["applicationSecret"]) == "applicationSecret")
        #expect(nearestName(to: "zzz", among: ["transport"]) == nil)
        #expect(nearestName(to: "", among: ["a", "transport"]) == "a")
        #expect(editDistance(Array("ab".unicodeScalars), Array("ba".unicodeScalars)) == 1)
        #expect(editDistance([], Array("abc".unicodeScalars)) == 3)
        #expect(editDistance(Array("kitten".unicodeScalars), Array("sitting".unicodeScalars)) == 3)
    }
}
