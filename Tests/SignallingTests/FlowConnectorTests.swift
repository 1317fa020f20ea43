import DNS
import NameServerSupport
import Network
import Primitives
import SIP
import Testing

@testable import Signalling

/// From a domain's name to a flow, over a real name server and real sockets on loopback.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct FlowConnectorTests {
    @Test func aDomainLeadsToItsServer() async throws {
        try await withConnecting { connecting in
            let server = try await connecting.listen("127.0.0.2")
            connecting.zone([
                .naptr("example.org", 1, 1, "s", "SIP+D2T", "_sip._tcp.example.org"),
                .srv("_sip._tcp.example.org", 1, 1, server.port, "sip.example.org"), .a("sip.example.org", "127.0.0.2"),
            ])
            let path = try await connecting.connect(ServerTarget(host: "example.org")).get()
            #expect(path.flow.transport == .tcp && path.flow.remote == server)
        }
    }

    @Test func aDeadServerIsPassedOverAndTriedLastAfterwards() async throws {
        try await withConnecting { connecting in
            let dead = try await connecting.deadPort("127.0.0.2")
            let alive = try await connecting.listen("127.0.0.3")
            connecting.zone([
                .srv("_sip._tcp.example.org", 1, 1, dead.port, "one.example.org"),
                .srv("_sip._tcp.example.org", 2, 1, alive.port, "two.example.org"), .a("one.example.org", "127.0.0.2"),
                .a("two.example.org", "127.0.0.3"),
            ])
            for _ in 0..<2 {
                let path = try await connecting.connect(ServerTarget(host: "example.org", transport: .tcp)).get()
                #expect(path.flow.remote == alive)
            }
            #expect(try await connecting.isAvoided(.tcp, dead))
            #expect(try await connecting.isAvoided(.tcp, alive) == false)
            #expect(connecting.tried == [dead, alive, alive], "the second time the dead one is not tried first")
        }
    }

    @Test func aServerThatSaysUnavailableIsPassedOver() async throws {
        try await withConnecting { connecting in
            let (one, two) = (try await connecting.listen("127.0.0.2"), try await connecting.listen("127.0.0.3"))
            connecting.zone([
                .srv("_sip._tcp.example.org", 1, 1, one.port, "one.example.org"),
                .srv("_sip._tcp.example.org", 2, 1, two.port, "two.example.org"), .a("one.example.org", "127.0.0.2"),
                .a("two.example.org", "127.0.0.3"),
            ])
            let target = ServerTarget(host: "example.org", transport: .tcp)
            let first = try await connecting.connect(target).get().flow
            #expect(first.remote == one)
            try await connecting.report(.unavailable(retryAfter: .seconds(120)), first)
            let second = try await connecting.connect(target).get().flow
            #expect(second.remote == two)
            // Both failed: the one that is usable again sooner is not preferred, the domain's order is.
            try await connecting.report(.transport, second)
            #expect(try await connecting.connect(target).get().flow.remote == one)
            // Having been reached, it is as good as before.
            #expect(try await connecting.isAvoided(.tcp, one) == false)
        }
    }

    @Test func retryAfterEnds() async throws {
        try await withConnecting { connecting in
            let flow = SIPFlow(transport: .tls, remote: TransportAddress(host: "127.0.0.9", port: 5061), connection: 4)
            try await connecting.report(.unavailable(retryAfter: .zero), flow)
            #expect(try await connecting.isAvoided(.tls, flow.remote) == false)
            try await connecting.report(.unavailable(retryAfter: nil), flow)
            #expect(try await connecting.isAvoided(.tls, flow.remote))
        }
    }

    @Test func theOtherFamilyWinsWhenOneIsStuck() async throws {
        try await withConnecting { connecting in
            let stuck = try StuckListener(host: "127.0.0.2")
            let alive = try await connecting.listen("::1", port: stuck.address.port)
            connecting.zone([
                .a("sip.example.org", "127.0.0.2"), .aaaa("sip.example.org", [0, 0, 0, 0, 0, 0, 0, 1]),
            ])
            let start = connecting.loop.now
            let target = ServerTarget(host: "sip.example.org", port: alive.port, transport: .tcp)
            let path = try await connecting.connect(target).get()
            #expect(path.flow.remote == alive)
            #expect(connecting.tried == [stuck.address, alive])
            #expect(connecting.loop.now - start >= ConnectionRace.attemptDelay)
            // The one that lost was given up before it failed.
            #expect(try await connecting.isAvoided(.tcp, stuck.address) == false)
        }
    }

    @Test func whoeverAnswersTheTLSHandshakeFirstWins() async throws {
        try await withConnecting { connecting in
            let element = Element(connecting.loop)
            let alive = try await element.listen(.tls)
            // Takes the connection at once, and then says nothing.
            let silent = try await connecting.listen("127.0.0.2", port: alive.port)
            connecting.zone([
                .a("sip.example.org", "127.0.0.2"), .a("sip.example.org", "127.0.0.1"),
                .a("other.example.org", "127.0.0.1"),
            ])
            try await connecting.trust()
            let target = ServerTarget(
                host: "sip.example.org", port: alive.port, transport: .tls, domain: "localhost")
            let path = try await connecting.connect(target).get()
            #expect(path.flow.remote == alive)
            #expect(connecting.tried == [silent, alive])
            #expect(try await connecting.isAvoided(.tls, silent) == false, "given up before its time was over")
            // The domain decides whose certificate is expected, not the address.
            let error = try await connecting.error(
                ServerTarget(host: "other.example.org", port: alive.port, transport: .tls))
            guard case .tls(.nameMismatch(expected: "other.example.org", _)) = error.code else {
                Issue.record("\(error)")
                return
            }
            try await connecting.loop.call { element.transports.close() }
        }
    }

    @Test func theOtherFamilyIsTriedWhenOneIsRefused() async throws {
        try await withConnecting { connecting in
            let alive = try await connecting.listen("::1")
            connecting.zone([
                .a("sip.example.org", "127.0.0.1"), .aaaa("sip.example.org", [0, 0, 0, 0, 0, 0, 0, 1]),
            ])
            let target = ServerTarget(host: "sip.example.org", port: alive.port, transport: .tcp)
            let path = try await connecting.connect(target).get()
            #expect(path.flow.remote == alive)
            let refused = TransportAddress(host: "127.0.0.1", port: alive.port)
            #expect(connecting.tried == [refused, alive])
            #expect(try await connecting.isAvoided(.tcp, refused))
        }
    }

    @Test func whenAllFailTheErrorSaysWhatWasTried() async throws {
        try await withConnecting { connecting in
            let (one, two) = (try await connecting.deadPort("127.0.0.2"), try await connecting.deadPort("127.0.0.3"))
            connecting.zone([
                .srv("_sip._tcp.example.org", 1, 1, one.port, "one.example.org"),
                .srv("_sip._tcp.example.org", 2, 1, two.port, "two.example.org"), .a("one.example.org", "127.0.0.2"),
                .a("two.example.org", "127.0.0.3"),
            ])
            let error = try await connecting.error(ServerTarget(host: "example.org", transport: .tcp))
            #expect(error.code == .connectionRefused)
            for part in ["example.org", "TCP \(one) (one.example.org)", "TCP \(two) (two.example.org)", "refused"] {
                #expect(error.message.contains(part), "\(error.message)")
            }
        }
    }

    @Test func datagramsTakeTheFirst() async throws {
        try await withConnecting { connecting in
            connecting.zone([
                .srv("_sip._udp.example.org", 2, 1, 5080, "two.example.org"),
                .srv("_sip._udp.example.org", 1, 1, 5070, "one.example.org"), .a("one.example.org", "127.0.0.2"),
                .a("two.example.org", "127.0.0.3"),
            ])
            let path = try await connecting.connect(ServerTarget(host: "example.org", transport: .udp)).get()
            #expect(path.flow == SIPFlow(transport: .udp, remote: TransportAddress(host: "127.0.0.2", port: 5070)))
        }
    }

    @Test func namesOfThisMachineNeedNoNameServer() async throws {
        try await withConnecting { connecting in
            let server = try await connecting.listen("127.0.0.1")
            for host in ["localhost", "127.0.0.1", "sip.localhost"] {
                let target = ServerTarget(host: host, port: server.port, transport: .tcp)
                #expect(try await connecting.connect(target).get().flow.remote == server)
            }
            #expect(connecting.nameServer.arrivals.isEmpty)
        }
    }

    @Test func aSilentAnswerForOneFamilyIsNotWaitedFor() async throws {
        try await withConnecting { connecting in
            let server = try await connecting.listen("127.0.0.2")
            connecting.zone([.a("sip.example.org", "127.0.0.2")])
            connecting.nameServer.behave(.silent, for: DNSQuestion.RecordType.aaaa.rawValue)
            let start = connecting.loop.now
            let target = ServerTarget(host: "sip.example.org", port: server.port, transport: .tcp)
            #expect(try await connecting.connect(target).get().flow.remote == server)
            #expect(connecting.loop.now - start < Connecting.nameServerTimeout)
        }
    }

    @Test(
        arguments: [
            (ServerTarget(host: "gone.example.org"), .nameNotFound),
            (ServerTarget(host: "offered.example.org"), .nameNotFound),
            (ServerTarget(host: "not a name"), .invalidAddress),
            (ServerTarget(host: "127.0.0.1", transport: .udp, isSecure: true), .invalidAddress),
        ] as [(ServerTarget, NetworkError.Code)])
    func thereIsNoServer(_ target: ServerTarget, _ code: NetworkError.Code) async throws {
        try await withConnecting { connecting in
            connecting.zone([.srv("_sips._tcp.offered.example.org", 0, 0, 0, "")])
            let error = try await connecting.error(target)
            #expect(error.code == code)
            #expect(connecting.tried.isEmpty)
        }
    }

    @Test func theNameServerFails() async throws {
        try await withConnecting { connecting in
            connecting.nameServer.behave(.failing(2))
            let error = try await connecting.error(ServerTarget(host: "example.org"))
            #expect(error.code == .nameServerFailed)
            #expect(error.message.contains("example.org") && error.message.contains(";"))
        }
    }
}
