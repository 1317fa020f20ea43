import Audio
import CSys
import Glibc
import Network
import Primitives
import RTP
import SDP
import Synchronization
import Testing

@testable import MediaSession

/// What only the real thread shows; real time, so one at a time and with room for a loaded machine.
@Suite(.serialized) struct EngineTests {
    /// A value that another thread sets once.
    final class Box<Value: Sendable>: Sendable {
        private let value = Mutex<Value?>(nil)

        func set(_ new: Value) {
            value.withLock { $0 = new }
        }

        /// Waits for the value, ten seconds at most.
        func wait() -> Value? {
            for _ in 0..<5_000 {
                if let value = value.withLock({ $0 }) { return value }
                _ = poll(nil, 0, 2)
            }
            return nil
        }
    }

    static func statistics(of stream: MediaStream, in engine: MediaEngine) throws -> MediaStatistics {
        let box = Box<MediaStatistics>()
        engine.statistics(of: stream) { box.set($0) }
        return try #require(box.wait())
    }

    static func remove(_ stream: MediaStream, from engine: MediaEngine) throws -> MediaStatistics {
        let box = Box<MediaStatistics>()
        engine.remove(stream) { box.set($0) }
        return try #require(box.wait())
    }

    /// Asks until the condition holds; false after ten seconds.
    static func eventually(
        _ stream: MediaStream, in engine: MediaEngine, _ condition: (MediaStatistics) -> Bool
    ) throws -> Bool {
        for _ in 0..<2_000 {
            if condition(try statistics(of: stream, in: engine)) { return true }
            _ = poll(nil, 0, 5)
        }
        return false
    }

    static func pair(
        _ source: any AudioSource, _ sink: any AudioSink, direction: MediaDirection = .sendrecv
    ) throws -> (near: Side, far: Side) {
        let near = try MediaPort(host: "127.0.0.1")
        let far = try MediaPort(host: "127.0.0.1")
        return (
            try Side(port: near, audio: Agreement.with(far, direction: direction), source: source),
            try Side(port: far, audio: Agreement.with(near, direction: direction), sink: sink)
        )
    }

