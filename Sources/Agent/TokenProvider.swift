import Configuration
import FoundationEssentials
import Glibc
import Network
import SinchRTC
import Token

/// Where an agent's registration tokens come from: signed here, a file, a command, or what `start` was handed.
struct TokenProvider: Sendable {
    /// The application's name in tokens.
    let applicationKey: String
    private let source: Source

    private enum Source: Sendable {
        case secret(ApplicationSecret)
        case file(String)
        case command([String])
        case fixed(String)
        case environmentFile(String)
    }

    /// Chooses the source: what `start` says beats the profile, and the embedded environment has a secret of its own.
    init(options: AgentOptions, configuration: Configuration) throws(CommandFailure) {
        let profile = configuration.profile
        let environmentPath = configuration.paths.environmentFile
        if let token = options.token {
            source = .fixed(token)
        } else if let file = options.tokenFile {
            source = .file(file)
        } else {
            switch profile.tokenSource {
            case .signed(_, let secret): source = .secret(secret)
            case .command(let command): source = .command(command)
            case .file(let path): source = .file(path)
            case .url:
                throw CommandFailure(
                    exit: .configuration, step: "token",
                    message: "profile '\(profile.name)' names a tokenURL, which this version cannot fetch",
                    hint: "use tokenCommand, for example with curl")
            case nil:
                guard profile.usesEmbeddedEnvironment else {
                    throw CommandFailure(
                        exit: .configuration, step: "token",
                        message: "profile '\(profile.name)' has no way to get a registration token",
                        hint: "set applicationSecret or tokenCommand in it, or use --token-file")
                }
                source = .environmentFile(environmentPath)
            }
        }
        if let key = profile.applicationKey {
            applicationKey = key
        } else if case .fixed(let token) = source, let parsed = try? RegistrationToken.parse(token) {
            applicationKey = parsed.applicationKey
        } else if let file = try? EnvironmentFile.running(environmentPath) {
            applicationKey = file.applicationKey
        } else {
            applicationKey = "unknown"
        }
    }

    /// Gets a token; may take a while (a command runs). Any thread.
    func token(for user: String) async throws -> String {
        switch source {
        case .fixed(let token):
            return token
        case .secret(let secret):
            return try SinchJWT.sign(applicationKey: applicationKey, applicationSecret: secret, userId: user)
        case .environmentFile(let path):
            guard let file = try EnvironmentFile.running(path) else {
                throw SinchError(
                    .network, "the embedded environment is not running", hint: "run: sinchctl environment start")
            }
            return try SinchJWT.sign(
                applicationKey: file.applicationKey, applicationSecret: file.applicationSecret, userId: user)
        case .file(let path):
            return try TokenText.read(path: path)
        case .command(let command):
            let loop = try signallingLoop.get()
            let name = command.first ?? ""
            let result = try await ChildProcess.run(
                command, environment: ProcessEnvironment.all, timeout: .seconds(30), on: loop)
            guard result.status == .exited(0) else {
                throw SinchError(
                    .noCredentials, "the token command '\(name)' failed: \(result.status)",
                    hint: "run it by hand to see why", step: "token")
            }
            return try TokenText.check(result.output, source: "the output of '\(name)'")
        }
    }
}

/// Reads a token from where it may be kept.
public enum TokenText {
    /// Reads a token file: one line, white space around it ignored.
    public static func read(path: String) throws(CommandFailure) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw CommandFailure(
                exit: errno == ENOENT || errno == ENOTDIR ? .inputMissing : .ioError, step: "token",
                message: "cannot read the token file \(path): \(String(cString: strerror(errno)))",
                hint: "check the path and the file's mode")
        }
        defer { close(descriptor) }
        return try read(descriptor: descriptor, source: path)
    }

    /// Reads a token from an open descriptor until its end.
    public static func read(descriptor: Int32, source: String) throws(CommandFailure) -> String {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while bytes.count <= 16_384 {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw CommandFailure(
                    exit: .ioError, step: "token",
                    message: "cannot read the token from \(source): \(String(cString: strerror(errno)))")
            }
            if count == 0 { break }
            bytes += chunk[0..<count]
        }
        return try check(bytes, source: source)
    }

    /// Whether a word has a token's form (RFC 7515, 3.1): three parts of base64url. What they say is the platform's to
    /// judge.
    private static func isCompactToken(_ word: Substring) -> Bool {
        let parts = word.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 3
            && parts.allSatisfy { part in
                !part.isEmpty
                    && part.allSatisfy { byte in
                        switch byte {
                        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                        default: false
                        }
                    }
            }
    }

    /// Checks that bytes hold one token and nothing else.
    public static func check(_ bytes: [UInt8], source: String) throws(CommandFailure) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 1, let word = words.first, word.utf8.count <= 8_192, isCompactToken(word) else {
            throw CommandFailure(
                exit: .dataUnusable, step: "token", message: "\(source) does not hold one registration token",
                hint: "a token is three base64url parts joined by dots, and nothing else")
        }
        return String(word)
    }
}
