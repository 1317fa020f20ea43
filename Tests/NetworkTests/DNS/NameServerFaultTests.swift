import DNS
import NameServerSupport
import Primitives
import Testing

@testable import Network

extension NetworkTests {
    /// Name servers that are silent, gone, slow or refuse, and what is left behind.
    @Suite struct NameServerFaultTests {
        private static let quick: @Sendable (inout DNSClient.Options) -> Void = { $0.tryTimeout = .milliseconds(30) }

        @Test func silence() async throws {
            try await withResolving(options: Self.quick) { resolving, loop in
                resolving.server.behave(.silent)
                let start = loop.now
                #expect(await resolving.ask("sip.example.org", .a) == .failed(.timedOut))
                #expect(resolving.server.arrivals.count == 2, "two tries")
                #expect((.milliseconds(80) ... .seconds(2)).contains(loop.now - start))
                // Failures are not kept.
                resolving.server.behave(.honest)
                #expect(await resolving.ask("sip.example.org", .a) == twoAddresses)
            }
        }

        @Test func theTimeLimitHoldsForAllServersTogether() async throws {
            let zones = [[ZoneRecord]](repeating: [], count: 4)
            try await withResolving(
                zones: zones,
                options: {
                    $0.tryTimeout = .seconds(20)
                    $0.timeLimit = .milliseconds(60)
                    $0.maximumQuestions = 1
                },
                { resolving, _ in
                    for server in resolving.servers { server.behave(.silent) }
                    #expect(await resolving.ask("sip.example.org", .a) == .failed(.timedOut))
                    // It is still under way, and counts.
                    #expect(await resolving.ask("www.example.org", .a) == .failed(.tooManyQuestions))
                })
        }

        @Test func anAnswerAfterTheLimitIsKept() async throws {
            try await withResolving(
                options: { $0.timeLimit = .milliseconds(20) },
                { resolving, loop in
                    resolving.server.behave(.held)
                    #expect(await resolving.ask("sip.example.org", .a) == .failed(.timedOut))
                    resolving.server.behave(.honest)
                    try await loop.call { resolving.server.release() }
                    // Another question's answer takes the same way after it.
                    #expect(await resolving.ask("other.example.org", .a) == .noSuchName)
                    #expect(await resolving.ask("sip.example.org", .a) == twoAddresses)
                    #expect(resolving.server.arrivals.count == 2)
                })
        }

        @Test func theNextServerIsAskedAfterSilence() async throws {
            try await withResolving(zones: [[], Resolving.zone], options: Self.quick) { resolving, _ in
                resolving.server.behave(.silent)
                #expect(await resolving.ask("sip.example.org", .a) == twoAddresses)
                #expect(resolving.servers.map(\.arrivals.count) == [1, 1])
            }
        }

        @Test(arguments: [2, 4, 5] as [UInt16])
        func theNextServerIsAskedAfterAnError(_ code: UInt16) async throws {
            try await withResolving(zones: [[], Resolving.zone]) { resolving, _ in
                resolving.server.behave(.failing(code))
                #expect(await resolving.ask("sip.example.org", .a) == twoAddresses)
            }
        }

        @Test(arguments: [2, 5] as [UInt16])
        func allServersRefuse(_ code: UInt16) async throws {
            try await withResolving { resolving, loop in
                resolving.server.behave(.failing(code))
                let start = loop.now
                guard case .failed(.noServer) = await resolving.ask("sip.example.org", .a) else {
                    Issue.record("no failure")
                    return
                }
                #expect(loop.now - start < .seconds(1), "known at once, not after the time-out")
            }
        }

        @Test func nobodyListensThere() async throws {
            try await withResolving(zones: [[], Resolving.zone]) { resolving, loop in
                try await loop.call { resolving.server.close() }
                let start = loop.now
                #expect(await resolving.ask("sip.example.org", .a) == twoAddresses)
                #expect(loop.now - start < .seconds(1), "ICMP says so at once")
                try await loop.call { resolving.servers[1].close() }
                guard case .failed(.noServer) = await resolving.ask("www.example.org", .a) else {
                    Issue.record("no failure")
                    return
                }
            }
        }

        @Test func aServerThatKnowsNoExtensions() async throws {
            try await withResolving { resolving, _ in
                resolving.server.behave(.withoutExtensions)
                #expect(await resolving.ask("sip.example.org", .a) == twoAddresses)
                #expect(resolving.server.arrivals.count == 2)
            }
        }

        @Test func emptyDatagramsDoNoHarm() async throws {
            try await withResolving { resolving, _ in
                resolving.server.behave(.empty)
                #expect(await resolving.ask("sip.example.org", .a) == twoAddresses)
            }
        }

        @Test func closingEndsAllQuestions() async throws {
            try await withResolving { resolving, loop in
                resolving.server.behave(.silent)
                let arrived = Inbox<Void>()
                resolving.server.onArrival { _ in arrived.put(()) }
                async let first = resolving.ask("a.example.org", .a)
                async let second = resolving.ask("b.example.org", .srv)
                await arrived.next()
                await arrived.next()
                try await loop.call { resolving.client.close() }
                #expect(await [first, second] == [.failed(.closed), .failed(.closed)])
                #expect(await resolving.ask("c.example.org", .a) == .failed(.closed))
            }
        }

