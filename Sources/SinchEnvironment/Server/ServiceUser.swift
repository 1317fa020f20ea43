import Audio
import FoundationEssentials
import Primitives
import SinchRTC
import Synchronization
import Token

/// A user that the environment itself brings: a client that answers every call by itself.
///
/// It is an ordinary `SinchClient`, so what it does has been through the same path as any other call.
final class ServiceUser: SinchClientDelegate, SinchCallClientDelegate, Sendable {
    /// What the user does with calls.
    enum Behaviour: Sendable {
        /// Returns what it hears.
        case echo
        /// Plays a file and hangs up.
        case announcement(path: String)

        var user: String {
            switch self {
            case .echo: "echo"
            case .announcement: "announcement"
            }
        }
    }

    private let behaviour: Behaviour
    private let application: EnvironmentConfiguration.Application
    private let client: SinchClient?
    private let starting = Mutex<CheckedContinuation<Void, Never>?>(nil)

    init(
        behaviour: Behaviour, application: EnvironmentConfiguration.Application, realm: String,
        address: TransportAddress
    ) {
        self.behaviour = behaviour
        self.application = application
        var configuration = SinchClientConfiguration(
            applicationKey: application.key, environmentHost: realm, userId: behaviour.user)
        configuration.outboundProxy = "\(address);transport=udp"
        configuration.maximumCalls = 64
        switch behaviour {
        case .echo:
            configuration.capture = .echo
            configuration.playback = .echo
        case .announcement(let path):
            configuration.capture = .file(path)
            configuration.playback = .null
        }
        client = try? SinchRTC.client(configuration: configuration)
    }

    /// Returns when the user is registered, or has failed to.
    func start() async {
        guard let client else { return }
        client.delegate = self
        client.callClient.delegate = self
        await withCheckedContinuation { continuation in
            starting.withLock { $0 = continuation }
            client.start()
        }
    }

    func stop() async {
        await client?.terminate()
    }

    private func started() {
        starting.withLock { continuation in
            continuation?.resume()
            continuation = nil
        }
    }

    func clientRequiresRegistrationCredentials(
        _ client: SinchClient, withCallback callback: SinchClientRegistration
    ) {
        do {
            callback.register(
                withJWT: try SinchJWT.sign(
                    applicationKey: application.key, applicationSecret: application.secret, userId: client.userId))
        } catch {
            callback.registerDidFail(error: error)
        }
    }

    func clientDidStart(_ client: SinchClient) {
        started()
    }

    func clientDidFail(_ client: SinchClient, error: Error) {
        started()
    }

    func client(_ client: SinchCallClient, didReceiveIncomingCall call: SinchCall) {
        if case .announcement = behaviour { call.media.hangsUpAfterPlaying = true }
        call.answer()
    }
}
