import Agent
import Configuration
import FoundationEssentials
import Glibc
import Testing

/// A user's world of its own: private XDG directories, the built program, and an end to all that was started in it.
final class Scratch: Sendable {
    let root: String
    let environment: [String: String]

    /// Runs a test in a world of its own and takes care that nothing of it stays.
    ///
    /// - Parameter name: the directory's name ends with it; may hold spaces.
    static func with(_ name: String = "", _ body: (Scratch) async throws -> Void) async throws {
        await Gate.shared.enter()
        let scratch = try Scratch(name)
        do {
            try await body(scratch)
            try await scratch.tearDown(expectingNothing: true)
        } catch {
            try? await scratch.tearDown(expectingNothing: false)
            await Gate.shared.leave()
            throw error
        }
        await Gate.shared.leave()
    }

    private init(_ name: String) throws {
        // Sockets' paths are short, so the test's are shorter.
        root = "/tmp/sx" + String(UInt32.random(in: 0 ... .max), radix: 36) + name
        for directory in [root, root + "/run", root + "/state", root + "/config", root + "/config/sinchctl"] {
            guard mkdir(directory, 0o700) == 0 else { throw TestFailure("cannot make \(directory)") }
        }
        environment = [
            "HOME": root, "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": root + "/run", "XDG_STATE_HOME": root + "/state",
            "XDG_CONFIG_HOME": root + "/config", "SWIFT_BACKTRACE": "enable=no", "TERM": "dumb",
        ]
    }