        @Test func stoppingTheLoopEndsAllQuestions() async throws {
            let loop = try EventLoop(name: "test")
            let resolving = try await Resolving(loop)
            resolving.server.behave(.silent)
            let arrived = Inbox<Void>()
            resolving.server.onArrival { _ in arrived.put(()) }
            async let answer = resolving.ask("a.example.org", .a)
            await arrived.next()
            loop.stop()
            #expect(await answer == .failed(.closed))
        }

        @Test func nothingIsLeftBehind() async throws {
            try await withLoop { loop in
                let before = try openDescriptors()
                let load = try await loop.call { loop.load }
                for _ in 0..<5 {
                    let resolving = try await Resolving(loop, options: Self.quick)
                    _ = await resolving.ask("sip.example.org", .a)
                    resolving.server.behave(.truncating)
                    _ = await resolving.ask("www.example.org", .a)
                    resolving.server.behave(.silent)
                    _ = await resolving.ask("other.example.org", .a)
                    try await resolving.close()
                }
                let after = try await loop.call { loop.load }
                #expect(after == load)
                #expect(try openDescriptors() == before)
            }
        }

        @Test func aClientThatIsLetGoClosesItsSockets() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try NameServer(loop) }
                server.behave(.silent)
                let arrived = Inbox<Void>()
                server.onArrival { _ in arrived.put(()) }
                let load = try await loop.call { loop.load }
                let answered = Inbox<DNSAnswer>()
                try await loop.call {
                    let client = DNSClient(loop: loop, servers: [server.address])
                    client.query(DNSQuestion("a.example.org", .a)) { answered.put($0) }
                }
                // Only its time limit may hold on to it, and that is not enough.
                let after = try await loop.call { loop.load }
                #expect(after.watches == load.watches)
                try await loop.call { server.close() }
            }
        }

        @Test func manyQuestionsAtOnce() async throws {
            try await withResolving(options: { $0.cacheCapacity = 8 }) { resolving, _ in
                let answers = await withTaskGroup(of: DNSAnswer.self) { group in
                    for index in 0..<200 { group.addTask { await resolving.ask("n\(index).example.org", .a) } }
                    return await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
                }
                let refused = answers[.failed(.tooManyQuestions)] ?? 0
                #expect(answers[.noSuchName] == 200 - refused, "\(answers)")
                #expect(refused <= 200 - 64)
                #expect(resolving.server.arrivals.count == 200 - refused)
            }
        }
    }

    /// The system's configuration of name servers.
    @Suite struct SystemNameServerTests {
        /// A client that reads `file`, whose name servers are all at the port of `server`.
        private func client(_ loop: EventLoop, _ file: String, _ server: NameServer) -> DNSClient {
            var options = DNSClient.Options()
            options.resolverFile = file
            options.hostsFile = "/dev/null"
            options.port = server.address.port
            return DNSClient(loop: loop, options: options)
        }

        @Test func theFileIsReadAgainWhenItWasChanged() async throws {
            let directory = try ScratchDirectory()
            let file = directory.file("resolv.conf")
            try await withLoop { loop in
                let (resolving, old) = try await loop.call {
                    let old = try NameServer(loop, zone: [.a("sip.example.org", "192.0.2.1")])
                    let new = try NameServer(
                        loop, at: TransportAddress(host: "127.0.0.2", port: old.address.port),
                        zone: [.a("sip.example.org", "192.0.2.2")])
                    return (Resolving(loop, client(loop, file, old), [old, new]), old)
                }
                try write("nameserver 127.0.0.1\n", to: file)
                for _ in 0..<2 {
                    #expect(await resolving.ask("sip.example.org", .a) == .records([.address("192.0.2.1")]))
                }
                #expect(old.arrivals.count == 1)
                try write("nameserver 127.0.0.2\n# another network\n", to: file)
                // What the old network said does not hold in the new one.
                #expect(await resolving.ask("sip.example.org", .a) == .records([.address("192.0.2.2")]))
                try await resolving.close()
            }
        }

        @Test func theSearchListCompletesHostsButNotServices() async throws {
            let directory = try ScratchDirectory()
            let file = directory.file("resolv.conf")
            try write("search lab.example corp.example\nnameserver 127.0.0.1\n", to: file)
            let zone = [
                ZoneRecord.a("pbx.corp.example", "192.0.2.7"), .srv("_sip._tcp.pbx.corp.example", 1, 1, 1, "x"),
            ]
            try await withLoop { loop in
                let resolving = try await loop.call {
                    let server = try NameServer(loop, zone: zone)
                    return Resolving(loop, client(loop, file, server), [server])
                }
                #expect(await resolving.ask("pbx", .a) == .records([.address("192.0.2.7")]))
                #expect(await resolving.ask("pbx", .aaaa) == .noData)
                #expect(await resolving.ask("pbx.", .a) == .noSuchName)
                #expect(await resolving.ask("_sip._tcp.pbx", .srv) == .noSuchName)
                try await resolving.close()
            }
        }

        @Test func aMissingFileIsNoCrash() async throws {
            try await withLoop { loop in
                let resolving = try await loop.call {
                    // Nobody listens there: without a file, name servers are looked for on this machine.
                    let server = try NameServer(loop)
                    server.close()
                    return Resolving(loop, client(loop, "/nonexistent/resolv.conf", server), [server])
                }
                guard case .failed(.noServer) = await resolving.ask("sip.example.org", .a) else {
                    Issue.record("answered")
                    return
                }
                try await resolving.close()
            }
        }
    }
}