    static func openDescriptors() -> Int {
        guard let directory = opendir("/proc/self/fd") else { return -1 }
        defer { closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        return count
    }

    static func now() -> MonotonicTime { MonotonicTime(nanoseconds: csys_monotonic_now()) }

    @Test func twoEnginesTalkAtTheClocksPace() throws {
        let near = try MediaEngine(name: "near")
        let far = try MediaEngine(name: "far")
        defer {
            near.stop()
            far.stop()
        }
        let sides = try Self.pair(ToneSource(frequency: 440), NullSink())
        far.add(sides.far.stream)
        let before = Self.now()
        near.add(sides.near.stream)
        let first = try Self.statistics(of: sides.near.stream, in: near)
        #expect(first.packetsSent >= 1, "the first packet leaves when the stream is added")
        #expect(try #require(first.firstPacketSent) < 0.02)
        _ = poll(nil, 0, 2_000)
        let asked = Self.now()
        let later = try Self.statistics(of: sides.near.stream, in: near)
        let answered = Self.now()
        // The media clock decides: one packet at the start, and one each 20 ms since.
        #expect(Double(later.packetsSent) >= (asked - before).seconds * 50 - 3)
        #expect(Double(later.packetsSent) <= (answered - before).seconds * 50 + 1)
        #expect(try Self.eventually(sides.far.stream, in: far) { $0.audioLevelReceived > 0.05 })
        #expect(sides.far.events.firstPackets == 1)

        near.setMuted(true, of: sides.near.stream)
        #expect(try Self.eventually(sides.far.stream, in: far) { $0.audioLevelReceived < 0.001 })
        near.setMuted(false, of: sides.near.stream)
        #expect(try Self.eventually(sides.far.stream, in: far) { $0.audioLevelReceived > 0.05 })

        var held = sides.near.audio
        held.direction = .inactive
        near.update(sides.near.stream, to: held)
        let atHold = try Self.statistics(of: sides.near.stream, in: near).packetsSent
        _ = poll(nil, 0, 200)
        #expect(try Self.statistics(of: sides.near.stream, in: near).packetsSent == atHold)

        let final = try Self.remove(sides.near.stream, from: near)
        #expect(final.packetsSent == atHold)
        // Statistics are still there after the end, and a second removal is harmless.
        #expect(try Self.statistics(of: sides.near.stream, in: near).packetsSent == atHold)
        #expect(try Self.remove(sides.near.stream, from: near).packetsSent == atHold)
    }

    @Test func bothStreamsMayShareAnEngine() throws {
        let engine = try MediaEngine()
        defer { engine.stop() }
        let sink = SampleSink()
        let sides = try Self.pair(ToneSource(frequency: 440), sink)
        engine.add(sides.near.stream)
        engine.add(sides.far.stream)
        #expect(try Self.eventually(sides.far.stream, in: engine) { $0.packetsReceived >= 50 })
        let near = try Self.remove(sides.near.stream, from: engine)
        let far = try Self.remove(sides.far.stream, from: engine)
        #expect(near.packetsReceived >= 40)
        #expect(far.audioLevelReceived > 0.05)
        #expect(sink.isStopped)
        #expect(sink.samples.count == Int(far.totalSamplesReceived))
    }

    @Test func aStoppedEngineClosesItsStreams() throws {
        let engine = try MediaEngine()
        let sink = SampleSink()
        let peer = try RawPeer()
        let control = try RawPeer()
        var audio = peer.agreement()
        audio.remoteRTCPPort = control.address.port
        let side = try Side(port: MediaPort(host: "127.0.0.1"), audio: audio, sink: sink)
        engine.add(side.stream)
        #expect(try Self.eventually(side.stream, in: engine) { $0.packetsSent >= 3 })
        engine.stop()
        engine.stop()
        var goodbye: [UInt8]?
        for _ in 0..<5_000 where goodbye == nil {
            goodbye = control.receive()
            if goodbye == nil { _ = poll(nil, 0, 2) }
        }
        let parts = try RTCPPacket.parseCompound(try #require(goodbye))
        guard case .goodbye = parts.last else {
            Issue.record("no BYE: \(parts)")
            return
        }
        // What comes too late is answered, and closes what it was given.
        let box = Box<MediaStatistics>()
        engine.remove(side.stream) { box.set($0) }
        #expect(box.wait() == MediaStatistics())
        let late = SampleSink()
        let other = try Side(port: MediaPort(host: "127.0.0.1"), audio: peer.agreement(), sink: late)
        engine.add(other.stream)
        #expect(late.isStopped)
    }

    @Test func aSoundIsPlayedAndStopped() throws {
        let engine = try MediaEngine()
        defer { engine.stop() }
        let source = SampleSource([Int16](repeating: 5, count: 480_000))
        let sink = SampleSink()
        let sound = LocalPlayback(source: source, sink: sink)
        engine.add(sound)
        _ = poll(nil, 0, 100)
        engine.remove(sound)
        for _ in 0..<5_000 where !(sink.isStopped && source.isStopped) { _ = poll(nil, 0, 2) }
        #expect(sink.isStopped)
        #expect(sink.samples.count >= 4_800)
        #expect(sink.samples.count % 480 == 0)
    }

    @Test func manyStreamsLeaveNothingOpen() throws {
        let before = Self.openDescriptors()
        do {
            let engine = try MediaEngine()
            var sides: [Side] = []
            for _ in 0..<100 {
                let pair = try Self.pair(SilenceSource(), NullSink(), direction: .recvonly)
                engine.add(pair.near.stream)
                engine.add(pair.far.stream)
                sides += [pair.near, pair.far]
            }
            let ports = Set(sides.map(\.port.local.rtpPort))
            #expect(ports.count == 200)
            #expect(ports.allSatisfy { $0 % 2 == 0 })
            #expect(sides.allSatisfy { $0.port.local.rtcpPort == $0.port.local.rtpPort + 1 })
            for side in sides {
                #expect(try Self.remove(side.stream, from: engine).totalSamplesReceived >= 960)
            }
            sides = []
            engine.stop()
        }
        // The engine's thread closes its own descriptors when it ends. Other tests hold a few sockets meanwhile.
        var after = Self.openDescriptors()
        for _ in 0..<500 where after > before + 40 {
            _ = poll(nil, 0, 10)
            after = Self.openDescriptors()
        }
        #expect(after <= before + 40, "\(before) descriptors before, \(after) after 400 sockets")
    }

    @Test func aHostThatIsNotOursHasNoPort() throws {
        #expect(throws: MediaError.self) { try MediaPort(host: "192.0.2.1") }
        #expect(throws: MediaError.self) { try MediaPort(host: "localhost") }
        let six = try MediaPort(host: "::1")
        #expect(six.local.rtpPort % 2 == 0)
    }
}
