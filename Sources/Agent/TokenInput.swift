import Configuration
import Glibc
import Token

/// Reads tokens from where others cannot see them.
public enum TokenInput {
    /// A token for registering, which must at least have a token's form (RFC 7515, 3.1): three parts of base64url. What
    /// they say is the platform's to judge.
    public static func compact(_ text: String, from origin: String) throws(CommandFailure) -> String {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isCompact =
            text.utf8.count <= RegistrationToken.maxBytes && parts.count == 3
            && parts.allSatisfy { part in
                !part.isEmpty
                    && part.allSatisfy { byte in
                        switch byte {
                        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                        default: false
                        }
                    }
            }
        guard isCompact else {
            throw CommandFailure(
                exit: .dataUnusable, step: "token", message: "\(origin) does not hold one registration token",
                hint: "a token is three base64url parts joined by dots, and nothing else")
        }
        return text
    }

    /// Reads a token to register with from a file, which others must not be able to read: whoever has the token is the
    /// user. A file of root's that is shared with a group is how services get secrets (systemd credentials), and is read.
    public static func readPrivate(path: String) throws(CommandFailure) -> String {
        try read(path: path) { status throws(CommandFailure) in
            guard status.st_mode & S_IFMT == S_IFREG else { return }
            let user = geteuid()
            let shared: mode_t = status.st_uid == 0 && user != 0 ? 0o037 : 0o077
            guard status.st_mode & shared == 0 else {
                let mode = String(status.st_mode & 0o7777, radix: 8)
                throw CommandFailure(
                    exit: .configuration, step: "token",
                    message: "token file '\(path)' is open to other users (mode 0\(mode))",
                    hint: "run: chmod 600 \(shellWord(path))")
            }
        }
    }

    /// Reads a token from a file, whoever else can.
    public static func read(path: String) throws(CommandFailure) -> String {
        try read(path: path) { _ in }
    }

    private static func read(
        path: String, check: (stat) throws(CommandFailure) -> Void
    ) throws(CommandFailure) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let isMissing = errno == ENOENT || errno == ENOTDIR
            throw CommandFailure(
                exit: isMissing ? .inputMissing : .ioError,
                message: "token file '\(path)' cannot be read: \(String(cString: strerror(errno)))",
                hint: "check the path and the file's mode")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw CommandFailure(
                exit: .ioError, message: "token file '\(path)' cannot be read: \(String(cString: strerror(errno)))",
                hint: "check the path and the file's mode")
        }
        try check(status)
        return try read(descriptor: descriptor, from: "'\(path)'")
    }

    /// Reads a token from an open file, to its end. Blanks around the token are ignored.
    public static func read(descriptor: Int32, from origin: String) throws(CommandFailure) -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        // A little more than the largest token, so that one that is too large is called that.
        while bytes.count <= 2 * RegistrationToken.maxBytes {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count == 0 { break }
            if count > 0 {
                bytes += buffer[..<count]
            } else if errno != EINTR {
                throw CommandFailure(
                    exit: .ioError,
                    message: "the token cannot be read from \(origin): \(String(cString: strerror(errno)))",
                    hint: "check what the command is given")
            }
        }
        return try checked(bytes, from: origin)
    }

    /// The token without blanks around it.
    public static func checked(_ bytes: [UInt8], from origin: String) throws(CommandFailure) -> String {
        guard let first = bytes.firstIndex(where: { $0 > 0x20 }), let last = bytes.lastIndex(where: { $0 > 0x20 })
        else {
            throw CommandFailure(
                exit: .dataUnusable, message: "token: there is none in \(origin)",
                hint: "'sinchctl jwt sign' makes one")
        }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }
}
