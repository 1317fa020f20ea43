import Glibc
import Testing

@testable import Audio

@Suite struct WAVWriterTests {
    let scratch = Scratch()

    @Test func monoReadsBackExactly() throws {
        let path = scratch.file("out.wav")
        let samples = babble(seconds: 0.5, seed: 8)
        let sink = try makeSink(.file(path))
        try sink.start()
        samples.withUnsafeBufferPointer { sink.write($0) }
        sink.stop()
        sink.stop()
        #expect(try WAVFile(path: path).channels == [samples])
        #expect(readFile(path).count == 44 + samples.count * 2)
        #expect(sink.counters.frames == UInt64(samples.count))
        #expect(sink.takeFailure() == nil)
        // What comes too late is dropped, and counted.
        samples.withUnsafeBufferPointer { sink.write($0) }
        #expect(sink.counters.droppedFrames == UInt64(samples.count))
    }

    @Test func stereoKeepsOneTimeBase() throws {
        let path = scratch.file("out.wav")
        let recorder = try StereoRecorder(path: path)
        let left: [Int16] = [1, 2, 3, 4]
        let right: [Int16] = [9, 8]
        for _ in 0..<100 {
            left.withUnsafeBufferPointer { left in
                right.withUnsafeBufferPointer { recorder.write(left: left, right: $0) }
            }
        }
        recorder.stop()
        let file = try WAVFile(path: path)
        #expect(file.channels.first == (0..<100).flatMap { _ in left })
        #expect(file.channels.last == (0..<100).flatMap { _ in [9, 8, 0, 0] as [Int16] })
    }

    @Test func sidesMayComeAtDifferentTimes() throws {
        let path = scratch.file("out.wav")
        let recorder = try StereoRecorder(path: path)
        let left = (0..<9_600).map { Int16($0) }
        let right = left.map { -$0 }
        left[..<1_000].withUnsafeBufferPointer { recorder.appendLeft($0) }
        right[..<3_000].withUnsafeBufferPointer { recorder.appendRight($0) }
        left[1_000...].withUnsafeBufferPointer { recorder.appendLeft($0) }
        right[3_000...].withUnsafeBufferPointer { recorder.appendRight($0) }
        recorder.stop()
        let file = try WAVFile(path: path)
        // The left side was 6,600 frames ahead for a moment, 1,800 more than it may be: silence on the right.
        #expect(file.channels.first?.prefix(9_600) == left[...])
        #expect(file.channels.last == right[..<3_000] + [Int16](repeating: 0, count: 1_800) + right[3_000...])
    }

    @Test func sideThatNeverComesIsSilent() throws {
        let path = scratch.file("out.wav")
        let recorder = try StereoRecorder(path: path)
        let right = babble(seconds: 1, seed: 4)
        right.withUnsafeBufferPointer { recorder.appendRight($0) }
        recorder.stop()
        #expect(try WAVFile(path: path).channels == [[Int16](repeating: 0, count: right.count), right])
    }

    /// What is on the disk while the recording goes on is a valid file: so it is after `kill -9`.
    @Test func readableWhileRecording() throws {
        let path = scratch.file("out.wav")
        let recorder = try StereoRecorder(path: path)
        let block = sine(440, seconds: 0.01)
        var readable = 0
        let grew = everyTenMilliseconds(limit: .seconds(15)) { _ in
            block.withUnsafeBufferPointer { recorder.write(left: $0, right: $0) }
            // As a strict reader sees it: by the header's sizes alone.
            let bytes = readFile(path)
            guard bytes.count > 44 else { return false }
            let data = bytes[40..<44].reversed().reduce(0) { $0 << 8 | Int($1) }
            let riff = bytes[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) }
            guard data > 0, riff == data + 36, data <= bytes.count - 44, data % 4 == 0 else { return false }
            readable = data / 4
            return true
        }
        #expect(grew)
        #expect(readable > 10_000)
        #expect(try WAVFile(path: path).channels.first?.prefix(480) == block[...])
        recorder.stop()
        let total = try WAVFile(path: path).channels.first?.count ?? 0
        #expect(UInt64(total) == recorder.counters.frames)
    }

    @Test func pathsThatCannotBeCreated() {
        for path in [scratch.file("no/such/directory.wav"), scratch.path, "/dev/null"] {
            let error = #expect(throws: AudioError.self) { try StereoRecorder(path: path) }
            #expect(error?.code == .cannotCreate)
            #expect(error?.message.contains(path) == true)
        }
    }

    @Test func fullDiskIsReportedOnceAndEndsNothing() throws {
        let sink = try WAVWriter(path: scratch.file("out.wav"), channels: 1)
        // From here on the file is on a disk without space.
        let full = open("/dev/full", O_WRONLY)
        #expect(dup2(full, sink.worker.descriptor) == sink.worker.descriptor)
        close(full)
        let block = [Int16](repeating: 1, count: 480)
        let failed = everyTenMilliseconds(limit: .seconds(15)) { _ in
            block.withUnsafeBufferPointer { sink.write($0) }
            return sink.isLost
        }
        #expect(failed)
        let failure = sink.takeFailure()
        #expect(failure?.code == .writeFailed)
        #expect(failure?.message.contains("No space left") == true)
        #expect(failure?.message.contains("out.wav") == true)
        #expect(sink.takeFailure() == nil)
        let before = sink.counters.droppedFrames
        block.withUnsafeBufferPointer { sink.write($0) }
        #expect(sink.counters.droppedFrames == before + 480)
        sink.stop()
    }

    @Test func slowDiskCostsFramesNotTime() throws {
        let sink = try WAVWriter(path: scratch.file("out.wav"), channels: 2)
        // 60 s at once: more than the queue holds, whatever the disk does.
        let second = [Int16](repeating: 1, count: 48_000)
        for _ in 0..<60 { second.withUnsafeBufferPointer { sink.write($0) } }
        sink.stop()
        #expect(sink.counters.droppedFrames > 0)
        #expect(sink.counters.frames >= 4 * 48_000)
        #expect(sink.counters.frames + sink.counters.droppedFrames == 60 * 48_000)
        #expect(
            try WAVFile(path: scratch.file("out.wav")).channels.first?.count == Int(sink.counters.frames))
    }

    @Test func sizesStopAtFourGigabytes() {
        let header = WAVFileWorker.header(channels: 2, dataBytes: 6_000_000_000)
        #expect(header.count == WAVFileWorker.headerBytes)
        #expect(header[4..<8].allSatisfy { $0 == 0xFF })
        #expect(header[40..<44].allSatisfy { $0 == 0xFF })
    }
}
