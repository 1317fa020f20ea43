import Audio
import Configuration
import Primitives
import SinchRTC

/// Turns a profile and what `start` was told into the library's configuration.
enum ClientSettings {
    static func make(
        options: AgentOptions, configuration: Configuration, applicationKey: String
    ) throws(CommandFailure) -> SinchClientConfiguration {
        let profile = configuration.profile
        var settings: SinchClientConfiguration
        if let host = profile.environmentHost {
            settings = SinchClientConfiguration(
                applicationKey: applicationKey, environmentHost: endpoint(host, transport: profile.effectiveTransport),
                userId: options.user)
            settings.outboundProxy = profile.outboundProxy.map { endpoint($0, transport: profile.effectiveTransport) }
        } else {
            let path = configuration.paths.environmentFile
            let file: EnvironmentFile
            do {
                guard let running = try EnvironmentFile.running(path) else {
                    throw CommandFailure(
                        exit: .unreachable, step: "environment", message: "the embedded environment is not running",
                        hint: "run: sinchctl environment start")
                }
                file = running
            } catch let error as ConfigurationError {
                throw error.commandFailure
            } catch let failure as CommandFailure {
                throw failure
            } catch {
                throw CommandFailure(exit: .internalError, message: "\(error)")
            }
            settings = SinchClientConfiguration(
                applicationKey: applicationKey, environmentHost: file.realm, userId: options.user)
            let transport = profile.transport?.rawValue ?? "udp"
            settings.outboundProxy =
                "\(TransportAddress(host: file.host, port: file.port));transport=\(transport)"
        }
        settings.caFile = profile.caFile
        settings.instanceID = DeviceIdentity.load(configuration.paths, make: makeInstanceID)
        settings.displayName = options.displayName
        settings.maximumCalls = options.maximumCalls ?? settings.maximumCalls
        settings.capture = try device(options.capture ?? profile.capture, for: .capture)
        settings.playback = try device(options.playback ?? profile.playback, for: .playback)
        do {
            try CallParameters.check(capture: settings.capture, recording: options.record)
        } catch {
            throw CommandFailure(error)
        }
        return settings
    }

    private enum Side {
        case capture, playback
    }

    /// The named device; without a name the sound card, or where there is none silence, so that a headless machine
    /// can make calls.
    private static func device(_ name: String?, for side: Side) throws(CommandFailure) -> AudioDeviceName {
        if let name {
            do {
                return try AudioDeviceName(parsing: name)
            } catch {
                throw CommandFailure(error)
            }
        }
        guard SoundPresence.isLikely(ProcessEnvironment.all) else { return side == .capture ? .silence : .null }
        return .alsa("default")
    }

    private static func endpoint(_ host: EnvironmentHost, transport: SignallingTransport?) -> String {
        let port = host.port.map { ":\($0)" } ?? ""
        let name = (host.transport ?? transport).map { ";transport=\($0.rawValue)" } ?? ""
        return host.uriHost + port + name
    }
}
