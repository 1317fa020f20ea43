import Audio
import Primitives
import RTP
import SDP
import Testing

@testable import MediaSession

@Suite struct ControlTests {
    @Test(arguments: [false, true]) func reportsAreExchanged(mux: Bool) throws {
        let (simulation, near, far) = try Simulation.pair(mux: mux)
        simulation.run(.seconds(20))
        for side in [near, far] {
            let statistics = side.stream.snapshot(at: simulation.now)
            #expect(statistics.remoteFractionLost == 0)
            // Each way takes a step of 5 ms, and a report waits for the next step.
            let roundTrip = try #require(statistics.roundTripTime)
            #expect((0.004...0.025).contains(roundTrip))
            #expect(statistics.packetsMalformed == 0)
            #expect(statistics.packetsFromStrangers == 0)
        }
    }

    @Test func aSenderReportsAsSenderAndSaysGoodbye() throws {
        let peer = try RawPeer()
        let control = try RawPeer()
        var audio = peer.agreement()
        audio.remoteRTCPPort = control.address.port
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: audio)
        let simulation = Simulation()
        simulation.add(side)
        simulation.run(.seconds(1))
        #expect(control.receiveAll().isEmpty, "the first report waits for half the interval at least")
        for _ in 0..<300 {
            peer.send(peer.packet(), to: side.port.local.rtpPort)
            simulation.run(.milliseconds(20))
        }
        let reports = control.receiveAll()
        #expect((1...4).contains(reports.count))
        let packets = peer.receiveAll().compactMap { RTPHeader.parse($0) }
        let ssrc = try #require(packets.first?.ssrc)
        var names: Set<String> = []
        for report in reports {
            let parts = try RTCPPacket.parseCompound(report)
            guard case .senderReport(let sent) = parts.first, case .sourceDescription(let names1) = parts.last else {
                Issue.record("not SR and SDES: \(parts)")
                continue
            }
            #expect(sent.ssrc == ssrc)
            #expect(sent.packetCount > 50)
            #expect(sent.octetCount == sent.packetCount * 160)
            #expect(sent.blocks.first?.ssrc == 0x1234_5678)
            #expect(sent.blocks.first?.fractionLost == 0)
            names.formUnion(names1.compactMap(\.canonicalName))
        }
        #expect(names.count == 1)
        #expect(names.first?.count == 24)

        side.stream.finish(at: simulation.now)
        side.stream.finish(at: simulation.now)
        let last = control.receiveAll()
        #expect(last.count == 1)
        let parts = try RTCPPacket.parseCompound(try #require(last.first))
        guard case .goodbye(let goodbye) = parts.last else {
            Issue.record("no BYE: \(parts)")
            return
        }
        #expect(goodbye.sources == [ssrc])
    }

    @Test func aListenerReportsAsReceiver() throws {
        let peer = try RawPeer()
        let control = try RawPeer()
        var audio = peer.agreement(direction: .recvonly)
        audio.remoteRTCPPort = control.address.port
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: audio)
        let simulation = Simulation()
        simulation.add(side)
        // A quarter of the packets gets lost.
        for packet in 0..<400 {
            let bytes = peer.packet()
            if packet % 4 != 3 { peer.send(bytes, to: side.port.local.rtpPort) }
            simulation.run(.milliseconds(20))
        }
        #expect(peer.receiveAll().isEmpty)
        let reports = control.receiveAll()
        #expect(!reports.isEmpty)
        for report in reports {
            guard case .receiverReport(let received) = try RTCPPacket.parseCompound(report).first else {
                Issue.record("not an RR")
                continue
            }
            let block = try #require(received.blocks.first)
            #expect((60...68).contains(block.fractionLost), "a quarter is 64/256")
            #expect(block.cumulativeLost > 8)
        }
    }

    /// A report about our stream as the peer would send it.
    private func report(about ssrc: UInt32, fractionLost: UInt8) -> [UInt8] {
        var block = RTCPReportBlock(ssrc: ssrc)
        block.fractionLost = fractionLost
        return RTCPPacket.encodeCompound([
            .receiverReport(RTCPReceiverReport(ssrc: 0x1234_5678, blocks: [block])),
            .sourceDescription([RTCPSourceDescription(ssrc: 0x1234_5678, canonicalName: "peer")]),
        ])
    }

    @Test func whatThePeerReportsIsTakenFromItAlone() throws {
        let peer = try RawPeer()
        let control = try RawPeer()
        let stranger = try RawPeer(host: "127.0.0.2")
        var audio = peer.agreement()
        audio.remoteRTCPPort = control.address.port
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: audio)
        let simulation = Simulation()
        simulation.add(side)
        simulation.run(.milliseconds(20))
        let ssrc = try #require(peer.receive().flatMap { RTPHeader.parse($0) }).ssrc
        stranger.send(report(about: ssrc, fractionLost: 200), to: side.port.local.rtcpPort)
        simulation.run(.milliseconds(20))
        #expect(side.stream.snapshot(at: simulation.now).remoteFractionLost == nil)
        #expect(side.stream.snapshot(at: simulation.now).packetsFromStrangers == 1)
        control.send(report(about: ssrc &+ 1, fractionLost: 100), to: side.port.local.rtcpPort)
        simulation.run(.milliseconds(20))
        #expect(side.stream.snapshot(at: simulation.now).remoteFractionLost == nil, "about another stream")
        control.send(report(about: ssrc, fractionLost: 64), to: side.port.local.rtcpPort)
        simulation.run(.milliseconds(20))
        #expect(side.stream.snapshot(at: simulation.now).remoteFractionLost == 0.25)
        // Another port of the same host, once the peer's own reported.
        peer.send(report(about: ssrc, fractionLost: 0), to: side.port.local.rtcpPort)
        simulation.run(.milliseconds(20))
        #expect(side.stream.snapshot(at: simulation.now).remoteFractionLost == 0.25)
        #expect(side.stream.snapshot(at: simulation.now).packetsFromStrangers == 2)
    }

    @Test func aForgedGoodbyeEndsNothing() throws {
        let (simulation, near, far) = try Simulation.pair(farSource: ToneSource(frequency: 300))
        simulation.run(.seconds(1))
        let goodbye = RTCPPacket.encodeCompound([
            .receiverReport(RTCPReceiverReport(ssrc: 1)), .goodbye(RTCPGoodbye(sources: [1])),
        ])
        try RawPeer().send(goodbye, to: near.port.local.rtcpPort)
        simulation.run(.seconds(1))
        #expect(near.stream.snapshot(at: simulation.now).audioLevelReceived > 0.05)
        #expect(far.stream.snapshot(at: simulation.now).packetsSent == 101)
    }

    @Test func reportsKeepACallWithoutSoundAlive() throws {
        let peer = try RawPeer()
        let control = try RawPeer()
        var audio = peer.agreement()
        audio.remoteRTCPPort = control.address.port
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: audio, inactivityTimeout: .seconds(3))
        let simulation = Simulation()
        simulation.add(side)
        peer.send(peer.packet(), to: side.port.local.rtpPort)
        for _ in 0..<10 {
            control.send(report(about: 1, fractionLost: 0), to: side.port.local.rtcpPort)
            simulation.run(.seconds(1))
        }
        #expect(side.events.inactivities == 0)
        simulation.run(.seconds(4))
        #expect(side.events.inactivities == 1)
    }
}
