import DNS
import Primitives
import Testing

@testable import SIP

/// A domain's records, what is to be reached, and where that leads.
struct LocationCase: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var target: ServerTarget
    var zone: [String]
    var expected: [String]

    init(_ name: String, _ target: ServerTarget, _ zone: [String], _ expected: [String]) {
        testDescription = name
        self.target = target
        self.zone = zone
        self.expected = expected
    }
}

@Suite struct ServerLocatorTests {
    private static let domain = ServerTarget(host: "example.com")
    private static let secure = ServerTarget(host: "example.com", isSecure: true)
    private static let hosts = [
        "example.com A 192.0.2.1", "sip1.example.com A 192.0.2.11", "sip2.example.com A 192.0.2.12",
        "sip3.example.com A 192.0.2.13",
    ]
    private static let services = [
        "_sips._tcp.example.com SRV 10 1 5061 sip1.example.com.",
        "_sip._tcp.example.com SRV 10 1 5070 sip2.example.com.",
        "_sip._udp.example.com SRV 10 1 5080 sip3.example.com.",
    ]
    private static let rules = [
        "example.com NAPTR 50 10 s SIP+D2U _sip._udp.example.com.",
        "example.com NAPTR 60 10 s SIPS+D2T _sips._tcp.example.com.",
        "example.com NAPTR 60 5 s SIP+D2T _sip._tcp.example.com.",
    ]

