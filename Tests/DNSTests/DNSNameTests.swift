import DNS
import Testing

@Suite struct DNSNameTests {
    @Test(arguments: ["a", "example.com", "example.com.", "_sips._tcp.example.com", "1.2.3", "xn--bcher-kva.example"])
    func namesThatCanBeAskedFor(_ name: String) {
        #expect(DNSName.isValid(name))
    }

    @Test(arguments: [
        "", ".", "..", ".a", "a..b", "a b", "a\0b", "bücher.example", "a/b", "a\\.b", "a@b", "*.example.com",
        String(repeating: "a", count: 64) + ".com",
        [String](repeating: String(repeating: "a", count: 50), count: 6).joined(separator: "."),
    ])
    func otherNames(_ name: String) {
        #expect(!DNSName.isValid(name))
        #expect(!DNSQuestion(name, .a).hasValidName)
    }

    @Test func namesAreComparedWithoutCase() {
        #expect(DNSQuestion("SIP.Example.COM", .srv) == DNSQuestion("sip.example.com", .srv))
        #expect("\(DNSQuestion("_SIP._udp.Example.com", .naptr))" == "NAPTR _sip._udp.example.com")
    }

    @Test func theHostOfAService() {
        #expect(DNSName.host(ofService: "_sip._udp.example.com.") == "example.com")
        #expect(DNSName.host(ofService: "example.com") == "example.com")
        #expect(DNSName.host(ofService: "_sip") == "_sip")
    }

    @Test func namesOfThisMachineAndOfNobody() {
        for name in ["localhost", "LOCALHOST.", "a.b.localhost"] { #expect(DNSName.isLocalhost(name)) }
        for name in ["localhost.example", "notlocalhost", ""] { #expect(!DNSName.isLocalhost(name)) }
        #expect(DNSName.isNeverFound("sip.invalid") && !DNSName.isNeverFound("invalid.example"))
    }
}
