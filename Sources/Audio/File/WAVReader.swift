/// Plays a WAV file: any PCM format of 8 to 192 kHz and 1 to 8 channels becomes 48 kHz mono.
///
/// Files up to 64 MB are read into memory when the reader is made, so that the media thread never waits for a disk;
/// larger ones are streamed from the kernel's page cache.
public final class WAVReader: AudioSource, @unchecked Sendable {
    /// Files up to this size are held in memory.
    public static let preloadLimit = 64 << 20

    /// The name it was made from.
    public let name: AudioDeviceName
    /// How the file stores its samples.
    public let format: WAVFormat
    /// Frames of the file given so far, at 48 kHz.
    public private(set) var counters = AudioDeviceCounters()
    /// Whether the file has been played to its end.
    public private(set) var isExhausted = false
    /// Whether it starts again at its end.
    public let loops: Bool

    private let file: InputFile
    private let preloaded: UnsafeMutableRawBufferPointer?
    private let chunk: UnsafeMutableRawBufferPointer
    private let resampler: Resampler?
    /// Mono frames at the file's rate that wait for the resampler.
    private let input: UnsafeMutableBufferPointer<Int16>
    private var inputStart = 0
    private var inputEnd = 0
    private var position = 0
    private var flushed = false

    /// Source frames converted at a time.
    private static let chunkFrames = 512

    /// Opens the file and reads its header.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - loops: Whether it starts again at its end.
    ///   - preloadLimit: Bytes of samples up to which the file is held in memory.
    /// - Throws: `.missing` when there is no such file, `.unusable` when it is no PCM audio.
    public init(
        path: String, loops: Bool = false, preloadLimit: Int = WAVReader.preloadLimit
    ) throws(AudioError) {
        let file = try InputFile(path: path)
        let format = try Self.readFormat(of: file)
        resampler =
            format.sampleRate == AudioFormat.sampleRate
            ? nil : try Resampler(from: format.sampleRate, to: AudioFormat.sampleRate, alignsStart: true)
        name = .file(path)
        self.file = file
        self.format = format
        self.loops = loops
        input = .allocate(capacity: Self.chunkFrames)
        input.initialize(repeating: 0)
        chunk = .allocate(byteCount: Self.chunkFrames * format.bytesPerFrame, alignment: 16)
        if format.dataBytes <= preloadLimit {
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: format.dataBytes, alignment: 16)
            let count = file.read(at: format.dataOffset, into: memory)
            // A file that shrank meanwhile plays silence where it was cut.
            UnsafeMutableRawBufferPointer(rebasing: memory[count...]).initializeMemory(as: UInt8.self, repeating: 0)
            preloaded = memory
        } else {
            preloaded = nil
            file.prefetch()
        }
    }

    deinit {
        preloaded?.deallocate()
        chunk.deallocate()
        input.deallocate()
    }

    /// Goes to the beginning of the file.
    public func start() {
        counters = AudioDeviceCounters()
        isExhausted = false
        rewind()
    }

    /// Does nothing; the file stays open until the reader goes away.
    public func stop() {}

    /// Gives the next part of the file, then silence.
    public func read(into buffer: UnsafeMutableBufferPointer<Int16>) -> AudioRead {
        var filled = 0
        var restarted = false
        while filled < buffer.count && !isExhausted {
            if inputStart == inputEnd && !fetch() {
                // One restart in a block: a file of a few frames must not spin here.
                guard loops && !restarted else {
                    isExhausted = !loops
                    break
                }
                restarted = true
                rewind()
                continue
            }
            let pending = UnsafeBufferPointer(rebasing: input[inputStart..<inputEnd])
            let room = UnsafeMutableBufferPointer(rebasing: buffer[filled...])
            let (consumed, produced) = convert(pending, into: room)
            inputStart += consumed
            filled += produced
            if consumed == 0 && produced == 0 { break }
        }
        buffer.silence(from: filled)
        counters.frames &+= UInt64(filled)
        return AudioRead(frames: filled)
    }

    private func rewind() {
        position = 0
        inputStart = 0
        inputEnd = 0
        flushed = false
        resampler?.reset()
    }

    private func convert(
        _ samples: UnsafeBufferPointer<Int16>, into output: UnsafeMutableBufferPointer<Int16>
    ) -> (consumed: Int, produced: Int) {
        if let resampler { return resampler.process(samples, into: output) }
        let count = min(samples.count, output.count)
        for index in 0..<count { output[index] = samples[index] }
        return (count, count)
    }

    /// Fills `input` from the file, and at its end with the zeroes that get the last frames out of the resampler.
    private func fetch() -> Bool {
        inputStart = 0
        inputEnd = 0
        if position < format.frames {
            let frames = min(Self.chunkFrames, format.frames - position)
            let offset = position * format.bytesPerFrame
            let length = frames * format.bytesPerFrame
            position += frames
            if let preloaded {
                inputEnd = WAVSamples.mono(
                    UnsafeRawBufferPointer(rebasing: preloaded[offset..<offset + length]), format: format, into: input)
            } else {
                let target = UnsafeMutableRawBufferPointer(rebasing: chunk[0..<length])
                let count = file.read(at: format.dataOffset + offset, into: target)
                if count < length { position = format.frames }
                inputEnd = WAVSamples.mono(
                    UnsafeRawBufferPointer(rebasing: chunk[0..<count]), format: format, into: input)
            }
            if inputEnd > 0 { return true }
        }
        guard let resampler, !flushed else { return false }
        flushed = true
        inputEnd = min(resampler.inputLatency, input.count)
        UnsafeMutableBufferPointer(rebasing: input[0..<inputEnd]).update(repeating: 0)
        return inputEnd > 0
    }

    static func readFormat(of file: InputFile) throws(AudioError) -> WAVFormat {
        do {
            return try WAVHeaderParser.parse(fileSize: file.size) { file.bytes(at: $0, length: $1) }
        } catch {
            throw AudioError(
                .unusable, "cannot use '\(file.path)': \(error.reason)",
                hint: "convert it to a PCM WAV file, for example: sox INPUT -r 48000 -c 1 -b 16 OUTPUT.wav")
        }
    }
}