    static let cases: [LocationCase] = [
        // RFC 3263, 4.1: NAPTR decides, by order, then by preference.
        .init(
            "NAPTR order", domain, hosts + services + rules,
            ["udp 192.0.2.13:5080", "tcp 192.0.2.12:5070", "tls 192.0.2.11:5061"]),
        .init(
            "NAPTR to names elsewhere", domain,
            [
                "example.com NAPTR 10 10 s SIPS+D2T srv.provider.net.", "srv.provider.net SRV 1 1 5099 a.provider.net.",
                "a.provider.net A 198.51.100.1",
            ], ["tls 198.51.100.1:5099"]),
        .init(
            "NAPTR with flag a", domain, hosts + ["example.com NAPTR 10 10 a SIPS+D2T sip1.example.com."],
            ["tls 192.0.2.11:5061"]),
        .init(
            "NAPTR in capitals", domain,
            hosts + services + ["example.com NAPTR 1 1 s sIpS+d2T _sips._tcp.example.com."],
            ["tls 192.0.2.11:5061"]),
        .init(
            "NAPTR of other services only", domain,
            hosts + services + [
                "example.com NAPTR 1 1 u E2U+sip example.com.",
                "example.com NAPTR 1 1 s SIP+D2S _sip._sctp.example.com.",
            ], ["tls 192.0.2.11:5061", "tcp 192.0.2.12:5070", "udp 192.0.2.13:5080"]),
        .init(
            "NAPTR whose SRV does not exist", domain,
            hosts + ["example.com NAPTR 10 10 s SIP+D2U _sip._udp.example.com."], ["tls 192.0.2.1:5061"]),
        .init(
            "NAPTR fails, SRV does not", domain, hosts + services + ["example.com NAPTR !failed"],
            ["tls 192.0.2.11:5061", "tcp 192.0.2.12:5070", "udp 192.0.2.13:5080"]),
        .init(
            "NAPTR is never answered", domain, hosts + services + ["example.com NAPTR !timedOut"],
            ["tls 192.0.2.11:5061", "tcp 192.0.2.12:5070", "udp 192.0.2.13:5080"]),
        .init(
            "websocket only where wanted", domain,
            hosts + services + ["example.com NAPTR 1 1 s SIPS+D2W _sips._ws.example.com."],
            ["tls 192.0.2.11:5061", "tcp 192.0.2.12:5070", "udp 192.0.2.13:5080"]),
        .init(
            "websocket by NAPTR", ServerTarget(host: "example.com", transports: [.tls, .wss, .ws]),
            hosts + [
                "example.com NAPTR 2 1 s SIP+D2W _sip._ws.example.com.",
                "example.com NAPTR 1 1 s SIPS+D2W _sips._ws.example.com.",
                "_sips._ws.example.com SRV 1 1 8443 sip1.example.com.",
                "_sip._ws.example.com SRV 1 1 8080 sip2.example.com.",
            ], ["wss 192.0.2.11:8443", "ws 192.0.2.12:8080"]),
        // RFC 3263, 4.1: without NAPTR, SRV of each transport in the order of preference.
        .init(
            "SRV without NAPTR", domain, hosts + services,
            ["tls 192.0.2.11:5061", "tcp 192.0.2.12:5070", "udp 192.0.2.13:5080"]),
        .init(
            "SRV in another order of preference", ServerTarget(host: "example.com", transports: [.udp, .tls]),
            hosts + services, ["udp 192.0.2.13:5080", "tls 192.0.2.11:5061"]),
        .init(
            "SRV for UDP only", domain, hosts + ["_sip._udp.example.com SRV 1 1 5060 sip1.example.com."],
            ["udp 192.0.2.11:5060"]),
        .init(
            "SRV by priority", ServerTarget(host: "example.com", transport: .tls),
            hosts + [
                "_sips._tcp.example.com SRV 30 9 5061 sip3.example.com.",
                "_sips._tcp.example.com SRV 10 0 5061 sip1.example.com.",
                "_sips._tcp.example.com SRV 20 7 5061 sip2.example.com.",
            ], ["tls 192.0.2.11:5061", "tls 192.0.2.12:5061", "tls 192.0.2.13:5061"]),
        .init(
            "one server on two ports", ServerTarget(host: "example.com", transport: .tcp),
            hosts + [
                "_sip._tcp.example.com SRV 1 1 5060 sip1.example.com.",
                "_sip._tcp.example.com SRV 2 1 5062 sip1.example.com.",
                "_sip._tcp.example.com SRV 3 1 5060 sip1.example.com.",
            ], ["tcp 192.0.2.11:5060", "tcp 192.0.2.11:5062"]),
        .init(
            "a server without address is skipped", ServerTarget(host: "example.com", transport: .tcp),
            hosts + [
                "_sip._tcp.example.com SRV 1 1 5060 gone.example.com.",
                "_sip._tcp.example.com SRV 2 1 5060 sip2.example.com.",
            ], ["tcp 192.0.2.12:5060"]),
        .init(
            "a numeric target, against the rules", ServerTarget(host: "example.com", transport: .udp),
            ["_sip._udp.example.com SRV 1 1 5066 198.51.100.7."], ["udp 198.51.100.7:5066"]),
        .init(
            "a transport that is not offered is left out", domain,
            hosts + ["_sips._tcp.example.com SRV 0 0 0 ."] + services.suffix(2),
            ["tcp 192.0.2.12:5070", "udp 192.0.2.13:5080"]),
        // Without either: the host itself, over the transport that is wanted most.
        .init("addresses only", domain, hosts, ["tls 192.0.2.1:5061"]),
        .init(
            "addresses only, when SRV fails", domain, hosts + ["_sips._tcp.example.com SRV !failed"],
            ["tls 192.0.2.1:5061"]),
        .init(
            "addresses only, of both families", domain,
            ["example.com A 192.0.2.1", "example.com A 192.0.2.2", "example.com AAAA 2001:db8::1"],
            ["tls [2001:db8::1]:5061", "tls 192.0.2.1:5061", "tls 192.0.2.2:5061"]),
        // RFC 3263, 4.2: what is settled already.
        .init(
            "a port", ServerTarget(host: "example.com", port: 5070), hosts + services + rules, ["tls 192.0.2.1:5070"]),
        .init(
            "a port and a transport", ServerTarget(host: "example.com", port: 5070, transport: .udp),
            hosts + services + rules, ["udp 192.0.2.1:5070"]),
        .init(
            "a transport", ServerTarget(host: "example.com", transport: .tcp), hosts + services + rules,
            ["tcp 192.0.2.12:5070"]),
        .init(
            "a transport without SRV", ServerTarget(host: "example.com", transport: .udp), hosts,
            ["udp 192.0.2.1:5060"]),
        .init("wss without SRV", ServerTarget(host: "example.com", transport: .wss), hosts, ["wss 192.0.2.1:443"]),
        .init("ws without SRV", ServerTarget(host: "example.com", transport: .ws), hosts, ["ws 192.0.2.1:80"]),
        .init("an IPv4 address", ServerTarget(host: "192.0.2.9"), [], ["tls 192.0.2.9:5061"]),
        .init(
            "an IPv4 address and a transport", ServerTarget(host: "192.0.2.9", transport: .udp), [],
            ["udp 192.0.2.9:5060"]),
        .init("an IPv6 address", ServerTarget(host: "[2001:db8::9]", port: 7), [], ["tls [2001:db8::9]:7"]),
        .init("an IPv6 address without brackets", ServerTarget(host: "2001:db8::9"), [], ["tls [2001:db8::9]:5061"]),
        .init(
            "a link-local address", ServerTarget(host: "fe80::1%eth0", transport: .tcp), [],
            ["tcp [fe80::1%eth0]:5060"]),
        // Nothing leads from TLS to anything less.
        .init("sips by NAPTR", secure, hosts + services + rules, ["tls 192.0.2.11:5061"]),
        .init("sips by SRV", secure, hosts + services, ["tls 192.0.2.11:5061"]),
        .init("sips by addresses", secure, hosts + services.suffix(2), ["tls 192.0.2.1:5061"]),
        .init(
            "sips, NAPTR without TLS", secure, hosts + services.suffix(2) + rules.prefix(1), ["tls 192.0.2.1:5061"]),
        .init(
            "sips over TCP is TLS", ServerTarget(host: "example.com", transport: .tcp, isSecure: true),
            hosts + services, ["tls 192.0.2.11:5061"]),
        .init(
            "sips over WebSocket is wss", ServerTarget(host: "example.com", transport: .ws, isSecure: true), hosts,
            ["wss 192.0.2.1:443"]),
        .init(
            "sips at an address", ServerTarget(host: "127.0.0.1", transport: .tcp, isSecure: true), [],
            ["tls 127.0.0.1:5061"]),
    ]

