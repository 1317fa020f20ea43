import CSys
import Glibc

/// Tells whether a small system file was changed or replaced since it was read.
struct FileVersion: Equatable {
    private let device: UInt
    private let inode: UInt
    private let size: Int
    private let seconds: Int
    private let nanoseconds: Int

    /// Nil when there is no such file.
    init?(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        device = UInt(status.st_dev)
        inode = UInt(status.st_ino)
        size = Int(status.st_size)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }

    /// The file's bytes, at most so many; none when it cannot be read.
    static func contents(of path: String, maximumBytes: Int) -> [UInt8] {
        guard let descriptor = try? FileDescriptor(csys_open(path, O_RDONLY | O_NONBLOCK, 0), "open \(path)") else {
            return []
        }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < maximumBytes {
            let count = chunk.withUnsafeMutableBytes { Glibc.read(descriptor.number, $0.baseAddress, $0.count) }
            guard count > 0 else { break }
            bytes += chunk.prefix(count)
        }
        return bytes
    }
}
