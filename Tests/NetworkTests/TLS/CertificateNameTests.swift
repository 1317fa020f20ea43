import Testing

@testable import Network

@Suite struct CertificateNameTests {
    private func domain(_ text: String) -> CertificateName { CertificateName(kind: .domain, value: Array(text.utf8)) }
    private func uri(_ text: String) -> CertificateName { CertificateName(kind: .uri, value: Array(text.utf8)) }
    private func address(_ bytes: [UInt8]) -> CertificateName { CertificateName(kind: .address, value: bytes) }

    private func isFor(_ name: String, _ rule: TLSNameRule, _ names: [CertificateName]) -> Bool {
        ExpectedServerName(name, rule: rule).matches(names)
    }

    @Test(arguments: [TLSNameRule.sip, .web])
    func aDomainIsComparedWholeAndInAnyCase(_ rule: TLSNameRule) {
        #expect(isFor("example.com", rule, [domain("example.com")]))
        #expect(isFor("EXAMPLE.com", rule, [domain("other.org"), domain("Example.COM")]))
        #expect(isFor("example.com.", rule, [domain("example.com")]))
        #expect(!isFor("sip.example.com", rule, [domain("example.com")]))
        #expect(!isFor("example.com", rule, [domain("sip.example.com")]))
        #expect(!isFor("example.com", rule, [domain("example.com\0.evil.org")]))
        #expect(!isFor("example.com", rule, [domain("example.com.evil.org")]))
        #expect(!isFor("example.com", rule, [domain(".example.com")]))
        #expect(!isFor("example.com", rule, [domain("")]))
        #expect(!isFor("example.com", rule, []))
        #expect(!isFor("", rule, [domain("")]))
        #expect(!isFor(".", rule, [domain("")]))
    }

    @Test func sipHasNoWildcards() {
        for pattern in ["*.example.com", "*", "s*.example.com", "*.com"] {
            #expect(!isFor("sip.example.com", .sip, [domain(pattern)]))
        }
        // Not even when it is asked for.
        #expect(!isFor("sip.example.com", .sip, [uri("sip:*.example.com")]))
    }

    @Test func aWebWildcardIsOneWholeLabel() {
        #expect(isFor("sip.example.com", .web, [domain("*.example.com")]))
        #expect(isFor("sip.example.com", .web, [domain("*.EXAMPLE.com")]))
        #expect(!isFor("a.sip.example.com", .web, [domain("*.example.com")]))
        #expect(!isFor("example.com", .web, [domain("*.example.com")]))
        #expect(!isFor("sip.example.com", .web, [domain("*.*.com")]))
        #expect(!isFor("sip.example.com", .web, [domain("*p.example.com")]))
        #expect(!isFor("sip.example.com", .web, [domain("sip.*.com")]))
        #expect(!isFor("example.com", .web, [domain("*.com")]))
        #expect(!isFor("localhost", .web, [domain("*")]))
        #expect(!isFor(".example.com", .web, [domain("*.example.com")]))
    }

    @Test func sipURIsComeBeforeDomains() {
        #expect(isFor("example.com", .sip, [uri("sip:example.com")]))
        #expect(isFor("example.com", .sip, [uri("SIP:Example.com"), domain("other.org")]))
        // With a SIP identity, DNS names say nothing about SIP (RFC 5922, section 7.1).
        #expect(!isFor("other.org", .sip, [uri("sip:example.com"), domain("other.org")]))
        #expect(isFor("other.org", .web, [uri("sip:example.com"), domain("other.org")]))
        // A user's URI and other schemes are no identity of a domain.
        #expect(!isFor("example.com", .sip, [uri("sip:alice@example.com")]))
        #expect(!isFor("example.com", .sip, [uri("sips:example.com")]))
        #expect(!isFor("example.com", .sip, [uri("https://example.com")]))
        #expect(isFor("example.com", .sip, [uri("sip:alice@example.com"), domain("example.com")]))
        #expect(!isFor("example.com", .web, [uri("sip:example.com")]))
    }

    @Test func addressesAreAmongAddressesOnly() {
        #expect(isFor("192.0.2.1", .sip, [address([192, 0, 2, 1])]))
        #expect(!isFor("192.0.2.1", .sip, [address([192, 0, 2, 2])]))
        #expect(!isFor("192.0.2.1", .sip, [domain("192.0.2.1"), uri("sip:192.0.2.1")]))
        #expect(!isFor("example.com", .sip, [address([192, 0, 2, 1])]))
        let loopback = [UInt8](repeating: 0, count: 15) + [1]
        #expect(isFor("::1", .web, [address(loopback)]))
        #expect(isFor("[::1]", .web, [address(loopback)]))
        #expect(!isFor("::1", .web, [address([0, 0, 0, 1])]))
        #expect(ExpectedServerName("::1", rule: .sip).domain == nil)
        #expect(ExpectedServerName("192.0.2.1", rule: .sip).domain == nil)
        #expect(ExpectedServerName("example.com.", rule: .sip).domain == "example.com")
    }

    @Test func onlyPlainNamesArePrinted() {
        #expect(domain("example.com").printable == "example.com")
        #expect(domain("a\u{1B}[31mb").printable == nil)
        #expect(domain("").printable == nil)
        #expect(domain(String(repeating: "a", count: 300)).printable == nil)
        #expect(address([192, 0, 2, 1]).printable == "192.0.2.1")
        #expect(address([1, 2, 3]).printable == nil)
    }
}
