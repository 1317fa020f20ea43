import Glibc

/// A regular file opened for reading.
final class InputFile: @unchecked Sendable {
    let path: String
    let size: Int
    private let descriptor: Int32

    /// Opens the file.
    ///
    /// - Throws: `.missing` when there is none, `.unusable` when it cannot be read or is no regular file.
    init(path: String) throws(AudioError) {
        self.path = path
        // Without O_NONBLOCK, a FIFO that nobody writes to would block here for ever.
        let opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard opened >= 0 else {
            let reason = String(cString: strerror(errno))
            if errno == ENOENT || errno == ENOTDIR {
                throw AudioError(
                    .missing, "cannot read '\(path)': \(reason)",
                    hint: "check the path; a relative one counts from the working directory")
            }
            throw AudioError(.unusable, "cannot read '\(path)': \(reason)", hint: "check the file's permissions")
        }
        var status = stat()
        guard fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG, let size = Int(exactly: status.st_size)
        else {
            close(opened)
            throw AudioError(.unusable, "cannot read '\(path)': it is no regular file", hint: "give a WAV file")
        }
        descriptor = opened
        self.size = size
    }

    deinit {
        close(descriptor)
    }

    /// Reads into the buffer; returns the bytes read, fewer at the end of the file or on an error.
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let base = buffer.baseAddress else { return 0 }
        var done = 0
        while done < buffer.count {
            let count = pread(descriptor, base + done, buffer.count - done, off_t(offset + done))
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            done += count
        }
        return done
    }

    /// Reads a small piece.
    func bytes(at offset: Int, length: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            count = read(at: offset, into: UnsafeMutableRawBufferPointer(buffer))
        }
    }

    /// Asks the kernel to have the whole file in its cache.
    func prefetch() {
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_WILLNEED)
    }
}
