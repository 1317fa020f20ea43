import Audio
import Dispatch
import Glibc
import Network
import Primitives
import SIP
import SinchRTC
import Synchronization
import Testing
import Token

@testable import SinchEnvironment

/// The environment as a running server: its sockets, its own users, its end.
@Suite struct EnvironmentServerTests {
    private static let key = "a32e5a8d-f7d8-411c-9645-9038e8dd051d"

    private func options(_ change: (inout EnvironmentServer.Options) -> Void = { _ in }) -> EnvironmentServer.Options {
        var random = RandomSource.system
        var options = EnvironmentServer.Options()
        options.applications = [
            EnvironmentConfiguration.Application(
                key: Self.key, secret: ApplicationSecret.generate(random: &random))
        ]
        change(&options)
        return options
    }

    @Test func bringsEchoAndNothingElse() async throws {
        let server = try EnvironmentServer(options: options())
        #expect(await server.address == nil)
        let address = try await server.start()
        #expect(address.isLoopback)
        #expect(address.port != 0)
        #expect(await server.address == address)
        #expect(await server.registrations == 1)
        await server.stop()
        #expect(await server.registrations == 0)
    }

    @Test func bringsTheAnnouncementWhereThereIsASound() async throws {
        let server = try EnvironmentServer(options: options { $0.announcementPath = "/nonexistent.wav" })
        _ = try await server.start()
        #expect(await server.registrations == 2)
        await server.stop()
    }

    @Test func withoutApplicationsNobodyIsThere() async throws {
        let server = try EnvironmentServer(options: options { $0.applications = [] })
        _ = try await server.start()
        #expect(await server.registrations == 0)
        await server.stop()
    }

    @Test func takesThePortItIsGivenOrSaysWhyNot() async throws {
        let first = try EnvironmentServer(options: options())
        let address = try await first.start()
        let second = try EnvironmentServer(options: options { $0.port = address.port })
        await #expect {
            _ = try await second.start()
        } throws: { ($0 as? NetworkError)?.code == .addressInUse }
        // What failed has let go of everything and may be stopped.
        await second.stop()
        await first.stop()
        // The port is free again at once, and preferred where it was the last run's.
        let third = try EnvironmentServer(options: options { $0.preferredPort = address.port })
        #expect(try await third.start() == address)
        // And where it is taken, another one does.
        let fourth = try EnvironmentServer(options: options { $0.preferredPort = address.port })
        #expect(try await fourth.start() != address)
        await third.stop()
        await fourth.stop()
    }

    @Test func canBeStoppedTwiceAndStartedAgain() async throws {
        let server = try EnvironmentServer(options: options())
        _ = try await server.start()
        await server.stop()
        await server.stop()
        _ = try await server.start()
        #expect(await server.registrations == 1)
        await server.stop()
    }

    @Test func stoppingFreesIt() async throws {
        weak var gone: EnvironmentServer?
        do {
            let server = try EnvironmentServer(options: options())
            gone = server
            _ = try await server.start()
            await server.stop()
        }
        for _ in 0..<3 {
            if let loop = try? signallingLoop.get() { try? await loop.call {} }
            await withCheckedContinuation { continuation in
                DispatchQueue.main.async { continuation.resume() }
            }
        }
        #expect(gone == nil)
    }

    @Test func answersOPTIONSAndSurvivesGarbage() async throws {
        let server = try EnvironmentServer(options: options())
        let address = try await server.start()
        let loop = try EventLoop(name: "garbage")
        let answers = Answers()
        let socket = try await loop.call {
            let socket = try UDPSocket(loop: loop, bind: TransportAddress(host: "127.0.0.1", port: 0))
            socket.onDatagram = { bytes, _ in answers.add(bytes) }
            return socket
        }
        let options = """
            OPTIONS sip:sinchctl.localhost SIP/2.0\r
            Via: SIP/2.0/UDP \(socket.localAddress);branch=z9hG4bKprobe;rport\r
            From: <sip:probe@sinchctl.localhost>;tag=1\r
            To: <sip:sinchctl.localhost>\r
            Call-ID: probe\r
            CSeq: 1 OPTIONS\r
            Max-Forwards: 70\r
            Content-Length: 0\r
            \r

            """
        let garbage: [[UInt8]] = [
            [], [0], Array("\r\n\r\n".utf8), Array("INVITE".utf8), [UInt8](repeating: 0xFF, count: 1_400),
            Array("SIP/2.0 200 OK\r\n\r\n".utf8), Array(options.utf8.prefix(120)),
        ]
        try await loop.call {
            for bytes in garbage { socket.send(bytes, to: address) }
            socket.send(Array(options.utf8), to: address)
        }
        let answer = await answers.first { text in text.contains("CSeq: 1 OPTIONS") && text.hasPrefix("SIP/2.0 200") }
        #expect(answer)
        #expect(await server.registrations == 1)
        try await loop.call { socket.close() }
        loop.stop()
        await server.stop()
    }

    @Test func chimeIsPlayable() throws {
        let samples = AnnouncementSound.samples()
        #expect(samples.count == 2 * 5 * 8_000)
        #expect(samples.max() ?? 0 > 6_000)
        #expect(samples.max() ?? 0 < 20_000)
        // It begins and ends in silence, so that nothing clicks.
        #expect(abs(Int(samples.first ?? 1)) < 10 && abs(Int(samples.last ?? 1)) < 10)
        var template = Array("/tmp/sinchctl-test-XXXXXX".utf8CString)
        let directory = try #require(mkdtemp(&template).map { String(cString: $0) })
        let path = try AnnouncementSound.write(into: directory)
        defer {
            unlink(path)
            rmdir(directory)
        }
        let file = try WAVFile(path: path)
        #expect(file.format.sampleRate == 16_000)
        #expect(file.format.channels == 1)
        #expect(abs((file.channels.first?.count ?? 0) - samples.count * 3) < 10)
        #expect(throws: (any Error).self) { try AnnouncementSound.write(into: "/nonexistent") }
    }
}

/// Datagrams that came back, and who waits for one of them.
private final class Answers: Sendable {
    private struct State {
        var texts: [String] = []
        var waiter: (check: @Sendable (String) -> Bool, continuation: CheckedContinuation<Bool, Never>)?
    }

    private let state = Mutex(State())

    func add(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        let waiting = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            state.texts.append(text)
            guard let waiter = state.waiter, waiter.check(text) else { return nil }
            state.waiter = nil
            return waiter.continuation
        }
        waiting?.resume(returning: true)
    }

    /// Whether such a datagram comes within ten seconds.
    func first(_ check: @escaping @Sendable (String) -> Bool) async -> Bool {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state -> Bool in
                if state.texts.contains(where: check) { return true }
                state.waiter = (check, continuation)
                return false
            }
            if isThere { return continuation.resume(returning: true) }
            DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(10)) { [self] in
                let late = state.withLock { state -> CheckedContinuation<Bool, Never>? in
                    defer { state.waiter = nil }
                    return state.waiter?.continuation
                }
                late?.resume(returning: false)
            }
        }
    }
}
