import CSys
import Glibc
import Primitives
import Testing

@testable import Network

extension NetworkTests {
    @Suite struct TCPListenerTests {
        @Test func aThousandConnectionsAtATime() async throws {
            try withDescriptorLimit(4_096) {}
            let before = try openDescriptors()
            try await withLoop { loop in
                var options = TCPListener.Options()
                options.maximumConnections = 1_000
                let server = try await loop.call { [options] in try ReportingServer(loop, options: options) }
                let answers = Inbox<Int>()
                let clients = try await loop.call {
                    (0..<1_000).map { index in
                        let client = TCPConnection.connect(loop: loop, to: server.listener.localAddress)
                        client.onData = { bytes in answers.put(bytes.count) }
                        client.send(pattern(index % 7 + 1))
                        return client
                    }
                }
                var received = 0
                while received < (0..<1_000).reduce(0, { $0 + $1 % 7 + 1 }) {
                    if case .data(let bytes) = await server.events.next() { received += bytes.count }
                }
                #expect(try await loop.call { server.listener.statistics.open } == 1_000)
                loop.execute { for client in clients { client.close() } }
                var closed = 0
                while closed < 1_000 {
                    if case .closed(let code) = await server.events.next() {
                        #expect(code == nil)
                        closed += 1
                    }
                }
            }
            #expect(try openDescriptors() == before)
        }

        @Test func connectionsOverTheLimitAreClosedAtOnce() async throws {
            try await withLoop { loop in
                var options = TCPListener.Options()
                options.maximumConnections = 2
                let server = try await loop.call { [options] in try ReportingServer(loop, options: options) }
                try await expectLimit(loop, server)
            }
        }

        @Test func oneHostCannotTakeAllPlaces() async throws {
            try await withLoop { loop in
                var options = TCPListener.Options()
                options.maximumConnectionsPerHost = 2
                let server = try await loop.call { [options] in try ReportingServer(loop, options: options) }
                try await expectLimit(loop, server)
                let other = Inbox<StreamEvent>()
                try await loop.call {
                    TCPConnection.connect(
                        loop: loop, to: server.listener.localAddress,
                        from: TransportAddress(host: "127.0.0.2", port: 0)
                    ).report(to: other)
                }
                #expect(await other.next() == .open)
                #expect(await server.connections.next().remoteAddress?.host == "127.0.0.2")
            }
        }

        /// Two connections are let in, the third is not; when one ends, there is a place again.
        private func expectLimit(_ loop: EventLoop, _ server: ReportingServer) async throws {
            let address = server.listener.localAddress
            var clients: [TCPConnection] = []
            for _ in 0..<2 {
                clients.append(try await loop.call { TCPConnection.connect(loop: loop, to: address) })
                _ = await server.connections.next()
                #expect(await server.events.next() == .open)
            }
            let third = Inbox<StreamEvent>()
            loop.execute { TCPConnection.connect(loop: loop, to: address).report(to: third) }
            #expect(await third.next() == .open)
            #expect(await third.next() == .closed(nil))
            #expect(try await loop.call { server.listener.statistics.overLimit } == 1)
            loop.execute { [clients] in clients[0].close() }
            #expect(await server.events.next() == .closed(nil))
            loop.execute { TCPConnection.connect(loop: loop, to: address).send([7]) }
            #expect(await server.events.next() == .open)
            _ = await server.connections.next()
        }

        @Test func runningOutOfDescriptorsIsSurvived() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop) }
                let address = try SocketAddress(server.listener.localAddress)
                let sockets = try (0..<3).map { _ in
                    try FileDescriptor(Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0), "open a socket")
                }
                let gate = Gate()
                let closed = try withDescriptorLimit(0) {
                    // Each connection is ended by the listener, which has no descriptor for it.
                    sockets.map { socket in
                        var byte = UInt8(0)
                        let isConnected = address.withSystemAddress { Glibc.connect(socket.number, $0, $1) } == 0
                        return isConnected && recv(socket.number, &byte, 1, 0) <= 0
                    }
                }
                gate.open()
                #expect(closed == [true, true, true])
                #expect(try await loop.call { server.listener.statistics.outOfDescriptors } == 3)
                loop.execute { TCPConnection.connect(loop: loop, to: server.listener.localAddress).send([1]) }
                #expect(await server.events.next() == .open)
            }
        }
    }
}

/// Runs `body` with another limit on descriptors: an absolute one that stays, or, for 0, what is open now, for `body`.
private func withDescriptorLimit<Result>(_ limit: rlim_t, _ body: () throws -> Result) throws -> Result {
    var saved = rlimit()
    #expect(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &saved) == 0)
    var changed = saved
    if limit == 0 {
        // One that is free below the highest number in use would still be handed out.
        var number = Int32(0)
        while fcntl(number, F_GETFD) >= 0 { number += 1 }
        changed.rlim_cur = rlim_t(number)
    } else {
        changed.rlim_cur = max(saved.rlim_cur, min(limit, saved.rlim_max))
    }
    #expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &changed) == 0)
    defer { if limit == 0 { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &saved) } }
    return try body()
}
