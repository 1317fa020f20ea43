import Configuration
import FoundationEssentials
import Glibc
import Network
import SinchRTC
import Synchronization

/// The life of an agent: lock, registration, control socket, and an orderly end.
public enum AgentProcess {
    /// Signals that end an agent; block them before any thread is started.
    public static let signals = [SIGINT, SIGTERM, SIGHUP]

    /// The options that `AgentLauncher` handed over; nil when this process was started by hand.
    public static func takeOptions() -> AgentOptions? {
        guard let text = ProcessEnvironment.all[AgentLauncher.optionsVariable] else { return nil }
        unsetenv(AgentLauncher.optionsVariable)
        guard var options = try? JSONDecoder().decode(AgentOptions.self, from: Data(text.utf8)) else { return nil }
        if let path = options.tokenHandover {
            options.token = try? TokenInput.read(path: path)
            options.tokenHandover = nil
            unlink(path)
        }
        return options
    }

    /// Runs an agent until it is terminated.
    ///
    /// - Parameters:
    ///   - pipe: who started this process waits at its other end; nil in the foreground.
    ///   - ready: called when the client is registered, with what `start` prints.
    public static func run(
        options: AgentOptions, pipe: ReadinessPipe?, ready: @Sendable (JSONValue) -> Void
    ) async -> Result<ExitCode, CommandFailure> {
        do {
            let exit = try await live(options: options, pipe: pipe, ready: ready)
            return .success(exit)
        } catch {
            Readiness(error: error).report(to: pipe)
            return .failure(error)
        }
    }

    private static func live(
        options: AgentOptions, pipe: ReadinessPipe?, ready: @Sendable (JSONValue) -> Void
    ) async throws(CommandFailure) -> ExitCode {
        let configuration = try AgentConfiguration.load(options)
        let places = try AgentPlaces(user: options.user, paths: configuration.paths)
        let lock: FileLock
        do {
            lock = try FileLock.acquire(places.lock)
        } catch {
            if case .alreadyHeld(let pid) = error.code {
                throw CommandFailure(
                    exit: .usage, step: "starting",
                    message: "a client for \(options.user) is running already\(pid.map { " (process \($0))" } ?? "")",
                    hint: "use it, or end it: sinchctl terminate --user \(options.user)")
            }
            throw CommandFailure(exit: .cannotCreate, step: "starting", message: error.message)
        }
        defer { lock.release() }
        if configuration.profile.usesEmbeddedEnvironment {
            _ = try AgentLauncher.ensureEnvironment(paths: configuration.paths)
        }
        let service = try AgentService(
            options: options, configuration: configuration, log: AgentLog(directory: configuration.paths.stateDirectory)
        )
        let ending = Ending()
        await service.setTerminationHandler { ending.finish(.ok) }
        let watcher = await Self.watchSignals(service, ending)
        if let parent = options.parent, await !service.follow(parent: parent) {
            throw CommandFailure(
                exit: .terminated, step: "starting", message: "the command that wanted the client ended")
        }
        switch await service.start() {
        case .success: break
        case .failure(let failure):
            await service.terminate()
            throw failure
        }
        let server = AgentServer(service: service)
        do {
            try await server.listen(path: places.socket)
        } catch {
            await service.terminate()
            throw CommandFailure(exit: .cannotCreate, step: "starting", message: error.message)
        }
        if configuration.profile.usesEmbeddedEnvironment {
            await service.watchEnvironment(file: configuration.paths.environmentFile)
        }
        let status = await service.status()
        Readiness(ready: status).report(to: pipe)
        ready(status)
        let exit = await ending.value()
        await server.close()
        await service.onLoop { watcher?.close() }
        return exit
    }

    /// The first signal ends the agent in order; the second ends it at once.
    private static func watchSignals(_ service: AgentService, _ ending: Ending) async -> SignalWatcher? {
        await service.makeSignalWatcher(signals) { signal in
            guard ending.note(signal) else { _exit(signal == SIGINT ? 130 : 143) }
            Task { await service.terminate() }
        }
    }
}

/// How the agent's life ends: set once, awaited once.
private final class Ending: Sendable {
    private struct State {
        var signal: Int32?
        var exit: ExitCode?
        var continuation: CheckedContinuation<ExitCode, Never>?
    }

    private let state = Mutex(State())

    /// Notes a signal; false when one came before.
    func note(_ signal: Int32) -> Bool {
        state.withLock { state in
            guard state.signal == nil else { return false }
            state.signal = signal
            return true
        }
    }

    func finish(_ exit: ExitCode) {
        let continuation = state.withLock { state -> CheckedContinuation<ExitCode, Never>? in
            guard state.exit == nil else { return nil }
            state.exit = exit
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume(returning: exit)
    }

    func value() async -> ExitCode {
        await withCheckedContinuation { continuation in
            let exit = state.withLock { state -> ExitCode? in
                if state.exit == nil { state.continuation = continuation }
                return state.exit
            }
            if let exit { continuation.resume(returning: exit) }
        }
    }
}

extension AgentService {
    /// Watches signals on the loop.
    func makeSignalWatcher(_ signals: [Int32], handler: @escaping @Sendable (Int32) -> Void) -> SignalWatcher? {
        try? SignalWatcher(loop: loop, signals: signals, handler: handler)
    }
}

/// Loads the configuration with what flags said.
public enum AgentConfiguration {
    /// The configuration for an agent's options.
    public static func load(_ options: AgentOptions) throws(CommandFailure) -> Configuration {
        var values: [ProfileKey: String] = [:]
        for key in ProfileKey.allCases {
            if let value = options.overrides[key.flag] { values[key] = value }
        }
        var environment = ProcessEnvironment.all
        if let path = options.configFile { environment["SINCHCTL_CONFIG"] = path }
        do {
            return try Configuration.load(
                environment: environment, profile: options.profile, overrides: Overrides(values))
        } catch {
            throw error.commandFailure
        }
    }
}
