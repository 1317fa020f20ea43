import CSys
import Glibc

/// Makes a process the only one of its kind: an exclusive lock (flock) on a file, which the system drops when the
/// process ends, however it ends. The file holds the owner's process id and stays when the lock is released, as removing
/// it could take it from under another process that is just locking it.
public final class FileLock: Sendable {
    /// The lock's file.
    public let path: String

    private let descriptor: FileDescriptor

    private init(path: String, descriptor: FileDescriptor) {
        self.path = path
        self.descriptor = descriptor
    }

    /// Takes the lock without waiting. Any thread. Children do not inherit it (O_CLOEXEC).
    ///
    /// Throws `.alreadyHeld` with the owner's process id (nil when it has not written it yet), `.notPermitted` when the
    /// path is a symbolic link or may not be opened.
    public static func acquire(_ path: String) throws(NetworkError) -> FileLock {
        // The file may be removed between open and lock; then the lock is on a file that nobody else will find.
        for _ in 0..<8 {
            let result = csys_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
            if result < 0, NetworkError.errorNumber(result) == ELOOP {
                throw NetworkError(.notPermitted, "the lock file \(path) is a symbolic link; remove it")
            }
            let descriptor = try FileDescriptor(result, "open the lock file \(path)")
            if flock(descriptor.number, LOCK_EX | LOCK_NB) != 0 {
                let number = errno
                guard number == EWOULDBLOCK else { throw NetworkError(errno: number, "lock \(path)") }
                let owner = readOwner(descriptor)
                throw NetworkError(
                    .alreadyHeld(owner),
                    "\(path) is held by another process" + (owner.map { " (process \($0)); end it first" } ?? ""))
            }
            guard let opened = FileIdentity(descriptor: descriptor.number), let named = FileIdentity(path: path),
                opened.isSameFile(as: named)
            else { continue }
            try writeOwner(descriptor, path)
            return FileLock(path: path, descriptor: descriptor)
        }
        throw NetworkError(.other(EAGAIN), "cannot lock \(path): the file is replaced again and again")
    }

    /// Gives the lock up; so does letting go of the object.
    public func release() {
        guard descriptor.number >= 0 else { return }
        _ = ftruncate(descriptor.number, 0)
        descriptor.close()
    }

    private static func readOwner(_ descriptor: FileDescriptor) -> Int32? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = pread(descriptor.number, &bytes, bytes.count, 0)
        guard count > 0 else { return nil }
        return Int32(String(decoding: bytes.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }

    private static func writeOwner(_ descriptor: FileDescriptor, _ path: String) throws(NetworkError) {
        let text = Array("\(getpid())\n".utf8)
        guard ftruncate(descriptor.number, 0) == 0, pwrite(descriptor.number, text, text.count, 0) == text.count else {
            throw NetworkError(errno: errno, "write the process id to \(path)")
        }
    }
}
