import Primitives
import STUN
import Testing

@testable import ICE

/// Every kind of NAT against every other: which need a relay is known, and everything else must work without one.
@Suite struct NATGridTests {
    static let kinds: [NATKind] = [.open, .fullCone, .restricted, .portRestricted, .symmetric]
    static let grid = kinds.flatMap { one in kinds.map { [one, $0] } }

    /// A symmetric NAT shows the peer another port than the STUN server saw, so a peer that filters by port is deaf to it.
    private static func isDirect(_ pair: [NATKind]) -> Bool {
        let strict: Set<NATKind> = [.portRestricted, .symmetric]
        return !(pair.contains(.symmetric) && pair.allSatisfy(strict.contains))
    }

    private func expectMedia(_ call: inout SimulatedCall, sourceLocation: SourceLocation = #_sourceLocation) {
        for index in 0..<2 { call.sendMedia([0x80, 0, UInt8(index)], from: index) }
        call.run(for: .seconds(1), untilSettled: false)
        for index in 0..<2 {
            #expect(
                call.payloads[1 - index].contains { $0.bytes == [0x80, 0, UInt8(index)] }, "media of side \(index)",
                sourceLocation: sourceLocation)
        }
    }

    @Test(arguments: grid, [true, false]) func withSTUNOnly(kinds: [NATKind], isTrickling: Bool) {
        var call = SimulatedCall(kinds, isTrickling: isTrickling)
        call.run()
        guard Self.isDirect(kinds) else {
            #expect(call.failures == [.noPath, .noPath])
            return
        }
        #expect(call.failures == [nil, nil])
        #expect(call.paths.allSatisfy { $0.last?.channel == nil && !$0.isEmpty })
        expectMedia(&call)
    }

    @Test(arguments: grid) func withTURN(kinds: [NATKind]) throws {
        var call = SimulatedCall(kinds, usesTURN: true)
        call.run()
        #expect(call.failures == [nil, nil])
        let paths = try call.paths.map { try #require($0.last) }
        let isRelayed = paths.contains { $0.channel != nil || $0.remoteKind == .relayed }
        #expect(isRelayed == !Self.isDirect(kinds), "\(paths)")
        expectMedia(&call)
    }

    @Test(
        "UDP is blocked on one side or both: a stream to the TURN server is the way out", arguments: kinds + [.blocked])
    func blocked(other: NATKind) throws {
        var call = SimulatedCall([.blocked, other], usesTURN: true, usesTURNStream: true)
        call.run()
        #expect(call.failures == [nil, nil])
        #expect(try #require(call.paths[0].last).socket == 9)
        expectMedia(&call)
        var hopeless = SimulatedCall([.blocked, other])
        hopeless.run(for: .seconds(60))
        #expect(hopeless.failures[0] == .noPath)
    }

    @Test("bad networks", arguments: [0.1, 0.3], UInt64(1)...12) func loss(loss: Double, seed: UInt64) {
        let kinds = Self.grid[Int(seed) * 5 % Self.grid.count]
        var call = SimulatedCall(kinds, usesTURN: true, seed: seed, loss: loss)
        call.run()
        #expect(call.failures == [nil, nil], "\(kinds)")
        #expect(call.paths.allSatisfy { !$0.isEmpty })
    }

    @Test func openSidesAreQuick() throws {
        var call = SimulatedCall([.open, .open])
        call.run()
        // Signalling 40 ms, then check and nomination: two round trips of 40 ms, and a pace of 50 ms.
        for time in call.pathTimes { #expect(try #require(time) - call.start < .milliseconds(250)) }
    }

    @Test func deadServersDelayGatheringByASecondAtMost() throws {
        var agent = ICEAgent(random: .seeded(4))
        let start = MonotonicTime(nanoseconds: 5)
        let address = try #require(STUNAddress(host: "10.1.1.1", port: 9))
        let server = try #require(STUNAddress(host: "198.51.100.9", port: 3_478))
        agent.gather(
            sockets: [ICESocket(id: 0, address: address)],
            servers: [
                ICEServerAddress(address: server),
                ICEServerAddress(address: server, relay: SimulatedInternet.credentials),
            ], at: start)
        var gathered: MonotonicTime?
        while gathered == nil, let next = agent.nextTimeout {
            agent.timeout(at: next)
            while let action = agent.nextAction() {
                if case .gathered = action { gathered = next }
            }
        }
        #expect(try #require(gathered) - start == .seconds(1))
        #expect(agent.localCandidates.map(\.kind) == [.host])
    }
}
