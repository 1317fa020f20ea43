import Glibc

/// Directories that hold sockets, secrets and recordings: ours, and closed to others.
enum PrivateDirectory {
    /// Creates `path` and what is missing above it with mode 0700, and checks that `path` is a directory of this user that
    /// nobody else can enter.
    static func prepare(_ path: String) throws(ConfigurationError) {
        try create(path)
        var status = stat()
        // Not following links: one here would lead sockets and secrets to where somebody else wants them.
        guard lstat(path, &status) == 0 else {
            throw ConfigurationError(.cannotWrite, "the directory \(path) cannot be used: \(systemMessage(errno))")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw ConfigurationError(
                .fileKind, "\(path) is not a directory but is needed as one", hint: "move it away")
        }
        guard status.st_uid == geteuid() else {
            throw ConfigurationError(
                .exposed, "the directory \(path) belongs to another user (uid \(status.st_uid))",
                hint: "remove it, or set XDG_RUNTIME_DIR and XDG_STATE_HOME to directories of your own")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw ConfigurationError(
                .exposed, "the directory \(path) is open to other users (mode \(octal(status.st_mode)))",
                hint: "run: chmod 700 \(shellWord(path))")
        }
    }

    /// `mkdir -p` with mode 0700, as the XDG specification asks.
    static func create(_ path: String) throws(ConfigurationError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        let number = errno
        if number == ENOENT, let parent = parent(of: path) {
            try create(parent)
            if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        }
        throw ConfigurationError(
            .cannotWrite, "the directory \(path) cannot be created: \(systemMessage(number))",
            hint: "create it, or set XDG_RUNTIME_DIR and XDG_STATE_HOME to directories that you may write to")
    }

    static func parent(of path: String) -> String? {
        let bytes = path.utf8
        var end = bytes.endIndex
        while end > bytes.startIndex, bytes[bytes.index(before: end)] == UInt8(ascii: "/") {
            end = bytes.index(before: end)
        }
        guard let slash = bytes[..<end].lastIndex(of: UInt8(ascii: "/")), slash > bytes.startIndex else { return nil }
        return String(path[..<slash])
    }
}
