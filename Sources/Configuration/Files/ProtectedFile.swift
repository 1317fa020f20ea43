import Glibc

/// A file as it was when it was read, with who may read and write it.
struct ProtectedFile {
    /// The path it was opened by; a symbolic link is followed, and what follows describes its target.
    var path: String
    var bytes: [UInt8]
    /// The permission bits.
    var mode: UInt32
    var owner: UInt32

    /// Reads a regular file of at most `limit` bytes; nil when there is none.
    ///
    /// Permissions are taken from the open file, not from the path, so that they belong to the bytes read.
    static func read(_ path: String, limit: Int) throws(ConfigurationError) -> ProtectedFile? {
        // Without O_NONBLOCK, opening a pipe would wait for its writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            let number = errno
            if number == ENOENT {
                var status = stat()
                guard lstat(path, &status) == 0 else { return nil }
                throw ConfigurationError(
                    .unreadable, "\(path) is a symbolic link to a file that does not exist",
                    hint: "create its target or remove the link")
            }
            throw ConfigurationError(
                .unreadable, "\(path) cannot be read: \(systemMessage(number))",
                hint: number == EACCES ? "check the owner and the mode of the file and its directories" : nil)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw ConfigurationError(.unreadable, "\(path) cannot be read: \(systemMessage(errno))")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let kind = status.st_mode & S_IFMT == S_IFDIR ? "a directory" : "not a regular file"
            throw ConfigurationError(.fileKind, "\(path) is \(kind)", hint: "name a file")
        }
        let bytes = try contents(descriptor, path, limit: limit)
        return ProtectedFile(path: path, bytes: bytes, mode: status.st_mode & 0o7777, owner: status.st_uid)
    }

    private static func contents(_ descriptor: Int32, _ path: String, limit: Int) throws(ConfigurationError) -> [UInt8]
    {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = Glibc.read(descriptor, &block, block.count)
            if count < 0 {
                if errno == EINTR { continue }
                throw ConfigurationError(.unreadable, "\(path) cannot be read: \(systemMessage(errno))")
            }
            guard count > 0 else { return bytes }
            bytes.append(contentsOf: block.prefix(count))
            guard bytes.count <= limit else {
                throw ConfigurationError(
                    .tooLarge, "\(path) is larger than \(limit) bytes", hint: "is it the right file?")
            }
        }
    }

    /// Refuses a file that other users can read.
    func requirePrivate(because reason: String) throws(ConfigurationError) {
        try requireOwner()
        guard mode & 0o077 == 0 else {
            throw ConfigurationError(
                .exposed,
                "\(path) \(reason) and is open to other users (mode \(octal(mode)))",
                hint: "run: chmod 600 \(shellWord(path))")
        }
    }

    /// Refuses a file that other users can change: it decides which commands run and where calls go.
    func requireUnchangeableByOthers() throws(ConfigurationError) {
        try requireOwner()
        guard mode & 0o022 == 0 else {
            throw ConfigurationError(
                .exposed, "\(path) can be changed by other users (mode \(octal(mode)))",
                hint: "run: chmod go-w \(shellWord(path))")
        }
    }

    private func requireOwner() throws(ConfigurationError) {
        let user = geteuid()
        guard owner == user || owner == 0 || user == 0 else {
            throw ConfigurationError(
                .exposed, "\(path) belongs to another user (uid \(owner))", hint: "use a file of your own")
        }
    }
}

func octal(_ mode: UInt32) -> String {
    let digits = String(mode & 0o7777, radix: 8)
    return String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits
}
