import Configuration
import Glibc
import Token

extension ParsedCommand {
    /// A token from `--token-file`, `--token-fd`, the argument TOKEN, or standard input.
    func token(_ context: CommandContext) throws(CommandFailure) -> String {
        let takesArgument = command.arguments.contains { $0.name == "TOKEN" }
        let argument = takesArgument ? argument("TOKEN") : nil
        if let argument, argument != "-" {
            guard !isGiven("token-file"), !isGiven("token-fd") else {
                throw CommandFailure(
                    exit: .usage, message: "\(name): TOKEN and --token-file or --token-fd exclude each other",
                    hint: "give the token once")
            }
            return try TokenInput.checked(Array(argument.utf8), from: "TOKEN")
        }
        if let path = string("token-file"), path != "-" { return try TokenInput.read(path: path) }
        let descriptor = integer("token-fd").map { Int32(clamping: $0) } ?? context.standardInput
        if isatty(descriptor) == 1 { context.output.progress("enter the token, then Ctrl-D") }
        let origin = descriptor == context.standardInput ? "standard input" : "file descriptor \(descriptor)"
        return try TokenInput.read(descriptor: descriptor, from: origin)
    }
}

/// Reads tokens from where others cannot see them.
enum TokenInput {
    /// Reads a token from a file.
    static func read(path: String) throws(CommandFailure) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let isMissing = errno == ENOENT || errno == ENOTDIR
            throw CommandFailure(
                exit: isMissing ? .inputMissing : .ioError,
                message: "token file '\(path)' cannot be read: \(String(cString: strerror(errno)))",
                hint: "check the path and the file's mode")
        }
        defer { close(descriptor) }
        return try read(descriptor: descriptor, from: "'\(path)'")
    }

    /// Reads a token from an open file, to its end. Blanks around the token are ignored.
    static func read(descriptor: Int32, from origin: String) throws(CommandFailure) -> String {
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
    static func checked(_ bytes: [UInt8], from origin: String) throws(CommandFailure) -> String {
        guard let first = bytes.firstIndex(where: { $0 > 0x20 }), let last = bytes.lastIndex(where: { $0 > 0x20 })
        else {
            throw CommandFailure(
                exit: .dataUnusable, message: "token: there is none in \(origin)",
                hint: "'sinchctl jwt sign' makes one")
        }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }
}
