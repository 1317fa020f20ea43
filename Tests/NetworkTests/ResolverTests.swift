import Glibc
import Primitives
import Testing

@testable import Network

extension NetworkTests {
    @Suite struct ResolverTests {
        private func code(_ body: () async throws -> [TransportAddress]) async -> NetworkError.Code? {
            do {
                _ = try await body()
                return nil
            } catch {
                return (error as? NetworkError)?.code
            }
        }

        @Test(arguments: [
            ("192.0.2.7", ["192.0.2.7"]), ("2001:db8::7", ["2001:db8::7"]), ("[2001:DB8::7]", ["2001:db8::7"]),
            ("localhost", ["127.0.0.1", "::1"]), ("LocalHost.", ["127.0.0.1", "::1"]),
            ("bob.localhost", ["127.0.0.1", "::1"]),
        ])
        func addressesAndLocalhostNeedNoLookUp(_ host: String, _ expected: [String]) async throws {
            try await withLoop { loop in
                let resolver = Resolver(loop: loop, timeLimit: .seconds(5), maximumLookups: 1) { host, _ in
                    Issue.record("looked up \(host)")
                    return .success([])
                }
                let found = try await resolver.resolve(host: host, port: 5060)
                #expect(found == expected.map { TransportAddress(host: $0, port: 5060) })
                let inbox = Inbox<[TransportAddress]?>()
                resolver.resolve(host: host, port: 5060) { inbox.put(try? $0.get()) }
                #expect(await inbox.next() == found)
            }
        }

        @Test func otherNamesAreLookedUpOffTheLoop() async throws {
            try await withLoop { loop in
                let address = TransportAddress(host: "192.0.2.9", port: 5061)
                let resolver = Resolver(loop: loop, timeLimit: .seconds(50), maximumLookups: 1) { host, port in
                    #expect(!loop.isOnLoop)
                    #expect(host == "sip.example.com")
                    return .success([TransportAddress(host: "192.0.2.9", port: port)])
                }
                // One after the other: each look-up gives its place back.
                for _ in 0..<5 {
                    let found = try await resolver.resolve(host: "sip.example.com", port: 5061)
                    #expect(found == [address])
                }
            }
        }

        @Test(arguments: ["", "two words", "nul\0", String(repeating: "a", count: 254)])
        func whatIsNoNameIsNotLookedUp(_ host: String) async throws {
            try await withLoop { loop in
                let resolver = Resolver(loop: loop)
                #expect(await code { try await resolver.resolve(host: host, port: 1) } == .nameNotFound)
            }
        }

        @Test func aLookUpHasATimeLimitAndThreadsAreBounded() async throws {
            try await withLoop { loop in
                let (gate, ended) = (Gate(), Inbox<Void>())
                let resolver = Resolver(loop: loop, timeLimit: .milliseconds(30), maximumLookups: 1) { _, _ in
                    gate.wait()
                    ended.put(())
                    return .success([])
                }
                #expect(await code { try await resolver.resolve(host: "slow.example", port: 1) } == .timedOut)
                // The abandoned look-up still holds its thread.
                #expect(await code { try await resolver.resolve(host: "next.example", port: 1) } == .limitReached)
                gate.open()
                await ended.next()
            }
        }

        @Test func theSystemsLookUpAnswers() async throws {
            // A name that the hosts file knows wherever the tests run, or at least an orderly error.
            var name = [CChar](repeating: 0, count: 256)
            #expect(gethostname(&name, 255) == 0)
            let host = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            try await withLoop { loop in
                let resolver = Resolver(loop: loop)
                do {
                    let found = try await resolver.resolve(host: host, port: 5060)
                    #expect(!found.isEmpty)
                    #expect(found.allSatisfy { $0.port == 5060 && SocketAddress(numeric: $0.host, port: 1) != nil })
                    #expect(Set(found).count == found.count)
                } catch let error as NetworkError {
                    #expect([.nameNotFound, .nameServerFailed, .timedOut].contains(error.code))
                }
            }
        }
    }
}
