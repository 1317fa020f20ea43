import Glibc
import Synchronization

/// Writes a 48 kHz, 16-bit WAV file, mono or stereo.
///
/// The media thread only puts samples into a queue of 4 seconds; a thread of the writer's own does the disk I/O. It
/// refreshes the sizes in the header every second, so that the file is readable after `kill -9`. A full disk is
/// reported once (`takeFailure`) and ends the recording, not the call. The file is readable by its owner only:
/// it holds a conversation.
public final class WAVWriter: AudioSink, @unchecked Sendable {
    /// The name it was made from.
    public let name: AudioDeviceName
    /// 1 or 2.
    public let channels: Int
    /// Frames taken so far; `droppedFrames` counts those that a slow or full disk cost.
    public private(set) var counters = AudioDeviceCounters()

    private let queue: SampleQueue
    let worker: WAVFileWorker
    private var reported = false

    /// Creates the file, replacing an old one, writes an empty header, and starts the writing thread.
    ///
    /// - Throws: `.cannotCreate` when the file cannot be created.
    public init(path: String, channels: Int) throws(AudioError) {
        guard channels == 1 || channels == 2 else {
            throw AudioError(.internal, "cannot write a WAV file with \(channels) channels")
        }
        self.channels = channels
        name = .file(path)
        queue = SampleQueue(capacity: 4 * AudioFormat.sampleRate * channels)
        worker = try WAVFileWorker(path: path, channels: channels, queue: queue)
    }

    deinit {
        worker.finish()
    }

    /// Does nothing: the file is open from `init` on.
    public func start() {}

    /// Appends mono samples (to both channels of a stereo file).
    public func write(_ buffer: UnsafeBufferPointer<Int16>) {
        write(left: buffer, right: buffer)
    }

    /// Appends frames; the shorter side is filled up with silence. A mono file takes the left side.
    public func write(left: UnsafeBufferPointer<Int16>, right: UnsafeBufferPointer<Int16>) {
        let frames = channels == 1 ? left.count : max(left.count, right.count)
        guard worker.failureCode.load(ordering: .relaxed) == 0, queue.room >= frames * channels else {
            counters.droppedFrames &+= UInt64(frames)
            return
        }
        if channels == 1 {
            queue.write(count: frames) { left[$0] }
        } else {
            queue.write(count: frames * 2) { index in
                let side = index & 1 == 0 ? left : right
                return index >> 1 < side.count ? side[index >> 1] : 0
            }
        }
        counters.frames &+= UInt64(frames)
    }

    /// Writes what is queued, completes the header and closes the file. Waits for the disk: not for the media thread
    /// while a call is up. Later writes are dropped.
    public func stop() {
        worker.finish()
    }

    /// Whether writing failed for good, e.g. because the disk is full.
    public var isLost: Bool { worker.failureCode.load(ordering: .relaxed) > 0 }

    /// Why writing failed, once.
    public func takeFailure() -> AudioError? {
        let code = worker.failureCode.load(ordering: .relaxed)
        guard code > 0, !reported else { return nil }
        reported = true
        return AudioError(
            .writeFailed, "cannot write '\(worker.path)': \(String(cString: strerror(code)))",
            hint: "what was recorded so far is kept; free space on the disk before the next recording")
    }
}
