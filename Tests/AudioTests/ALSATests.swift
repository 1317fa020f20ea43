import Glibc
import Primitives
import Testing

@testable import Audio

/// Real ALSA devices, over null sinks of a PulseAudio server that each test starts. Serialized: ALSA's configuration
/// and the processor's time are shared.
@Suite(.serialized, .enabled(if: PulseServer.shouldRun, Comment(rawValue: PulseServer.advice)))
struct ALSATests {
    /// One for all servers, so that the environment is set once; removed when the tests end.
    static let directory: Scratch = {
        atexit { ALSATests.directory.erase() }
        return Scratch()
    }()

    /// Moves audio as the media thread does, `source` → `heard`, `feed` → `sink`.
    final class Loop {
        let sink: ALSASink
        let source: ALSASource
        let feed: any AudioSource
        var heard: [Int16] = []
        var written = 0
        private var block = [Int16](repeating: 0, count: AudioFormat.blockFrames)
        private var clock = BlockClock()

        init(sink: ALSASink, source: ALSASource, feed: any AudioSource = ToneSource(frequency: 1_000)) {
            self.sink = sink
            self.source = source
            self.feed = feed
        }

        /// Whether any 100 ms of the last two seconds hold the tone at its level and nothing beside it: on a loaded
        /// machine others may have holes.
        func hearsTone() -> Bool {
            let tail = Array(heard.suffix(96_000))
            return stride(from: 0, through: tail.count - 4_800, by: 4_800).contains { start in
                let part = tail[start..<start + 4_800]
                let level = amplitude(of: 1_000, in: part) / ToneSource.amplitude
                return (0.95...1.05).contains(level)
                    && amplitude(of: 1_500, in: part) < 0.02 * ToneSource.amplitude
            }
        }

        func tick(_ now: MonotonicTime) {
            sink.service(at: now)
            source.service(at: now)
            let due = clock.blocksDue(at: now) * AudioFormat.blockFrames
            var playable = due
            while (sink.writableFrames ?? playable) >= AudioFormat.blockFrames {
                _ = block.withUnsafeMutableBufferPointer { feed.read(into: $0) }
                block.withUnsafeBufferPointer { sink.write($0) }
                written += block.count
                playable -= block.count
            }
            var recordable = due
            while (source.readableFrames ?? recordable) >= AudioFormat.blockFrames {
                let result = block.withUnsafeMutableBufferPointer { source.read(into: $0) }
                heard += block.prefix(result.frames)
                recordable -= block.count
            }
        }
    }

    /// A large buffer is warned of, but it is not filled: the delay stays what was chosen.
    @Test func largeBuffersAreWarnedOf() throws {
        let server = try server()
        let sink = ALSASink(pcm: "a2b")
        sink.preferences.periods = 50
        try sink.start()
        #expect(sink.negotiated?.bufferFrames == 24_000)
        #expect(sink.warning?.contains("500 ms") == true)
        sink.service(at: monotonicNow())
        #expect(sink.writableFrames == 1_440)
        server.stop()
    }

    func server() throws -> PulseServer {
        try #require(PulseServer(Self.directory), Comment(rawValue: PulseServer.advice))
    }

    @Test func toneComesBackOnTheMonitor() throws {
        let server = try server()
        let loop = Loop(sink: ALSASink(pcm: "a2b"), source: ALSASource(pcm: "a2bmon"))
        try loop.source.start()
        try loop.sink.start()
        #expect(loop.sink.negotiated?.sampleRate == 48_000)
        #expect(loop.sink.negotiated?.channels == 1)
        #expect(loop.sink.negotiated?.sampleFormat == "S16_LE")
        #expect(loop.sink.negotiated?.periodFrames == 480)
        #expect(loop.sink.negotiated?.bufferFrames == 1_920)
        #expect(loop.sink.warning == nil)
        let start = monotonicNow()
        _ = everyTenMilliseconds(limit: .seconds(3)) {
            loop.tick($0)
            return false
        }
        let elapsed = (monotonicNow() - start).seconds
        // Both sides run at the server's pace, which is real time: a device without a clock would run away.
        #expect((0.85...1.15).contains(Double(loop.written) / (elapsed * 48_000)))
        #expect((0.7...1.1).contains(Double(loop.heard.count) / (elapsed * 48_000)))
        #expect(loop.hearsTone())
        #expect(!loop.sink.isLost)
        #expect(!loop.source.isLost)
        loop.sink.stop()
        loop.source.stop()
        server.stop()
    }