    /// The program beside the test bundle.
    static let program: String = {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let length = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        let own = String(decoding: buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        for path in [own] + CommandLine.arguments where path.hasPrefix("/") {
            guard let slash = path.lastIndex(of: "/") else { continue }
            let candidate = path[..<slash] + "/sinchctl"
            if access(String(candidate), X_OK) == 0 { return String(candidate) }
        }
        return "sinchctl"
    }()

    /// Starts the program and does not wait for it.
    func begin(
        _ arguments: [String], environment extra: [String: String] = [:], input: String? = nil
    ) throws -> RunningCommand {
        try RunningCommand(
            Self.program, arguments, environment: environment.merging(extra) { $1 }, input: input, directory: root,
            workingDirectory: root)
    }

    /// Runs the program to its end.
    @discardableResult
    func run(
        _ arguments: String..., environment extra: [String: String] = [:], input: String? = nil,
        within limit: Duration = .seconds(30)
    ) async throws -> CommandRun {
        try await begin(arguments, environment: extra, input: input).end(within: limit)
    }

    /// Runs the program and demands success.
    @discardableResult
    func must(
        _ arguments: String..., environment extra: [String: String] = [:], within limit: Duration = .seconds(30),
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> CommandRun {
        let run = try await begin(arguments, environment: extra).end(within: limit)
        #expect(run.exit == 0, "\(arguments): \(run.errors)\(run.output)", sourceLocation: sourceLocation)
        guard run.exit == 0 else { throw TestFailure("\(arguments) failed: \(run.errors)") }
        return run
    }

    /// Starts a background client; returns its status.
    @discardableResult
    func start(
        _ user: String, _ more: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> JSONValue {
        let run = try await begin(["start", "--user", user, "--json"] + more).end()
        #expect(run.exit == 0, "start \(user): \(run.errors)", sourceLocation: sourceLocation)
        guard run.exit == 0 else { throw TestFailure("\(user) did not start: \(run.errors)") }
        return try run.document()
    }

    /// What `status` says of one client.
    func status(_ user: String) async throws -> JSONValue {
        let document = try await must("status", "--user", user, "--json").document()
        guard case .array(let clients)? = document["clients"], let first = clients.first else {
            throw TestFailure("status shows no client")
        }
        return first
    }

    /// The calls of a client, the newest first.
    func calls(_ user: String) async throws -> [JSONValue] {
        let document = try await must("calls", "--as", user, "--json").document()
        guard case .array(let calls)? = document["calls"] else { throw TestFailure("calls shows no list") }
        return calls
    }

    /// The process of a background client.
    func pid(_ user: String) async throws -> pid_t {
        guard let pid = try await status(user)["pid"]?.integer else { throw TestFailure("status shows no process") }
        return pid_t(pid)
    }

    /// Writes the configuration file.
    func configure(_ text: String, mode: mode_t = 0o600) throws {
        try writeFile(root + "/config/sinchctl/config.json", Array(text.utf8), mode: mode)
    }

    /// Where sockets, locks and the environment's file are.
    var runtime: String { root + "/run/sinchctl" }

    /// Names in the runtime directory.
    var runtimeFiles: [String] {
        guard let directory = opendir(runtime) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// Control sockets that exist.
    var sockets: [String] { runtimeFiles.filter { $0.hasSuffix(".sock") } }

    /// Processes of this world that run: each has its runtime directory in its environment.
    var processes: [pid_t] {
        guard let directory = opendir("/proc") else { return [] }
        defer { closedir(directory) }
        var found: [pid_t] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard let pid = pid_t(name), pid != getpid() else { continue }
            let variables = readFile("/proc/\(pid)/environ").split(separator: "\0")
            if variables.contains("XDG_RUNTIME_DIR=\(root)/run") { found.append(pid) }
        }
        return found
    }

    /// Waits until a condition holds, asking again every 20 ms; false when it does not within the limit.
    func eventually(within limit: Duration = .seconds(10), _ condition: () async throws -> Bool) async rethrows -> Bool
    {
        let end = ContinuousClock.now + limit
        while ContinuousClock.now < end {
            if try await condition() { return true }
            try? await Task.sleep(for: .milliseconds(20))
        }
        return try await condition()
    }

    private func tearDown(expectingNothing: Bool) async throws {
        let ending = try await run("terminate", "--all", within: .seconds(15))
        let stopping = try await run("environment", "stop", within: .seconds(10))
        let left = processes
        for pid in left { kill(pid, SIGKILL) }
        if expectingNothing {
            #expect(ending.exit == 0, "terminate --all: \(ending.errors)")
            #expect(stopping.exit == 0 || stopping.exit == 69, "environment stop: \(stopping.errors)")
            #expect(left.isEmpty, "processes are left")
            #expect(sockets.isEmpty, "sockets are left")
        }
        removeTree(root)
    }
}

/// Lets a few tests at a time in: each of them runs several programs, and they shall not starve one another.
private actor Gate {
    static let shared = Gate()
    private var free = 6
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func enter() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    func leave() {
        if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
    }
}

private func removeTree(_ path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFDIR, let directory = opendir(path) else {
        unlink(path)
        return
    }
    var names: [String] = []
    while let entry = readdir(directory) {
        names.append(
            withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    closedir(directory)
    for name in names where name != "." && name != ".." { removeTree(path + "/" + name) }
    rmdir(path)
}

extension CommandRun {
    /// The one JSON document on standard output.
    func document() throws -> JSONValue {
        guard let value = try? JSONDecoder().decode(JSONValue.self, from: Data(output.utf8)) else {
            throw TestFailure("\(arguments) printed no single JSON document: \(output) \(errors)")
        }
        return value
    }

    /// Demands a failure: the exit code, one line that says what failed and what to do, and with `--json` the document.
    func expectFailure(
        _ code: ExitCode, _ words: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(!wasKilled, "\(arguments) had to be killed", sourceLocation: sourceLocation)
        #expect(exit == code.rawValue, "\(arguments): \(errors)\(output)", sourceLocation: sourceLocation)
        #expect(complaints.count == 1, "one line says it all: \(errors)", sourceLocation: sourceLocation)
        let line = complaints.first.map(String.init) ?? ""
        #expect(line.hasPrefix("sinchctl: "), "\(line)", sourceLocation: sourceLocation)
        for word in words { #expect(line.contains(word), "'\(word)' in: \(line)", sourceLocation: sourceLocation) }
        guard arguments.contains("--json") else { return }
        let error = try document()["error"]
        #expect(error?["code"]?.string == code.name, "\(output)", sourceLocation: sourceLocation)
        #expect(error?["exitCode"]?.integer == Int64(code.rawValue), "\(output)", sourceLocation: sourceLocation)
        #expect(error?["message"]?.string?.isEmpty == false, "\(output)", sourceLocation: sourceLocation)
    }
}

extension Scratch {
    /// All files under a directory, without following links.
    static func files(under path: String) -> [String] {
        guard let directory = opendir(path) else { return [path] }
        defer { closedir(directory) }
        var found: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name != ".", name != ".." else { continue }
            var status = stat()
            let file = path + "/" + name
            guard lstat(file, &status) == 0 else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFDIR: found += files(under: file)
            case S_IFREG: found.append(file)
            default: break
            }
        }
        return found
    }
}
