import Audio
import Glibc
import Primitives
import RTP
import SDP
import Testing

@testable import MediaSession

@Suite struct RecordingTests {
    /// A file that goes away with its owner.
    final class Scratch {
        let path: String

        init() {
            var template = Array("/tmp/mediatests-XXXXXX".utf8CString)
            let descriptor = template.withUnsafeMutableBufferPointer { buffer in
                buffer.baseAddress.map { mkstemp($0) } ?? -1
            }
            if descriptor >= 0 { Glibc.close(descriptor) }
            path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }

        deinit {
            unlink(path)
        }

        /// Waits until the disk has that many frames of two channels: simulated time must not outrun the writer's thread.
        func wait(frames: Int) -> Bool {
            var status = stat()
            for _ in 0..<5_000 {
                if stat(path, &status) == 0, status.st_size >= 44 + 4 * frames { return true }
                _ = poll(nil, 0, 2)
            }
            return false
        }

        /// Runs a simulation at the pace of the disk.
        func run(_ simulation: Simulation, seconds: Double) {
            for _ in 0..<Int(seconds * 2) {
                simulation.run(.milliseconds(500))
                frames += 24_000
                // What the recorder holds back, and what waits for the next packet, is less than a quarter of a second.
                #expect(wait(frames: frames - 12_000))
            }
        }

        private var frames = 0

        /// The samples of a finished file of 48 kHz with that many channels.
        func samples(channels: Int) -> [[Int16]] {
            guard let stream = fopen(path, "r") else { return [] }
            defer { fclose(stream) }
            var bytes = [UInt8](repeating: 0, count: 1 << 23)
            bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, stream))
            // The writer's header is 44 bytes.
            let frames = max(0, bytes.count - 44) / (2 * channels)
            return (0..<channels).map { channel in
                (0..<frames).map { frame in
                    let at = 44 + 2 * (frame * channels + channel)
                    return Int16(bitPattern: UInt16(bytes[at]) | UInt16(bytes[at + 1]) << 8)
                }
            }
        }
    }

    @Test func bothDirectionsAreRecordedOnOneTimeBase() throws {
        let scratch = Scratch()
        let recorder = try StereoRecorder(path: scratch.path)
        let speech = [Int16](repeating: 0, count: 9_600) + babble(seconds: 5)
        let answer = [Int16](repeating: 0, count: 9_600) + babble(seconds: 5, seed: 99)
        let heard = SampleSink()
        let (simulation, near, far) = try Simulation.pair(
            codec: Agreement.pcmu, source: SampleSource(speech), sink: heard, farSource: SampleSource(answer),
            recorder: recorder)
        scratch.run(simulation, seconds: 6)
        near.stream.finish(at: simulation.now)
        near.stream.discard()
        _ = far
        let channels = scratch.samples(channels: 2)
        let left = try #require(channels.first)
        let right = try #require(channels.last)
        #expect(left.count == 301 * 960)
        // Left is what was captured, sample for sample; right is what was played.
        let isLeftSame = left.starts(with: speech)
        let isRightSame = right == heard.samples
        #expect(isLeftSame)
        #expect(isRightSame)
        let match = SignalMatch.compare(reference: answer, heard: right)
        #expect(match.score > 0.9, "\(match)")
        #expect((0...0.08).contains(match.offset), "\(match)")
    }

    @Test func aStallKeepsTheTimeBase() throws {
        let scratch = Scratch()
        let recorder = try StereoRecorder(path: scratch.path)
        let (simulation, near, _) = try Simulation.pair(
            ptime: 60, source: ToneSource(frequency: 300), farSource: ToneSource(frequency: 500), recorder: recorder)
        scratch.run(simulation, seconds: 1)
        for _ in 0..<5 {
            simulation.stall(.milliseconds(500))
            scratch.run(simulation, seconds: 0.5)
        }
        near.stream.discard()
        let channels = scratch.samples(channels: 2)
        // 6 s; the last packet of 60 ms may be ahead.
        for channel in channels { #expect((288_000...291_840).contains(channel.count)) }
    }

    @Test func whatIsNotSentIsNotRecorded() throws {
        let scratch = Scratch()
        let recorder = try StereoRecorder(path: scratch.path)
        let (simulation, near, _) = try Simulation.pair(source: ToneSource(frequency: 300), recorder: recorder)
        scratch.run(simulation, seconds: 1)
        near.change(at: simulation.now) { $0.direction = .inactive }
        scratch.run(simulation, seconds: 1)
        near.change(at: simulation.now) { $0.direction = .sendrecv }
        near.stream.isMuted = true
        scratch.run(simulation, seconds: 1)
        near.stream.discard()
        let left = try #require(scratch.samples(channels: 2).first)
        #expect(level(left[0..<47_000]) > 0.05)
        #expect(level(left[49_000...]) == 0)
    }
}
