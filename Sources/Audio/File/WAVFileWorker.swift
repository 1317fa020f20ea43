import Glibc
import Synchronization

/// The thread behind a `WAVWriter`: moves samples from the queue to the file.
final class WAVFileWorker: @unchecked Sendable {
    let path: String
    /// 0 while all is well, the `errno` of the failure, −1 when closed.
    let failureCode = Atomic<Int32>(0)

    private let channels: Int
    private let queue: SampleQueue
    let descriptor: Int32
    private var wakeRead: Int32 = -1
    private var wakeWrite: Int32 = -1
    private var thread = pthread_t()
    private let finished = Mutex(false)
    /// Bytes of samples in the file. Touched by the thread only.
    private var dataBytes: UInt64 = 0
    private var announcedBytes: UInt64 = 0

    /// How often the queue is emptied and how often the header is refreshed, in milliseconds.
    private static let drainInterval: Int32 = 200
    private static let drainsPerHeader = 5
    static let headerBytes = 44

    init(path: String, channels: Int, queue: SampleQueue) throws(AudioError) {
        self.path = path
        self.channels = channels
        self.queue = queue
        let opened = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0o600)
        guard opened >= 0 else { throw Self.cannotCreate(path, errno) }
        descriptor = opened
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw AudioError(
                .cannotCreate, "cannot record to '\(path)': it is no regular file",
                hint: "a WAV header is rewritten while recording, which needs a regular file")
        }
        var ends: [Int32] = [-1, -1]
        let headerStatus = writeHeader()
        guard headerStatus == 0, pipe(&ends) == 0 else {
            let error = headerStatus == 0 ? errno : headerStatus
            close(descriptor)
            throw Self.cannotCreate(path, error)
        }
        wakeRead = ends[0]
        wakeWrite = ends[1]
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let threadStatus = startThread()
        guard threadStatus == 0 else {
            close(descriptor)
            close(wakeRead)
            close(wakeWrite)
            throw Self.cannotCreate(path, threadStatus)
        }
    }

    /// Ends the thread after it wrote everything; waits for it. Idempotent, any thread.
    func finish() {
        finished.withLock { done in
            guard !done else { return }
            done = true
            // A byte, not only the close: a child process may have inherited the pipe's end.
            var byte: UInt8 = 1
            _ = Glibc.write(wakeWrite, &byte, 1)
            pthread_join(thread, nil)
            close(wakeWrite)
            close(wakeRead)
            close(descriptor)
            _ = failureCode.compareExchange(expected: 0, desired: -1, ordering: .relaxed)
        }
    }

    private func startThread() -> Int32 {
        // Retained by the thread until it ends.
        let reference = Unmanaged.passRetained(self)
        let status = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<WAVFileWorker>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, reference.toOpaque())
        if status != 0 { reference.release() }
        return status
    }

    private func run() {
        var drains = 0
        var open = true
        while open {
            var wake = pollfd(fd: wakeRead, events: Int16(POLLIN), revents: 0)
            // A byte in the pipe ends the recording.
            open = poll(&wake, 1, Self.drainInterval) <= 0
            drain()
            drains += 1
            if !open || drains % Self.drainsPerHeader == 0 { refreshHeader() }
        }
    }

    private func drain() {
        while failureCode.load(ordering: .relaxed) == 0 {
            let front = queue.front
            guard front.count > 0 else { return }
            let status = writeAll(UnsafeRawBufferPointer(front), at: UInt64(Self.headerBytes) + dataBytes)
            if status != 0 {
                failureCode.store(status, ordering: .relaxed)
                return
            }
            dataBytes += UInt64(front.count * 2)
            queue.consume(front.count)
        }
    }

    private func refreshHeader() {
        guard dataBytes != announcedBytes else { return }
        announcedBytes = dataBytes
        let status = writeHeader()
        if status != 0 { _ = failureCode.compareExchange(expected: 0, desired: status, ordering: .relaxed) }
    }

    private func writeHeader() -> Int32 {
        let header = Self.header(channels: channels, dataBytes: dataBytes)
        return header.withUnsafeBytes { writeAll($0, at: 0) }
    }

    /// Samples are in the machine's byte order, which is the file's on every platform Swift for Linux runs on.
    private func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) -> Int32 {
        guard let base = bytes.baseAddress else { return 0 }
        var done = 0
        while done < bytes.count {
            let count = pwrite(descriptor, base + done, bytes.count - done, off_t(offset) + off_t(done))
            if count < 0 && errno == EINTR { continue }
            if count < 0 { return errno }
            if count == 0 { return ENOSPC }
            done += count
        }
        return 0
    }

    /// The canonical header. Past 4 GB (6 hours of stereo) the sizes stay at their maximum: readers take that for
    /// "to the end of the file".
    static func header(channels: Int, dataBytes: UInt64) -> [UInt8] {
        let size = UInt32(clamping: dataBytes)
        let rate = UInt32(AudioFormat.sampleRate)
        let frameBytes = UInt32(channels * 2)
        var bytes: [UInt8] = []
        func append(_ text: String) { bytes += Array(text.utf8) }
        func append32(_ value: UInt32) { withUnsafeBytes(of: value.littleEndian) { bytes += Array($0) } }
        func append16(_ value: UInt16) { withUnsafeBytes(of: value.littleEndian) { bytes += Array($0) } }
        append("RIFF")
        append32(UInt32(clamping: dataBytes + UInt64(headerBytes - 8)))
        append("WAVEfmt ")
        append32(16)
        append16(1)
        append16(UInt16(channels))
        append32(rate)
        append32(rate * frameBytes)
        append16(UInt16(frameBytes))
        append16(16)
        append("data")
        append32(size)
        return bytes
    }

    private static func cannotCreate(_ path: String, _ code: Int32) -> AudioError {
        AudioError(
            .cannotCreate, "cannot create '\(path)': \(String(cString: strerror(code)))",
            hint: "choose a path in a directory that exists and is writable")
    }
}
