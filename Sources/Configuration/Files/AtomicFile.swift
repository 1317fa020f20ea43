import Glibc

/// Writes whole files so that a reader sees the old content or the new, never half of one, also after a crash.
public enum AtomicFile {
    /// Writes `bytes` to `path` with mode 0600.
    ///
    /// The bytes go into a new file beside it, are flushed to the disk and then take the name. What was at `path`, also a
    /// symbolic link, is replaced; without `replacing`, an existing file is left alone and reported (`exists`).
    public static func write(_ bytes: [UInt8], to path: String, replacing: Bool = true) throws(ConfigurationError) {
        let (directory, name) = split(path)
        guard !name.isEmpty, name != ".", name != ".." else {
            throw ConfigurationError(.fileKind, "\(path) names no file", hint: "name a file")
        }
        var generator = SystemRandomNumberGenerator()
        let temporary = directory + "." + name + "." + String(generator.next(), radix: 16) + ".tmp"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure(path, errno) }
        var keep = false
        defer { if !keep { unlink(temporary) } }
        // The umask may have taken bits away; the mode is what was promised.
        var number: Int32 = fchmod(descriptor, 0o600) == 0 ? 0 : errno
        if number == 0 { number = writeAll(bytes, descriptor) }
        if number == 0, fsync(descriptor) != 0 { number = errno }
        if close(descriptor) != 0, number == 0 { number = errno }
        guard number == 0 else { throw failure(path, number) }

        if replacing {
            guard rename(temporary, path) == 0 else { throw failure(path, errno) }
            keep = true
        } else {
            // `link` fails when the name is taken, which `rename` does not.
            guard link(temporary, path) == 0 else { throw failure(path, errno) }
        }
        synchronize(directory)
    }

    /// Makes the new name itself durable. Some file systems refuse to flush a directory; the file is complete anyway.
    private static func synchronize(_ directory: String) {
        let descriptor = open(directory.isEmpty ? "." : directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    private static func writeAll(_ bytes: [UInt8], _ descriptor: Int32) -> Int32 {
        bytes.withUnsafeBytes { buffer in
            var rest = buffer[...]
            while !rest.isEmpty {
                // The slice lies within the array, which lives until the closure returns.
                let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count < 0 {
                    if errno == EINTR { continue }
                    return errno
                }
                rest = rest.dropFirst(count)
            }
            return 0
        }
    }

    /// The directory with its slash (empty for the current one) and the last component.
    private static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return ("", path) }
        let next = path.utf8.index(after: slash)
        return (String(path[..<next]), String(path[next...]))
    }

    private static func failure(_ path: String, _ number: Int32) -> ConfigurationError {
        if number == EEXIST {
            return ConfigurationError(.exists, "\(path) exists already", hint: "edit it, or move it away first")
        }
        let hint =
            switch number {
            case ENOENT: "create its directory first"
            case EACCES, EPERM, EROFS: "choose a place that you may write to"
            case ENOSPC, EDQUOT: "free some space"
            default: nil as String?
            }
        return ConfigurationError(.cannotWrite, "\(path) cannot be written: \(systemMessage(number))", hint: hint)
    }
}