    @Test(arguments: cases)
    func whereItLeads(_ one: LocationCase) {
        let zone = Zone(one.zone)
        let search = Search(one.target, zone)
        #expect(search.places == one.expected, "\(search.end) \(search.message)")
        #expect(search.candidates.allSatisfy { $0.domain == one.target.host })
        // In whatever order the answers come.
        #expect(Search(one.target, zone, isReversed: true).places == one.expected)
        #expect(Set(search.questions).count == search.questions.count, "asked twice")
    }

    @Test(
        arguments: [
            ("nowhere", domain, [], .nameNotFound),
            ("no address", domain, ["example.com A !noData"], .nameNotFound),
            (
                "servers without addresses", domain, ["_sips._tcp.example.com SRV 1 1 1 gone.example.com."],
                .nameNotFound
            ),
            ("not offered", domain, hosts + ["_sip._udp.example.com SRV 0 0 0 ."], .serviceNotOffered),
            (
                "nobody answers", domain,
                ["example.com NAPTR !timedOut"]
                    + ["_sips._tcp", "_sip._tcp", "_sip._udp"].map { "\($0).example.com SRV !timedOut" },
                .nameServerFailed
            ),
            ("addresses fail", domain, ["example.com A !failed", "example.com AAAA !noData"], .nameServerFailed),
            (
                "sips over UDP", ServerTarget(host: "example.com", transport: .udp, isSecure: true), hosts,
                .invalidTarget
            ),
            ("no transport", ServerTarget(host: "example.com", transports: []), hosts, .invalidTarget),
            ("no name", ServerTarget(host: "exa mple.com"), hosts, .invalidTarget),
            ("empty", ServerTarget(host: ""), hosts, .invalidTarget),
            ("bad bytes", ServerTarget(host: "b\u{fc}cher.example", port: 1), hosts, .invalidTarget),
        ] as [(String, ServerTarget, [String], ServerLocationFailure.Kind)])
    func nowhere(_ name: String, _ target: ServerTarget, _ zone: [String], _ kind: ServerLocationFailure.Kind) {
        let search = Search(target, Zone(zone))
        #expect(search.end == .failed(kind), "\(name)")
        #expect(search.message.contains(";"), "says what to do: \(search.message)")
    }