    @Test(arguments: [16_000, 44_100])
    func otherRatesAreConverted(rate: Int) throws {
        let server = try server()
        let loop = Loop(sink: ALSASink(pcm: "a2b"), source: ALSASource(pcm: "a2bmon"))
        loop.sink.preferences.sampleRate = rate
        loop.source.preferences.sampleRate = rate
        try loop.source.start()
        try loop.sink.start()
        #expect(loop.sink.negotiated?.sampleRate == rate)
        #expect(loop.source.negotiated?.sampleRate == rate)
        let start = monotonicNow()
        _ = everyTenMilliseconds(limit: .seconds(2)) {
            loop.tick($0)
            return false
        }
        let elapsed = (monotonicNow() - start).seconds
        #expect((0.8...1.2).contains(Double(loop.written) / (elapsed * 48_000)))
        #expect(loop.hearsTone())
        server.stop()
    }

    @Test(arguments: [ALSAConversion.Encoding.float32, .int32], [2, 1])
    func otherFormatsAreConverted(encoding: ALSAConversion.Encoding, channels: Int) throws {
        let server = try server()
        let loop = Loop(sink: ALSASink(pcm: "a2b"), source: ALSASource(pcm: "a2bmon"))
        let preferences = ALSAPreferences(channels: channels, encodings: [encoding])
        loop.sink.preferences = preferences
        loop.source.preferences = preferences
        try loop.source.start()
        try loop.sink.start()
        for negotiated in [loop.sink.negotiated, loop.source.negotiated] {
            #expect(negotiated?.sampleFormat == encoding.name)
            #expect(negotiated?.channels == channels)
        }
        let heard = everyTenMilliseconds(limit: .seconds(5)) {
            loop.tick($0)
            return loop.heard.count % 4_800 < 960 && loop.hearsTone()
        }
        #expect(heard)
        server.stop()
    }

    @Test func callOutlivesTheDevice() throws {
        let server = try server()
        let loop = Loop(sink: ALSASink(pcm: "a2b"), source: ALSASource(pcm: "a2bmon"))
        try loop.source.start()
        try loop.sink.start()
        let heard = everyTenMilliseconds(limit: .seconds(5)) {
            loop.tick($0)
            return loop.heard.count > 24_000
        }
        #expect(heard)
        server.stop()
        let lost = everyTenMilliseconds(limit: .seconds(5)) {
            loop.tick($0)
            return loop.sink.isLost && loop.source.isLost
        }
        #expect(lost)
        #expect(loop.sink.takeFailure()?.code == .deviceLost)
        #expect(loop.source.takeFailure()?.code == .deviceLost)
        #expect(loop.source.takeFailure() == nil)
        // From now on both follow the timer, with silence.
        #expect(loop.sink.writableFrames == nil)
        #expect(loop.source.samples(4_800).suffix(480).allSatisfy { $0 == 0 })
        #expect(loop.source.readableFrames == nil)
        let written = loop.written
        let dropped = loop.sink.counters.droppedFrames
        let moved = everyTenMilliseconds(limit: .seconds(5)) {
            loop.tick($0)
            return loop.written >= written + 10 * AudioFormat.blockFrames
        }
        #expect(moved)
        #expect(loop.sink.counters.droppedFrames > dropped)
        // A server that is back can be used by the next call.
        let next = try self.server()
        try loop.source.start()
        try loop.sink.start()
        #expect(!loop.source.isLost && !loop.sink.isLost)
        loop.heard = []
        let again = everyTenMilliseconds(limit: .seconds(5)) {
            loop.tick($0)
            return loop.heard.count > 9_600
        }
        #expect(again)
        next.stop()
    }

    @Test func sinkIsKeptAtItsLevel() throws {
        let server = try server()
        let sink = ALSASink(pcm: "a2b", targetFillFrames: 960)
        try sink.start()
        sink.service(at: monotonicNow())
        #expect(sink.writableFrames == 960)
        let block = [Int16](repeating: 0, count: 480)
        block.withUnsafeBufferPointer { sink.write($0) }
        #expect(sink.writableFrames == 480)
        block.withUnsafeBufferPointer { sink.write($0) }
        #expect(sink.writableFrames == 0)
        server.stop()
    }

