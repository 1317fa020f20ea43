import Audio
import Dispatch
import MediaSession
import Primitives
import SDP
import Testing

/// Closing a device that takes its time must not hold up other calls.
@Suite struct ClosingTests {
    /// A sink whose `stop` waits until the test lets it go on.
    private final class SlowSink: AudioSink {
        let name = AudioDeviceName.null
        let negotiated: NegotiatedFormat? = nil
        let counters = AudioDeviceCounters()
        let isClosing = DispatchSemaphore(value: 0)
        let mayClose = DispatchSemaphore(value: 0)

        func start() {}
        func write(_ buffer: UnsafeBufferPointer<Int16>) {}

        func stop() {
            isClosing.signal()
            mayClose.wait()
        }
    }

    private func makeStream(sink: any AudioSink) throws -> MediaStream {
        let port = try MediaPort(host: "127.0.0.1")
        let audio = NegotiatedAudio(
            codec: AudioCodec(name: "PCMU", clockRate: 8_000, channels: 1, payloadType: 0, formatParameters: nil),
            remoteAddress: "127.0.0.1", remoteRTPPort: port.local.rtpPort, remoteRTCPPort: port.local.rtcpPort)
        return try MediaStream(
            port: port, settings: MediaStream.Settings(audio: audio), source: try makeSource(.tone(440)), sink: sink,
            recorder: nil
        ) { _ in }
    }

    private func packets(of stream: MediaStream, in engine: MediaEngine) async -> UInt64 {
        await withCheckedContinuation { continuation in
            engine.statistics(of: stream) { continuation.resume(returning: $0.packetsSent) }
        }
    }

    @Test func aSlowDeviceDoesNotStopTheOthers() async throws {
        let engine = try MediaEngine()
        let sink = SlowSink()
        let slow = try makeStream(sink: sink)
        let other = try makeStream(sink: try makeSink(.null))
        engine.add(slow)
        engine.add(other)
        let closed = EventLog<Bool>()
        engine.remove(slow) { _ in closed.append(true) }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                sink.isClosing.wait()
                continuation.resume()
            }
        }
        // The slow one hangs in its `stop`; the other goes on sending.
        let before = await packets(of: other, in: engine)
        try await eventually("ten more packets") { await packets(of: other, in: engine) >= before + 10 }
        #expect(closed.events.isEmpty)
        sink.mayClose.signal()
        try await closed.wait("the completion") { $0.count == 1 }
        engine.stop()
    }
}
