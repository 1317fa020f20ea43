import DNS
import Network
import Primitives
import SIP
import Synchronization
import Testing

@testable import Signalling

/// What an attempt does with answers that come late, with sockets that a test plays.
@Suite(.timeLimit(.minutes(1)))
struct FlowEstablishmentTests {
    /// Flows that are being opened, and what became of them.
    private final class Sockets: Sendable {
        struct State {
            var targets: [FlowTarget] = []
            var completions: [@Sendable (Result<RegisteredFlow, NetworkError>) -> Void] = []
            var abandoned: [Int] = []
            var closed: [SIPFlow] = []
        }

        let state = Mutex(State())

        func connector(_ loop: EventLoop) -> FlowConnector {
            var options = DNSClient.Options()
            options.servers = []
            options.hostsFile = "/dev/null"
            return FlowConnector(
                loop: loop, dns: DNSClient(loop: loop, options: options), random: .seeded(1),
                open: { [self] target, _, completion in
                    let index = state.withLock { state in
                        state.targets.append(target)
                        state.completions.append(completion)
                        return state.targets.count - 1
                    }
                    return { [self] in state.withLock { $0.abandoned.append(index) } }
                },
                close: { [self] flow in state.withLock { $0.closed.append(flow) } })
        }

        func finish(_ index: Int, _ error: NetworkError? = nil) {
            let (completion, target) = state.withLock { ($0.completions[index], $0.targets[index]) }
            completion(error.map { .failure($0) } ?? .success(Self.path(target)))
        }

        static func path(_ target: FlowTarget) -> RegisteredFlow {
            RegisteredFlow(
                flow: SIPFlow(transport: target.transport, remote: target.address, connection: 7),
                local: TransportAddress(host: "127.0.0.1", port: 9))
        }
    }

    private final class Results: Sendable {
        private let all = Mutex<[Result<RegisteredFlow, NetworkError>]>([])
        var count: Int { all.withLock { $0.count } }
        var last: Result<RegisteredFlow, NetworkError>? { all.withLock { $0.last } }
        func put(_ result: Result<RegisteredFlow, NetworkError>) { all.withLock { $0.append(result) } }
    }

    private static let target = ServerTarget(host: "localhost", port: 5061, domain: "example.com", path: "/sip")
    private static let refused = NetworkError(.connectionRefused, "refused")

    /// Lets everything run that is queued on the loop.
    private func settle(_ loop: EventLoop) async throws {
        for _ in 0..<8 { try await loop.call {} }
    }

    private func withLoop(_ body: (EventLoop) async throws -> Void) async throws {
        let loop = try EventLoop(name: "test")
        defer { loop.stop() }
        try await body(loop)
    }

    @Test func theDomainAndPathGoWithEveryAddress() async throws {
        try await withLoop { loop in
            let (sockets, results) = (Sockets(), Results())
            let connector = sockets.connector(loop)
            try await loop.call { _ = connector.connect(to: Self.target) { results.put($0) } }
            try await settle(loop)
            try await loop.call { sockets.finish(0, Self.refused) }
            try await settle(loop)
            let expected = ["127.0.0.1", "::1"].map {
                FlowTarget(
                    transport: .tls, address: TransportAddress(host: $0, port: 5061), domain: "example.com",
                    path: "/sip")
            }
            #expect(sockets.state.withLock { $0.targets } == expected)
            try await loop.call { sockets.finish(1) }
            try await settle(loop)
            #expect(try results.last?.get() == Sockets.path(expected[1]))
            #expect(results.count == 1)
        }
    }

    @Test func aFlowThatComesTooLateIsClosed() async throws {
        try await withLoop { loop in
            let (sockets, results) = (Sockets(), Results())
            let connector = sockets.connector(loop)
            let attempt = try await loop.call {
                connector.connect(to: ServerTarget(host: "127.0.0.1")) { results.put($0) }
            }
            try await settle(loop)
            try await loop.call { attempt.cancel() }
            try await loop.call { attempt.cancel() }
            #expect(sockets.state.withLock { $0.abandoned } == [0], "given up, once")
            // It was on its way already.
            try await loop.call { sockets.finish(0) }
            try await settle(loop)
            #expect(results.count == 0)
            #expect(sockets.state.withLock { $0.closed.map(\.connection) } == [7])
        }
    }

    @Test func cancellingBeforeAnythingHappened() async throws {
        try await withLoop { loop in
            let (sockets, results) = (Sockets(), Results())
            let connector = sockets.connector(loop)
            try await loop.call { connector.connect(to: Self.target) { results.put($0) }.cancel() }
            try await settle(loop)
            #expect(results.count == 0 && sockets.state.withLock { $0.targets.isEmpty })
            let load = try await loop.call { loop.load }
            #expect(load.timers == 0)
        }
    }

    @Test func thereIsAnAnswerWhenAllFail() async throws {
        try await withLoop { loop in
            let (sockets, results) = (Sockets(), Results())
            let connector = sockets.connector(loop)
            try await loop.call { _ = connector.connect(to: Self.target) { results.put($0) } }
            try await settle(loop)
            try await loop.call { sockets.finish(0, Self.refused) }
            try await settle(loop)
            try await loop.call { sockets.finish(1, NetworkError(.timedOut, "no answer")) }
            try await settle(loop)
            guard case .failure(let error) = results.last else {
                Issue.record("no failure")
                return
            }
            #expect(error.code == .connectionRefused)
            #expect(
                error.message
                    == "cannot reach localhost: TLS 127.0.0.1:5061 (localhost): refused; TLS [::1]:5061 (localhost): no answer"
            )
            let load = try await loop.call { loop.load }
            #expect(load.timers == 0, "nothing goes on")
        }
    }
}
