import DNS
import Glibc
import NameServerSupport
import Primitives
import Testing

@testable import Network

extension NetworkTests {
    /// What a client makes of the answers that it gets.
    @Suite struct DNSClientTests {
        @Test func recordsOfEachKind() async throws {
            try await withResolving { resolving, _ in
                #expect(await resolving.ask("sip.example.org", .a) == twoAddresses)
                #expect(await resolving.ask("SIP.Example.ORG.", .aaaa) == .records([.address("2001:db8::1")]))
                #expect(
                    await resolving.ask("_sip._tcp.example.org", .srv)
                        == .records([
                            .service(SRVRecord(priority: 10, weight: 60, port: 5060, target: "sip.example.org")),
                            .service(SRVRecord(priority: 20, weight: 0, port: 5062, target: "other.example.org")),
                        ]))
                #expect(
                    await resolving.ask("example.org", .naptr)
                        == .records([
                            .rule(
                                NAPTRRecord(
                                    order: 10, preference: 50, flags: "s", service: "sip+d2t",
                                    replacement: "_sip._tcp.example.org"))
                        ]))
                #expect(await resolving.ask("www.example.org", .a) == twoAddresses)
                #expect(await resolving.ask("example.org", .a) == .noData)
                #expect(await resolving.ask("gone.example.org", .a) == .noSuchName)
                #expect(await resolving.ask("_sips._tcp.example.org", .srv) == .noSuchName)
            }
        }

        @Test func answersAreKept() async throws {
            try await withResolving(negativeLifetime: 30) { resolving, loop in
                for _ in 0..<3 {
                    #expect(await resolving.ask("sip.example.org", .a) == twoAddresses)
                    #expect(await resolving.ask("gone.example.org", .a) == .noSuchName)
                    #expect(await resolving.ask("example.org", .srv) == .noData)
                }
                #expect(resolving.server.arrivals.count == 3, "one for each question")
                try await loop.call { resolving.client.forgetAnswers() }
                #expect(await resolving.ask("sip.example.org", .a) == twoAddresses)
                #expect(resolving.server.arrivals.count == 4)
            }
        }

        @Test(arguments: [0, 0x8000_0000, .max] as [UInt32])
        func fleetingAnswersAreNotKept(_ lifetime: UInt32) async throws {
            let zone = [ZoneRecord.a("sip.example.org", "192.0.2.1", lifetime: lifetime)]
            try await withResolving(zones: [zone]) { resolving, _ in
                for _ in 0..<2 {
                    #expect(await resolving.ask("sip.example.org", .a) == .records([.address("192.0.2.1")]))
                    // Without an SOA record "there is none" holds for now only (RFC 2308, 5).
                    #expect(await resolving.ask("gone.example.org", .a) == .noSuchName)
                }
                #expect(resolving.server.arrivals.count == 4)
            }
        }

        @Test func oneQuestionForAllWhoWait() async throws {
            try await withResolving { resolving, _ in
                let answers = await withTaskGroup(of: DNSAnswer.self) { group in
                    for _ in 0..<20 { group.addTask { await resolving.ask("sip.example.org", .a) } }
                    return await group.reduce(into: []) { $0.append($1) }
                }
                #expect(answers == [DNSAnswer](repeating: twoAddresses, count: 20))
                #expect(resolving.server.arrivals.count == 1)
            }
        }

        @Test func longAnswersComeOverTCP() async throws {
            let zone = (0..<1_000).map { ZoneRecord.a("many.example.org", "10.1.\($0 / 250).\($0 % 250)") }
            try await withResolving(zones: [zone]) { resolving, _ in
                resolving.server.behave(.truncating)
                guard case .records(let records) = await resolving.ask("many.example.org", .a) else {
                    Issue.record("no records")
                    return
                }
                #expect(records.count == DNSMessageReader.maximumRecords)
                #expect(records.first == .address("10.1.0.0"))
                #expect(resolving.server.arrivals.map(\.isTCP) == [false, true])
            }
        }

        @Test func forgedAnswersAreNotBelieved() async throws {
            try await withResolving { resolving, _ in
                resolving.server.behave(.spoofed)
                #expect(await resolving.ask("sip.example.org", .a) == twoAddresses)
                #expect(await resolving.ask("sip.example.org", .a) == twoAddresses, "from the cache")
                #expect(resolving.server.arrivals.count == 1)
            }
        }

        @Test func idsCannotBeGuessed() async throws {
            try await withResolving { resolving, _ in
                for index in 0..<20 { _ = await resolving.ask("n\(index).example.org", .a) }
                let identifiers = resolving.server.identifiers
                #expect(Set(identifiers).count >= 19, "\(identifiers)")
                let steps = Set(zip(identifiers, identifiers.dropFirst()).map { $1 &- $0 })
                #expect(steps.count >= 18, "\(identifiers)")
            }
        }

        @Test(
            arguments: [
                [], [0x81], [0x81, 0x80, 0, 1, 0, 1], [UInt8](repeating: 0xFF, count: 400),
                [0x81, 0x80, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xC0, 0x0C],
            ] as [[UInt8]])
        func garbageEndsInAFailure(_ bytes: [UInt8]) async throws {
            try await withResolving(options: { $0.tryTimeout = .milliseconds(40) }) { resolving, _ in
                resolving.server.behave(.bytes(bytes))
                guard case .failed = await resolving.ask("sip.example.org", .a) else {
                    Issue.record("believed")
                    return
                }
                // And the client goes on working.
                resolving.server.behave(.honest)
                #expect(await resolving.ask("sip.example.org", .aaaa) == .records([.address("2001:db8::1")]))
            }
        }

        @Test func malformedAnswersAreRefused() async throws {
            let zone = [
                ZoneRecord("bad.example.org", type: 1, data: [1, 2, 3]),
                ZoneRecord("cut.example.org", type: 33, data: [0, 1, 0, 1, 0x13, 0xC4, 3, 97]),
                .alias("loop.example.org", to: "loop.example.org"),
            ]
            try await withResolving(zones: [zone]) { resolving, _ in
                for (name, type) in [
                    ("bad.example.org", .a), ("cut.example.org", .srv), ("loop.example.org", .a),
                ] as [(String, DNSQuestion.RecordType)] {
                    let answer = await resolving.ask(name, type)
                    guard case .failed(.malformed) = answer else {
                        Issue.record("\(name): \(answer)")
                        continue
                    }
                }
            }
        }

        @Test(arguments: ["", "a b", "b\u{fc}cher.example", "a..b", "a\0b", String(repeating: "a", count: 64)])
        func badNamesAreNotAskedFor(_ name: String) async throws {
            try await withResolving { resolving, _ in
                #expect(await resolving.ask(name, .a) == .failed(.invalidName))
                #expect(resolving.server.arrivals.isEmpty)
            }
        }

        @Test func namesThatNeedNoNameServer() async throws {
            let directory = try ScratchDirectory()
            let hosts = directory.file("hosts")
            try write("192.0.2.50 pbx pbx.example.org\n", to: hosts)
            try await withResolving(options: { $0.hostsFile = hosts }) { resolving, _ in
                #expect(await resolving.ask("localhost", .a) == .records([.address("127.0.0.1")]))
                #expect(await resolving.ask("x.localhost", .aaaa) == .records([.address("::1")]))
                #expect(await resolving.ask("_sips._tcp.localhost", .srv) == .noData)
                #expect(await resolving.ask("x.invalid", .naptr) == .noSuchName)
                #expect(await resolving.ask("pbx", .a) == .records([.address("192.0.2.50")]))
                #expect(await resolving.ask("_sip._udp.pbx.example.org", .srv) == .noData)
                // The file is read again when it was changed.
                try write("192.0.2.51 pbx  # moved\n", to: hosts)
                #expect(await resolving.ask("pbx", .a) == .records([.address("192.0.2.51")]))
                #expect(resolving.server.arrivals.isEmpty)
            }
        }
    }
}

/// Replaces a file's contents.
func write(_ text: String, to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    try #require(Array(text.utf8).withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) } == text.utf8.count)
}
