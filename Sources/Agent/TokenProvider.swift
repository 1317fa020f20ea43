import Configuration
import FoundationEssentials
import Network
import SinchRTC
import Token

/// Where an agent's registration tokens come from: signed here, a file, a command, a URL, or what `start` was handed.
struct TokenProvider: Sendable {
    /// The application's name in tokens.
    let applicationKey: String
    private let source: Source

    private enum Source: Sendable {
        case secret(ApplicationSecret)
        case file(String)
        case command([String])
        case fixed(String)
        case url(String, caFile: String?)
        case environmentFile(String)
        /// Authentication is by password or not at all.
        case none
    }

    /// Chooses the source: what `start` says beats the profile, and the embedded environment has a secret of its own.
    init(options: AgentOptions, configuration: Configuration) throws(CommandFailure) {
        let profile = configuration.profile
        let environmentPath = configuration.paths.environmentFile
        guard profile.authentication ?? .bearer == .bearer else {
            guard options.token == nil, options.tokenFile == nil else {
                throw CommandFailure(
                    exit: .usage, step: "token",
                    message: "a token was given, but profile '\(profile.name)' sets authentication to "
                        + "\(profile.authentication?.rawValue ?? "")",
                    hint: "set authentication to bearer, or leave the token out")
            }
            source = .none
            applicationKey = profile.applicationKey ?? "none"
            return
        }
        if let token = options.token {
            source = .fixed(token)
        } else if let file = options.tokenFile {
            source = .file(file)
        } else {
            switch profile.tokenSource {
            case .signed(_, let secret): source = .secret(secret)
            case .command(let command): source = .command(command)
            case .file(let path): source = .file(path)
            case .url(let url): source = .url(url, caFile: profile.caFile)
            case nil:
                guard profile.usesEmbeddedEnvironment else {
                    throw CommandFailure(
                        exit: .configuration, step: "token",
                        message: "profile '\(profile.name)' has no way to get a registration token",
                        hint: "set applicationSecret, tokenCommand or tokenURL in it, or use --token-file")
                }
                source = .environmentFile(environmentPath)
            }
        }
        if let key = profile.applicationKey {
            applicationKey = key
        } else if case .fixed(let token) = source, let parsed = try? RegistrationToken.parse(token) {
            applicationKey = parsed.applicationKey
        } else if profile.usesEmbeddedEnvironment, let file = try? EnvironmentFile.running(environmentPath) {
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
            return try TokenInput.compact(TokenInput.readPrivate(path: path), from: path)
        case .url(let url, let caFile):
            return try await TokenEndpoint(url: url, applicationKey: applicationKey, caFile: caFile).token(for: user)
        case .none:
            throw SinchError(
                .noCredentials, "the platform asks for a token, and authentication is not by token",
                hint: "set authentication to bearer", step: "token")
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
            let origin = "the output of '\(name)'"
            return try TokenInput.compact(TokenInput.checked(result.output, from: origin), from: origin)
        }
    }
}
