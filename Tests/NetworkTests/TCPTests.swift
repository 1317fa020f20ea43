import CSys
import Glibc
import Primitives
import Testing

@testable import Network

/// An address where nobody listens: its listener was closed.
private func deadTCPAddress(_ loop: EventLoop) async throws -> TransportAddress {
    try await loop.call {
        let listener = try TCPListener(loop: loop, bind: anyLoopback)
        listener.close()
        return listener.localAddress
    }
}

extension NetworkTests {
    @Suite struct TCPTests {
        /// Connects a reporting client to the server and waits until both sides are open.
        private func connect(
            _ loop: EventLoop, _ server: ReportingServer, _ events: Inbox<StreamEvent>,
            options: StreamConnection.Options = .init(), halfClose: Bool = false
        ) async throws -> (client: TCPConnection, accepted: TCPConnection) {
            let client = try await loop.call {
                let client = TCPConnection.connect(loop: loop, to: server.listener.localAddress, options: options)
                client.report(to: events, halfClose: halfClose)
                return client
            }
            #expect(await events.next() == .open)
            #expect(await server.events.next() == .open)
            return (client, await server.connections.next())
        }

        @Test func bytesFlowBothWaysAndBothSidesEndOnce() async throws {
            let before = try openDescriptors()
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop) }
                let events = Inbox<StreamEvent>()
                let (client, accepted) = try await connect(loop, server, events)
                try await loop.call {
                    #expect(client.localAddress == accepted.remoteAddress)
                    #expect(client.remoteAddress == accepted.localAddress)
                    client.send(Array("ping".utf8))
                }
                #expect(try await server.events.bytes(4) == Array("ping".utf8))
                loop.execute { accepted.send(Array("pong".utf8)) }
                #expect(try await events.bytes(4) == Array("pong".utf8))
                loop.execute {
                    client.close()
                    client.close()
                }
                #expect(await events.next() == .closed(nil))
                #expect(await server.events.next() == .closed(nil))
                let (open, sent) = try await loop.call {
                    (server.listener.statistics.open, client.send([1]))
                }
                #expect(open == 0)
                #expect(!sent)
                #expect(events.rest.isEmpty)
                #expect(server.events.rest.isEmpty)
            }
            #expect(try openDescriptors() == before)
        }

        @Test func bytesSentWhileConnectingFollowTheOpening() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop) }
                try await loop.call {
                    let client = TCPConnection.connect(loop: loop, to: server.listener.localAddress)
                    for byte in 0..<10 { client.send([UInt8(byte)]) }
                }
                #expect(await server.events.next() == .open)
                #expect(try await server.events.bytes(10) == pattern(10))
            }
        }

        @Test func aRefusedConnectionIsReportedAtOnce() async throws {
            try await withLoop { loop in
                let dead = try await deadTCPAddress(loop)
                let events = Inbox<StreamEvent>()
                try await loop.call {
                    TCPConnection.connect(loop: loop, to: dead, timeout: .seconds(3_600)).report(to: events)
                    TCPConnection.connect(loop: loop, to: TransportAddress(host: "no-address", port: 1))
                        .report(to: events)
                }
                #expect(
                    await [events.next(), events.next()].contains(.closed(.connectionRefused)))
                #expect(events.rest.isEmpty)
                #expect(try await loop.call { loop.load.timers } == 0)
            }
        }

        @Test func connectingHasATimeLimit() async throws {
            try await withLoop { loop in
                // A listener whose backlog is full does not answer further handshakes.
                let full = try FileDescriptor(csys_socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0), "open")
                let local = SocketAddress(ipv4: 0x7F00_0001, port: 0)
                #expect(local.withSystemAddress { bind(full.number, $0, $1) } == 0)
                #expect(listen(full.number, 0) == 0)
                let address = try full.localSocketAddress()
                let fillers = try (0..<3).map { _ in
                    let filler = try FileDescriptor(csys_socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0), "open")
                    _ = address.withSystemAddress { csys_connect(filler.number, $0, $1) }
                    return filler
                }
                let events = Inbox<StreamEvent>()
                loop.execute {
                    TCPConnection.connect(loop: loop, to: address.transportAddress, timeout: .milliseconds(50))
                        .report(to: events)
                }
                #expect(await events.next() == .closed(.timedOut))
                withExtendedLifetime(fillers) {}
            }
        }

        @Test func silenceEndsAConnectionWithAnIdleTimeOut() async throws {
            try await withLoop { loop in
                var options = TCPListener.Options()
                options.connection.idleTimeout = .milliseconds(40)
                let server = try await loop.call { [options] in try ReportingServer(loop, options: options) }
                let events = Inbox<StreamEvent>()
                let (client, _) = try await connect(loop, server, events)
                // Traffic renews it: more than a time-out's worth of bytes, each well within it.
                try await loop.call { Dribble(client, interval: .milliseconds(10), count: 12).next() }
                #expect(try await server.events.bytes(12) == pattern(12))
                #expect(await server.events.next() == .closed(.timedOut))
                #expect(await events.nextChange() == .closed(nil))
            }
        }

        @Test func anIdleTimeOutMayBeTakenAway() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop) }
                let events = Inbox<StreamEvent>()
                let (client, accepted) = try await connect(loop, server, events)
                let timers = try await loop.call {
                    accepted.idleTimeout = .seconds(60)
                    client.idleTimeout = .seconds(60)
                    client.idleTimeout = nil
                    return loop.load.timers
                }
                #expect(timers == 1)
            }
        }

        @Test func muchArrivesWholeAndInOrder() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop) }
                let events = Inbox<StreamEvent>()
                var options = StreamConnection.Options()
                options.sendQueueLimit = 32 << 20
                let (client, _) = try await connect(loop, server, events, options: options)
                let bytes = pattern(24 << 20)
                loop.execute {
                    #expect(client.send(bytes))
                    client.close()
                }
                let received = try await server.events.bytes(bytes.count)
                #expect(received == bytes)
                #expect(await server.events.next() == .closed(nil))
                #expect(await events.nextChange() == .closed(nil))
                #expect(try await loop.call { client.bytesSent } == UInt64(bytes.count))
            }
        }

        @Test func aSenderOfMuchDoesNotStarveOthers() async throws {
            try await withLoop { loop in
                let (flooded, pinged) = try await loop.call { (try ReportingServer(loop), try ReportingServer(loop)) }
                let (floodEvents, pingEvents) = (Inbox<StreamEvent>(), Inbox<StreamEvent>())
                var options = StreamConnection.Options()
                options.sendQueueLimit = 32 << 20
                let (flooder, sink) = try await connect(loop, flooded, floodEvents, options: options)
                let (pinger, _) = try await connect(loop, pinged, pingEvents)
                let seen = Inbox<UInt64>()
                loop.execute {
                    flooder.send(pattern(24 << 20))
                    pinger.send([1])
                }
                #expect(try await pinged.events.bytes(1) == [1])
                loop.execute { seen.put(sink.bytesReceived) }
                #expect(await seen.next() < 24 << 20)
            }
        }

        @Test func aPeerThatDoesNotReadIsGivenUp() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop) }
                let events = Inbox<StreamEvent>()
                var options = StreamConnection.Options()
                options.sendQueueLimit = 100_000
                let (client, accepted) = try await connect(loop, server, events, options: options)
                let accepts = try await loop.call {
                    accepted.pauseReading()
                    var blocks = 0
                    while client.send(pattern(50_000)) { blocks += 1 }
                    return blocks
                }
                #expect(accepts >= 2)
                #expect(await events.next() == .closed(.sendQueueFull))
            }
        }

        @Test func pausedReadingLosesNothing() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop) }
                let events = Inbox<StreamEvent>()
                let (client, accepted) = try await connect(loop, server, events)
                // The peer sends and is gone before reading goes on.
                try await loop.call { accepted.pauseReading() }
                let turns = Inbox<UInt64>()
                try await loop.call {
                    client.send(pattern(1_000))
                    client.close()
                    loop.schedule(after: .milliseconds(20)) { turns.put(loop.turns) }
                    turns.put(loop.turns)
                }
                // A hang-up that cannot be masked must not spin the loop.
                let first = await turns.next()
                #expect(await turns.next() - first < 20)
                #expect(server.events.rest.isEmpty)
                loop.execute { accepted.resumeReading() }
                #expect(try await server.events.bytes(1_000) == pattern(1_000))
                #expect(await server.events.next() == .closed(nil))
            }
        }

        @Test func drainingIsReported() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop) }
                let events = Inbox<StreamEvent>()
                var options = StreamConnection.Options()
                options.sendQueueLimit = 32 << 20
                let (client, _) = try await connect(loop, server, events, options: options)
                loop.execute { client.send(pattern(16 << 20)) }
                #expect(await events.next() == .drain)
                #expect(try await loop.call { client.queuedBytes } == 0)
            }
        }

        @Test func aByteAtATimeMakesTheWhole() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop) }
                let events = Inbox<StreamEvent>()
                let (client, _) = try await connect(loop, server, events)
                loop.execute { for byte in pattern(3_000) { client.send([byte]) } }
                #expect(try await server.events.bytes(3_000) == pattern(3_000))
            }
        }

        @Test func aResetIsReported() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop) }
                let events = Inbox<StreamEvent>()
                let (client, _) = try await connect(loop, server, events)
                loop.execute { client.abort() }
                #expect(await events.next() == .closed(nil))
                #expect(await server.events.next() == .closed(.reset))
            }
        }

        @Test func sendingIntoAResetConnectionIsNoSignal() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop) }
                let events = Inbox<StreamEvent>()
                let (client, accepted) = try await connect(loop, server, events)
                try await loop.call {
                    // Both in one turn: the reset is not seen before the sends.
                    accepted.abort()
                    for _ in 0..<10 where !client.send(pattern(10)) { break }
                }
                #expect(await events.next() == .closed(.reset))
            }
        }

        @Test func aHalfClosedPeerStillGetsItsAnswer() async throws {
            try await withLoop { loop in
                let server = try await loop.call { try ReportingServer(loop, halfClose: true) }
                let socket = try FileDescriptor(Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0), "open")
                let address = try SocketAddress(server.listener.localAddress)
                #expect(address.withSystemAddress { Glibc.connect(socket.number, $0, $1) } == 0)
                #expect(Glibc.send(socket.number, "ask", 3, 0) == 3)
                #expect(shutdown(socket.number, Int32(SHUT_WR)) == 0)
                #expect(await server.events.next() == .open)
                let accepted = await server.connections.next()
                #expect(try await server.events.bytes(3) == Array("ask".utf8))
                #expect(await server.events.next() == .end)
                loop.execute {
                    accepted.send(Array("answer".utf8))
                    accepted.close()
                }
                var answer = [UInt8](repeating: 0, count: 16)
                #expect(recv(socket.number, &answer, 16, Int32(MSG_WAITALL)) == 6)
                #expect(answer.prefix(6) == Array("answer".utf8)[...])
                #expect(await server.events.next() == .closed(nil))
            }
        }

        @Test func aStoppedLoopClosesItsConnections() async throws {
            let before = try openDescriptors()
            let loop = try EventLoop(name: "stopped")
            let server = try await loop.call { try ReportingServer(loop) }
            let events = Inbox<StreamEvent>()
            _ = try await connect(loop, server, events)
            loop.stop()
            #expect(await events.next() == .closed(.closed))
            #expect(await server.events.next() == .closed(.closed))
            #expect(try openDescriptors() == before)
        }
    }
}

/// Sends a pattern byte by byte at an interval. On the loop.
private final class Dribble: @unchecked Sendable {
    private let connection: TCPConnection
    private let interval: Duration
    private let count: Int
    private var sent = 0

    init(_ connection: TCPConnection, interval: Duration, count: Int) {
        self.connection = connection
        self.interval = interval
        self.count = count
    }

    func next() {
        guard sent < count else { return }
        connection.send([pattern(count)[sent]])
        sent += 1
        connection.loop.schedule(after: interval) { [self] in next() }
    }
}
