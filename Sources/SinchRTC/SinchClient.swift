import Audio
import FoundationEssentials
import MediaSession
import Network
import Primitives
import Signalling
import Synchronization

/// A user's client: registers with the platform, makes and takes calls. Any thread may use it.
///
/// Create it, set its delegate, `start()`, supply a token when asked, wait for `clientDidStart`, then call. Before the
/// last reference is dropped, `terminateGracefully()`; a terminated client cannot be started again.
public final class SinchClient: Sendable {
    /// Whom the client is for.
    public let userId: String
    /// Makes calls, and tells of incoming ones.
    public let callClient: SinchCallClient
    /// Controls what is heard and said.
    public let audioController: SinchAudioController

    private let delegateReference = DelegateReference<any SinchClientDelegate>()
    private let core: ClientCore

    init(configuration: SinchClientConfiguration) throws(SinchError) {
        try Self.check(configuration)
        userId = configuration.userId
        core = try ClientCore(configuration: configuration)
        callClient = SinchCallClient(core: core)
        audioController = SinchAudioController(core: core)
        core.attach(self)
    }

    deinit {
        // Whoever forgets to terminate leaves no thread, socket or registration behind.
        core.perform { $0.terminate(completion: {}) }
    }

    /// Who is told of start and failure and asked for tokens; held weakly. Set it before `start()`.
    public var delegate: (any SinchClientDelegate)? {
        get { delegateReference.value }
        set { delegateReference.value = newValue }
    }

    /// Whether the client is registered and was not terminated.
    public var isStarted: Bool { core.shared.isStarted }

    /// Registers with the platform; `clientDidStart` or `clientDidFail` follows.
    public func start() {
        core.perform { $0.start() }
    }

    /// Registers again now, because the network or the platform has changed; calls go on. Does nothing before the first
    /// registration.
    public func renewRegistration() {
        core.perform { $0.renewRegistration() }
    }

    /// Ends every call, removes the registration and closes all connections; at most two seconds of it.
    public func terminateGracefully() {
        core.perform { $0.terminate(completion: {}) }
    }

    /// `terminateGracefully()`, returning when it is done.
    public func terminate() async {
        await withCheckedContinuation { continuation in
            core.perform { $0.terminate(completion: { continuation.resume() }) }
        }
    }

    /// Where registration, signalling and media stand.
    ///
    /// - Parameter completion: called once on the callback queue.
    public func status(completion: @escaping @Sendable (SinchClientStatus) -> Void) {
        core.perform { core in
            let status = core.status
            callBack { completion(status) }
        }
    }

    /// Called on the callback queue whenever the registration changes after the first start: lost, back again.
    public func onRegistrationChange(_ handler: @escaping @Sendable (SinchClientStatus) -> Void) {
        core.perform { $0.registrationObserver = handler }
    }

    /// The capture device's name, for reports.
    public var captureDescription: String { core.configuration.capture.description }

    /// The playback device's name, for reports.
    public var playbackDescription: String { core.configuration.playback.description }

    private static func check(_ configuration: SinchClientConfiguration) throws(SinchError) {
        try Identifiers.checkUser(configuration.userId)
        guard !configuration.applicationKey.isEmpty else {
            throw SinchError(
                .invalidArgument, "the application key is empty", hint: "set applicationKey in the profile")
        }
        if let name = configuration.displayName {
            guard name.utf8.count <= 255, Identifiers.isPrintable(name) else {
                throw SinchError(
                    .invalidArgument, "the display name is longer than 255 bytes or holds control characters")
            }
        }
    }
}

/// Where a client stands, for `status` and for diagnosis.
public struct SinchClientStatus: Sendable, Equatable {
    /// `idle`, `registering`, `registered`, `waiting` (for the next try), `unregistering` or `ended`.
    public var registration: String
    /// Why the last attempt failed, where it did.
    public var lastFailure: String?
    /// Seconds until the next attempt, while `waiting`.
    public var nextAttemptIn: Double?
    /// Seconds for which the platform granted the registration.
    public var grantedLifetime: Double?
    /// The transport in use.
    public var transport: String?
    /// The platform's address.
    public var remoteAddress: String?
    /// Our own address.
    public var localAddress: String?
    /// The TLS version and cipher of the flow; nil without TLS.
    public var tls: String?
    /// How the flow is kept alive: `crlf`, `stun` or `websocket-ping`; nil while there is none that is registered.
    public var keepAlive: String?
    /// How the media thread is scheduled.
    public var mediaScheduling: String
    /// What protects media.
    public var mediaSecurity: String
    /// Seconds from `start()` to the first registration.
    public var registrationDelay: Double?
    /// Calls that have not ended.
    public var activeCalls: Int
}