    @Test func theConfiguredDomainIsWhoseCertificateIsExpected() {
        let target = ServerTarget(host: "proxy.example.net", domain: "example.com")
        let search = Search(
            target,
            Zone([
                "_sips._tcp.proxy.example.net SRV 1 1 5061 a.elsewhere.example.", "a.elsewhere.example A 192.0.2.1",
            ]))
        #expect(search.candidates.map(\.domain) == ["example.com"])
        #expect(search.candidates.map(\.server) == ["a.elsewhere.example"])
    }

    @Test func addressesOfSRVTargetsAreAskedForByTheirCompleteName() {
        let search = Search(Self.domain, Zone(Self.hosts + Self.services.prefix(1)))
        #expect(
            search.questions.suffix(2) == [
                DNSQuestion("sip1.example.com.", .aaaa), DNSQuestion("sip1.example.com.", .a),
            ])
        // A host may be a short name that the search list completes.
        let short = Search(ServerTarget(host: "pbx", port: 5060), Zone(["pbx A 192.0.2.1"]))
        #expect(short.questions == [DNSQuestion("pbx", .aaaa), DNSQuestion("pbx", .a)])
    }

    @Test func aDomainCannotMakeUsAskWithoutEnd() {
        let many = (0..<60).flatMap { index in
            [
                "_sips._tcp.example.com SRV \(index) 1 5061 s\(index).example.com.",
                "s\(index).example.com A 10.0.0.\(index)", "s\(index).example.com A 10.0.1.\(index)",
                "s\(index).example.com A 10.0.2.\(index)", "s\(index).example.com A 10.0.3.\(index)",
            ]
        }
        let search = Search(Self.domain, Zone(many))
        #expect(search.questions.count == 4 + 2 * ServerLocator.maximumServers)
        #expect(search.candidates.count == ServerLocator.maximumCandidates)
        #expect(search.candidates.first?.address.host == "10.0.0.0")

        let rules = (0..<60).map { "example.com NAPTR \($0) 1 s SIPS+D2T r\($0).example.com." }
        #expect(Search(Self.domain, Zone(rules)).questions.count <= 4 + ServerLocator.maximumServers + 2)
    }

    @Test func strayAnswersDoNothing() {
        var locator = ServerLocator(target: Self.domain, random: .seeded(1), history: ServerHistory(), at: .zero)
        var questions: [DNSQuestion] = []
        while case .ask(let question) = locator.nextAction() { questions.append(question) }
        #expect(questions.count == 4)
        for _ in 0..<8 {
            locator.receive(.records([.address("192.0.2.66")]), to: DNSQuestion("example.com", .a))
            locator.receive(.noData, to: questions[0])
        }
        #expect(locator.nextAction() == nil)
        // Records of another kind than was asked for are as good as none.
        for question in questions { locator.receive(.records([.address("192.0.2.66")]), to: question) }
        #expect(locator.nextAction() == .ask(DNSQuestion("example.com", .aaaa)))
    }
}