    @Test func missingDevicesAreExplained() throws {
        let server = try server()
        for name in ["no-such-device", "hw:7,3"] {
            let error = #expect(throws: AudioError.self) { try ALSASink(pcm: name).start() }
            #expect(error?.code == .noDevice)
            #expect(error?.message.contains("alsa:\(name)") == true)
            #expect(error?.message.contains("\n") == false)
            #expect(error?.hint?.contains("--playback null") == true)
        }
        server.stop()
        let gone = #expect(throws: AudioError.self) { try ALSASource(pcm: "a2bmon").start() }
        #expect(gone?.code == .noDevice)
    }

    /// ALSA and its plugins like to print; a command's standard error belongs to the command.
    @Test func nothingIsPrinted() throws {
        let server = try server()
        let path = Self.directory.file("stderr")
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let saved = dup(2)
        dup2(file, 2)
        let error = #expect(throws: AudioError.self) { try ALSASink(pcm: "no-such-device").start() }
        _ = AudioDevices.list()
        dup2(saved, 2)
        close(saved)
        close(file)
        #expect(error?.code == .noDevice)
        #expect(!String(decoding: readFile(path), as: UTF8.self).contains("ALSA"))
        server.stop()
    }

    @Test func devicesAreListed() throws {
        let server = try server()
        let devices = AudioDevices.list()
        let sink = try #require(devices.first { $0.name == .alsa("a2b") })
        #expect(sink.summary == "Null sink a2b")
        #expect(sink.canPlay)
        #expect(!devices.contains { $0.name == .alsa("null") })
        #expect(devices.allSatisfy { !$0.summary.contains("\n") })
        server.stop()
    }
}

@Suite struct ALSAFailureTests {
    @Test(arguments: [
        (EBUSY, AudioError.Code.busy), (ENOENT, .noDevice), (ENODEV, .noDevice), (ECONNREFUSED, .noDevice),
        (EACCES, .noDevice), (EINVAL, .noDevice),
    ])
    func openingErrorsSayWhatToDo(code: Int32, expected: AudioError.Code) {
        let error = ALSAFailure.opening("hw:0", .capture, -code)
        #expect(error.code == expected)
        #expect(error.message.hasPrefix("cannot open capture device alsa:hw:0: "))
        #expect(error.hint != nil)
    }

    @Test func lossNamesTheDevice() {
        let error = ALSAFailure.lost(.alsa("default"), .playback, ENODEV)
        #expect(error.code == .deviceLost)
        #expect(error.message == "playback device alsa:default was lost: No such device")
    }
}

@Suite struct ALSAConversionTests {
    @Test(arguments: ALSAConversion.Encoding.allCases, [1, 2, 6])
    func roundTripIsExact(encoding: ALSAConversion.Encoding, channels: Int) {
        let conversion = ALSAConversion(encoding: encoding, channels: channels)
        let samples: [Int16] = [0, 1, -1, 32_767, -32_768, 12_345]
        var device = [UInt8](repeating: 0, count: samples.count * conversion.bytesPerFrame)
        var back = [Int16](repeating: 0, count: samples.count)
        device.withUnsafeMutableBytes { raw in
            guard let base = raw.baseAddress else { return }
            samples.withUnsafeBufferPointer { samples in
                samples.baseAddress.map { conversion.fromMono($0, frames: samples.count, into: base) }
            }
            back.withUnsafeMutableBufferPointer { back in
                back.baseAddress.map { conversion.toMono(base, frames: back.count, into: $0) }
            }
        }
        #expect(back == samples)
    }

    @Test func channelsAreAveragedAndFloatsClamped() {
        let frames: [Float] = [0.5, -0.25, 4, 4, -.infinity, 0, .nan, 1]
        var mono = [Int16](repeating: 0, count: 4)
        frames.withUnsafeBytes { raw in
            mono.withUnsafeMutableBufferPointer { mono in
                guard let source = raw.baseAddress, let target = mono.baseAddress else { return }
                ALSAConversion(encoding: .float32, channels: 2).toMono(source, frames: 4, into: target)
            }
        }
        #expect(mono == [4_096, 32_767, -32_768, 0])
    }
}
