import DNS
import NameServerSupport
import Primitives
import Testing

@testable import Network

/// A client and the name servers that it asks, on one loop.
final class Resolving: Sendable {
    let client: DNSClient
    let servers: [NameServer]
    private let loop: EventLoop

    init(_ loop: EventLoop, _ client: DNSClient, _ servers: [NameServer]) {
        self.loop = loop
        self.client = client
        self.servers = servers
    }

    /// - Parameter options: changes the client's; the servers are set already.
    init(
        _ loop: EventLoop, zones: [[ZoneRecord]] = [Resolving.zone], negativeLifetime: UInt32? = nil,
        options change: @escaping @Sendable (inout DNSClient.Options) -> Void = { _ in }
    ) async throws {
        self.loop = loop
        (client, servers) = try await loop.call {
            let servers = try zones.map { try NameServer(loop, zone: $0, negativeLifetime: negativeLifetime) }
            var options = DNSClient.Options()
            options.servers = servers.map(\.address)
            options.hostsFile = "/dev/null"
            change(&options)
            return (DNSClient(loop: loop, options: options), servers)
        }
    }

    var server: NameServer { servers[0] }

    func ask(_ name: String, _ type: DNSQuestion.RecordType) async -> DNSAnswer {
        await withCheckedContinuation { continuation in
            loop.execute { [client] in
                client.query(DNSQuestion(name, type)) { continuation.resume(returning: $0) }
            }
        }
    }

    /// On the loop.
    func close() async throws {
        try await loop.call { [client, servers] in
            client.close()
            servers.forEach { $0.close() }
        }
    }

    static let zone: [ZoneRecord] = [
        .a("sip.example.org", "192.0.2.1"), .a("sip.example.org", "192.0.2.2"),
        .aaaa("sip.example.org", [0x2001, 0xDB8, 0, 0, 0, 0, 0, 1]),
        .srv("_sip._tcp.example.org", 10, 60, 5060, "sip.example.org"),
        .srv("_sip._tcp.example.org", 20, 0, 5062, "other.example.org"),
        .naptr("example.org", 10, 50, "s", "SIP+D2T", "_sip._tcp.example.org"),
        .alias("www.example.org", to: "sip.example.org"),
    ]
}

/// Runs a test with a client and its name servers, and ends them whatever happens.
func withResolving<Result>(
    zones: [[ZoneRecord]] = [Resolving.zone], negativeLifetime: UInt32? = nil,
    options: @escaping @Sendable (inout DNSClient.Options) -> Void = { _ in },
    _ body: (Resolving, EventLoop) async throws -> Result
) async throws -> Result {
    try await withLoop { loop in
        let resolving = try await Resolving(
            loop, zones: zones, negativeLifetime: negativeLifetime, options: options)
        let result = try await body(resolving, loop)
        try await resolving.close()
        return result
    }
}

let twoAddresses = DNSAnswer.records([.address("192.0.2.1"), .address("192.0.2.2")])
