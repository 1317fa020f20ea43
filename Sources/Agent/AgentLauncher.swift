import Configuration
import FoundationEssentials
import Glibc
import Network
import Primitives
import SinchEnvironment
import SinchRTC

/// Where the parts of an agent live: its socket, its lock and its log, by user.
public struct AgentPlaces: Sendable {
    /// The control socket.
    public let socket: String
    /// The lock that makes the agent the only one for its user.
    public let lock: String
    /// What the background process says besides its protocol.
    public let log: String

    /// The places for a user; makes the directories.
    ///
    /// - Throws: `usage` for a user id that breaks the rules: it becomes part of a path here.
    public init(user: String, paths: Paths) throws(CommandFailure) {
        try Self.check(user)
        do {
            let runtime = try paths.prepareRuntimeDirectory()
            let state = try paths.prepareStateDirectory()
            let name = Self.fileName(user)
            socket = try paths.socketPath(name + Self.socketSuffix)
            lock = runtime + "/" + name + ".lock"
            log = state + "/" + name + ".log"
        } catch {
            throw error.commandFailure
        }
    }

    /// The control socket of a user's agent, whether or not one runs; creates nothing.
    public static func socket(user: String, paths: Paths) throws(CommandFailure) -> String {
        try check(user)
        do {
            return try paths.socketPath(fileName(user) + socketSuffix)
        } catch {
            throw error.commandFailure
        }
    }

    /// The control sockets in the runtime directory, in the order of their names; whether they answer is another matter.
    public static func sockets(in paths: Paths) -> [String] {
        guard let directory = opendir(paths.runtimeDirectory) else { return [] }
        defer { closedir(directory) }
        var found: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasPrefix(prefix), name.hasSuffix(socketSuffix) else { continue }
            found.append(paths.runtimeDirectory + "/" + name)
        }
        return found.sorted()
    }

    /// Whose socket it is, as far as its name tells: a long user id is cut in it.
    public static func user(ofSocket path: String) -> String {
        String((path.split(separator: "/").last ?? "").dropFirst(prefix.count).dropLast(socketSuffix.count))
    }

    /// The files of clients are told from those of the environment by it: a user may be called `environment`.
    private static let prefix = "client-"
    private static let socketSuffix = ".sock"

    private static func check(_ user: String) throws(CommandFailure) {
        do {
            try SinchRTC.checkUserId(user)
        } catch {
            throw CommandFailure(error)
        }
    }

    /// A file name for a user id, which may be 255 bytes long while a socket's path may not: long ones are cut and told
    /// apart by a hash.
    private static func fileName(_ user: String) -> String {
        guard user.utf8.count > 40 else { return prefix + user }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in user.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return prefix + user.prefix(24) + "." + String(hash, radix: 16)
    }
}

/// Starts background processes of this program and waits for their word.
public enum AgentLauncher {
    /// The variable that hands the options to the background process.
    static let optionsVariable = "SINCHCTL_AGENT_OPTIONS"

    /// Starts an agent and returns what it says when it is registered.
    ///
    /// - Throws: the agent's own failure when it cannot register; `unreachable` when it says nothing in time.
    public static func start(
        _ options: AgentOptions, configuration: Configuration, timeout: Duration
    ) throws(CommandFailure) -> JSONValue {
        var options = options
        let places = try AgentPlaces(user: options.user, paths: configuration.paths)
        let handover = try Self.hideToken(in: &options, beside: places)
        defer { if let handover { unlink(handover) } }
        var environment = ProcessEnvironment.all
        environment[optionsVariable] = String(decoding: AgentProtocol.encode(options), as: UTF8.self)
        return try launch(
            arguments: ["agent-process"], environment: environment, log: places.log, timeout: timeout,
            what: "the client for \(options.user)")
    }

    /// Puts a token that came from a descriptor where only this user can read it, instead of into the environment.
    private static func hideToken(in options: inout AgentOptions, beside places: AgentPlaces) throws(CommandFailure)
        -> String?
    {
        guard let token = options.token else { return nil }
        let path = places.socket + ".token"
        do {
            try AtomicFile.write(Array(token.utf8), to: path)
        } catch {
            throw error.commandFailure
        }
        options.token = nil
        options.tokenHandover = path
        return path
    }

    /// Starts the embedded environment unless it runs; returns its discovery file.
    ///
    /// - Parameters:
    ///   - host: the address to listen on, where the default will not do.
    ///   - port: the port, where the last one will not do.
    public static func ensureEnvironment(
        paths: Paths, host: String? = nil, port: Int? = nil
    ) throws(CommandFailure) -> EnvironmentFile {
        var arguments = ["environment", "run", "--quiet"]
        if let host { arguments += ["--bind", host] }
        if let port { arguments += ["--port", String(port)] }
        do {
            let runtime = try paths.prepareRuntimeDirectory()
            if let running = try EnvironmentFile.running(paths.environmentFile) { return running }
            // Several clients may be started at once: one of them starts the environment, the others wait for it.
            let descriptor = open(runtime + "/environment.starting", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            defer { if descriptor >= 0 { close(descriptor) } }
            if descriptor >= 0 { flock(descriptor, LOCK_EX) }
            if let running = try EnvironmentFile.running(paths.environmentFile) { return running }
            let log = try paths.prepareStateDirectory() + "/environment.log"
            _ = try launch(
                arguments: arguments, environment: ProcessEnvironment.all, log: log,
                timeout: .seconds(10), what: "the embedded environment")
            if let running = try EnvironmentFile.running(paths.environmentFile) { return running }
        } catch let error as ConfigurationError {
            throw error.commandFailure
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure(exit: .internalError, message: "\(error)")
        }
        throw CommandFailure(
            exit: .unreachable, step: "environment", message: "the embedded environment did not start",
            hint: "run it by hand to see why: sinchctl environment run")
    }

    /// This program's own file, so that the background process shows under its name.
    private static var executable: String {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let length = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        // A program that was replaced while it runs is still there as /proc/self/exe, under no name that exists.
        guard length > 0, access(buffer, X_OK) == 0 else { return "/proc/self/exe" }
        return String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func launch(
        arguments: [String], environment: [String: String], log: String, timeout: Duration, what: String
    ) throws(CommandFailure) -> JSONValue {
        let line: [UInt8]
        let child: DetachedProcess
        do {
            child = try ChildProcess.spawnDetached(
                executable: executable, arguments: arguments, environment: environment, logFile: log)
        } catch {
            throw CommandFailure(exit: .internalError, message: "cannot start \(what): \(error.message)")
        }
        do {
            line = try child.waitUntilReady(timeout: timeout)
        } catch {
            if error.code == .timedOut {
                // It may be stuck before it looks at signals.
                child.kill(SIGKILL)
                throw CommandFailure(
                    exit: .timeout, message: "\(what) was not ready in time", hint: "its log is \(log)")
            }
            throw CommandFailure(
                exit: .internalError, message: "\(what) ended before it was ready", hint: "its log is \(log)")
        }
        guard let word = try? JSONDecoder().decode(Readiness.self, from: Data(line)) else {
            throw CommandFailure(exit: .internalError, message: "\(what) said something unexpected")
        }
        if let failure = word.error { throw failure }
        return word.ready ?? .null
    }
}

/// The one line that a background process says to who started it.
public struct Readiness: Codable, Sendable {
    /// What it is, when it is ready.
    public var ready: JSONValue?
    /// Why it is not.
    public var error: CommandFailure?

    /// Says so over the readiness pipe.
    func report(to pipe: ReadinessPipe?) {
        pipe?.report(AgentProtocol.encode(self))
    }
}
