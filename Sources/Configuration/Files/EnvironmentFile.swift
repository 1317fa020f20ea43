import Glibc
import Token

/// How clients find the embedded environment: a file in the runtime directory that its process writes when it listens.
///
/// It holds the secret of the environment's application, so its mode is 0600 and one of another mode is refused.
public struct EnvironmentFile: Sendable, Equatable {
    /// The environment's process.
    public var process: ProcessIdentity
    /// The numeric address it listens on.
    public var host: String
    /// The port it listens on.
    public var port: UInt16
    /// The transports it listens with.
    public var transports: [SignallingTransport]
    /// The domain of its users' addresses and the realm of its challenges.
    public var realm: String
    /// The key of its application.
    public var applicationKey: String
    /// The secret of its application.
    public var applicationSecret: ApplicationSecret
    /// When it began to listen, in Unix seconds.
    public var startedAt: Int64
    /// The version of the program.
    public var version: String

    /// The number of the environment's process.
    public var pid: Int32 { process.pid }

    /// Whether the environment's process runs; if not, the file was left behind by a crash.
    public var isRunning: Bool { process.isRunning }

    private static let maxBytes = 16_384

    /// Describes an environment, by default one in this process.
    public init(
        process: ProcessIdentity = .current(), host: String, port: UInt16, transports: [SignallingTransport],
        realm: String, applicationKey: String, applicationSecret: ApplicationSecret, startedAt: Int64, version: String
    ) {
        self.process = process
        self.host = host
        self.port = port
        self.transports = transports
        self.realm = realm
        self.applicationKey = applicationKey
        self.applicationSecret = applicationSecret
        self.startedAt = startedAt
        self.version = version
    }

    /// Writes the file in one step, mode 0600, in place of an older one.
    public func write(to path: String) throws(ConfigurationError) {
        var members: [(name: String, value: JSONText)] = [("pid", .integer(Int64(process.pid)))]
        // As text: JSON readers elsewhere may hold numbers as doubles.
        if let ticks = process.startTicks { members.append(("processStart", .string(String(ticks)))) }
        if let bootID = process.bootID { members.append(("bootID", .string(bootID))) }
        members += [
            ("host", .string(host)), ("port", .integer(Int64(port))),
            ("transports", .array(transports.map { .string($0.rawValue) })), ("realm", .string(realm)),
            ("applicationKey", .string(applicationKey)), ("applicationSecret", .string(applicationSecret.revealed())),
            ("startedAt", .integer(startedAt)), ("version", .string(version)),
        ]
        try AtomicFile.write(Array((JSONText.object(members).text() + "\n").utf8), to: path)
    }

    /// Reads the file; nil when there is none. Whether its process still runs is `isRunning`.
    /// - Throws: `exposed` when others can read it, `syntax` or `wrongType` when it is not what `write` writes.
    public static func read(_ path: String) throws(ConfigurationError) -> EnvironmentFile? {
        guard let file = try ProtectedFile.read(path, limit: maxBytes) else { return nil }
        try file.requirePrivate(because: "holds a secret")
        guard let root = try? JSON5Reader.parse(file.bytes), root.object != nil else {
            throw unusable(path, .syntax, "it is not JSON")
        }
        func text(_ name: String) throws(ConfigurationError) -> String {
            guard let text = root[name]?.string, !text.isEmpty else {
                throw unusable(path, .wrongType, "'\(name)' is no text")
            }
            return text
        }
        func number<Number: FixedWidthInteger>(_ name: String) throws(ConfigurationError) -> Number {
            guard let integer = root[name]?.integer, let number = Number(exactly: integer) else {
                throw unusable(path, .wrongType, "'\(name)' is no number, or out of range")
            }
            return number
        }
        let names = root["transports"]?.array ?? []
        let transports = names.compactMap { $0.string.flatMap(SignallingTransport.init(rawValue:)) }
        guard !transports.isEmpty else { throw unusable(path, .wrongType, "'transports' names none that is known") }
        let secretText = try text("applicationSecret")
        let secret: ApplicationSecret
        do throws(TokenError) {
            secret = try ApplicationSecret(base64: secretText)
        } catch {
            throw unusable(path, .invalidValue, error.message)
        }
        return EnvironmentFile(
            process: ProcessIdentity(
                pid: try number("pid"), startTicks: root["processStart"]?.string.flatMap { UInt64($0) },
                bootID: root["bootID"]?.string),
            host: try text("host"), port: try number("port"), transports: transports, realm: try text("realm"),
            applicationKey: try text("applicationKey"), applicationSecret: secret,
            startedAt: try number("startedAt"), version: try text("version"))
    }

    /// The environment that runs now; nil when there is no file or its process is gone.
    public static func running(_ path: String) throws(ConfigurationError) -> EnvironmentFile? {
        guard let file = try read(path), file.isRunning else { return nil }
        return file
    }

    /// Removes the file when this process wrote it, so that a successor's is left alone. Returns whether it did.
    @discardableResult
    public static func removeOwn(_ path: String) -> Bool {
        guard let file = try? read(path), file.process == .current() else { return false }
        return unlink(path) == 0
    }

    private static func unusable(_ path: String, _ code: ConfigurationError.Code, _ reason: String)
        -> ConfigurationError
    {
        ConfigurationError(
            code, "the environment file \(path) is unusable: \(reason)",
            hint: "stop the environment and run: rm \(shellWord(path))")
    }
}
