import Configuration
import Dispatch
import FoundationEssentials
import Glibc
import Network
import Primitives
import SinchEnvironment
import SinchRTC
import Token

/// The life of the embedded environment's process.
public enum EnvironmentProcess {
    /// How it is set up on the command line.
    public struct Options: Sendable {
        /// The numeric address to listen on.
        public var host = "127.0.0.1"
        /// The port; 0: the last one, or any.
        public var port: UInt16 = 0
        /// A WAV that `announcement` plays instead of its chime.
        public var announcement: String?
        /// Gets a line for each event.
        public var log: @Sendable (String) -> Void = { _ in }

        /// The defaults.
        public init() {}
    }

    /// Runs the environment until SIGINT or SIGTERM (blocked before any thread was started).
    public static func run(
        options: Options, configuration: Configuration, pipe: ReadinessPipe?,
        ready: @Sendable (EnvironmentFile) -> Void
    ) async -> Result<ExitCode, CommandFailure> {
        do {
            return .success(try await live(options, configuration, pipe, ready))
        } catch {
            Readiness(error: error).report(to: pipe)
            return .failure(error)
        }
    }

    private static func live(
        _ options: Options, _ configuration: Configuration, _ pipe: ReadinessPipe?,
        _ ready: @Sendable (EnvironmentFile) -> Void
    ) async throws(CommandFailure) -> ExitCode {
        let paths = configuration.paths
        SinchRTC.setCallbackQueue(queue: DispatchQueue(label: "sinchctl.callbacks"))
        do {
            let runtime = try paths.prepareRuntimeDirectory()
            let state = try paths.prepareStateDirectory()
            let lock = try FileLock.acquire(runtime + "/environment.lock")
            defer { lock.release() }
            let last = try? EnvironmentFile.read(paths.environmentFile)
            var server = EnvironmentServer.Options()
            server.host = options.host
            server.port = options.port
            server.preferredPort = last?.port ?? 0
            server.announcementPath = try options.announcement ?? AnnouncementSound.write(into: state)
            server.log = { event in options.log("\(event)") }
            let own = try application(last)
            server.applications = [own] + configured(configuration, besides: own.key)
            let environment = try EnvironmentServer(options: server)
            let address = try await environment.start()
            let file = EnvironmentFile(
                host: address.host, port: address.port, transports: [.udp, .tcp], realm: server.realm,
                applicationKey: own.key, applicationSecret: own.secret,
                startedAt: Int64(Date().timeIntervalSince1970), version: SinchRTC.version())
            try file.write(to: paths.environmentFile)
            Readiness(ready: .object(["address": .string(address.description)])).report(to: pipe)
            ready(file)
            let exit = await environment.awaitSignal()
            await environment.stop()
            return exit
        } catch let error as NetworkError {
            if case .alreadyHeld(let pid) = error.code {
                throw CommandFailure(
                    exit: .usage, step: "environment",
                    message: "the embedded environment is running already\(pid.map { " (process \($0))" } ?? "")",
                    hint: "see: sinchctl environment status")
            }
            throw CommandFailure(exit: .network, step: "environment", message: error.message)
        } catch let error as ConfigurationError {
            throw error.commandFailure
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure(exit: .internalError, step: "environment", message: "\(error)")
        }
    }

    /// The application of the embedded environment itself: the one of the last run, so that clients that outlived it
    /// keep their tokens, or a new one.
    private static func application(_ last: EnvironmentFile?) throws -> EnvironmentConfiguration.Application {
        if let last {
            return EnvironmentConfiguration.Application(key: last.applicationKey, secret: last.applicationSecret)
        }
        var random = RandomSource.system
        let key = random.uuid()
        return EnvironmentConfiguration.Application(key: key, secret: ApplicationSecret.generate(random: &random))
    }

    /// The application of the user's own profile, where it has a secret and names no other environment.
    private static func configured(
        _ configuration: Configuration, besides own: String
    ) -> [EnvironmentConfiguration.Application] {
        let profile = configuration.profile
        guard profile.usesEmbeddedEnvironment, let key = profile.applicationKey, key != own,
            let secret = profile.applicationSecret
        else { return [] }
        return [EnvironmentConfiguration.Application(key: key, secret: secret)]
    }
}
