import MediaSession
import Network
import Primitives
import SDP
import SIP
import Signalling
import Synchronization

/// The event loop on which all signalling of this process runs; one thread, however many clients there are.
package let signallingLoop: Result<EventLoop, NetworkError> = Result { () throws(NetworkError) in
    try EventLoop(name: "sinch-signal")
}

/// What every thread may read of a client without waiting for its loop.
final class SharedState: Sendable {
    private let state = Mutex(false)
    /// Whether the client is registered.
    var isStarted: Bool {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}

/// The client behind `SinchClient`: an actor whose executor is the event loop, so that the compiler proves it race-free.
///
/// It drives the user agent (a value without I/O) with messages, time and commands, and turns what the agent says into
/// packets, media streams and callbacks.
actor ClientCore {
    nonisolated let configuration: SinchClientConfiguration
    nonisolated let loop: EventLoop
    nonisolated let shared = SharedState()
    nonisolated let engine: MediaEngine
    nonisolated let domain: String
    nonisolated let endpoint: SIPEndpoint
    let tls: TLSClientContext?

    weak var client: SinchClient?
    var agent: UserAgent
    var transports: SIPTransportSet?
    var connector: FlowConnector?
    var dns: DNSClient?
    /// The flow that is being opened.
    var establishment: FlowEstablishment?
    /// Servers that failed since the last success.
    var failedServers: Set<FailedServer> = []
    /// The flow that broke last, since the last success.
    var brokenFlow: SIPFlow?
    var sessions: [CallHandle: CallSession] = [:]
    var isMuted = false
    var registrationObserver: (@Sendable (SinchClientStatus) -> Void)?
    var sound: LocalPlayback?

    private var timer: TimerHandle?
    private var timerDeadline: MonotonicTime?
    private var isRunning = false
    private(set) var hasBeenRegistered = false
    private(set) var isTerminated = false
    private var terminationCompletions: [@Sendable () -> Void] = []
    private var terminationTimer: TimerHandle?
    /// Whether nothing more is to be said to the registrar.
    private var isUnregistered = false
    /// Calls that ended while their devices and recordings are still being closed.
    var closingCalls = 0
    private var startedAt: MonotonicTime?
    private var registrationDelay: Duration?
    private var grantedLifetime: Duration?
    private var lastFailure: SinchError?
    var lastNetworkError: NetworkError?
    private var credentialRequest: UInt64 = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(configuration: SinchClientConfiguration) throws(SinchError) {
        let host = try SIPEndpoint(parsing: configuration.environmentHost)
        endpoint =
            try configuration.outboundProxy.map { text throws(SinchError) in try SIPEndpoint(parsing: text) } ?? host
        domain = host.host
        self.configuration = configuration
        do {
            loop = try signallingLoop.get()
            engine = try MediaEngine()
        } catch let error as MediaError {
            throw SinchError(.internal, error.message)
        } catch let error as NetworkError {
            throw SinchError(.internal, error.message)
        } catch {
            throw SinchError(.internal, "\(error)")
        }
        do {
            tls = try configuration.caFile.map { file throws(NetworkError) in try TLSClientContext(caFile: file) }
        } catch {
            throw SinchError(.tls, error.message, hint: "check caFile", step: "registering")
        }
        var agentConfiguration = UserAgentConfiguration(
            user: configuration.userId, domain: host.host, displayName: configuration.displayName,
            instanceID: configuration.instanceID ?? Identifiers.makeInstanceID(), userAgent: "SinchRTC/\(version())")
        agentConfiguration.noAnswerTimeout = configuration.noAnswerTimeout
        agentConfiguration.maximumCalls = configuration.maximumCalls
        agentConfiguration.registrationExpires = configuration.registrationLifetime
        agent = UserAgent(configuration: agentConfiguration)
    }

    /// Runs work on the core from any thread, in the order of the calls.
    nonisolated func perform(_ work: @escaping @Sendable (isolated ClientCore) -> Void) {
        loop.execute { [self] in
            assumeIsolated { core in work(core) }
        }
    }

    nonisolated func attach(_ client: SinchClient) {
        perform { $0.client = client }
    }

    // MARK: Lifecycle

    func start() {
        guard !isTerminating else {
            fail(SinchError(.notStarted, "the client was terminated", hint: "create a new one"))
            return
        }
        guard !isRunning else { return }
        isRunning = true
        startedAt = loop.now
        lastFailure = nil
        lastNetworkError = nil
        failedServers = []
        brokenFlow = nil
        agent.start(at: loop.now)
        drain()
    }

    func renewRegistration() {
        guard isRunning, hasBeenRegistered, terminationCompletions.isEmpty else { return }
        agent.renewRegistration(at: loop.now)
        drain()
    }

    /// Whether `terminate` was called; nothing new begins from then on.
    var isTerminating: Bool { isTerminated || !terminationCompletions.isEmpty }

    func terminate(completion: @escaping @Sendable () -> Void) {
        guard !isTerminated else {
            completion()
            return
        }
        terminationCompletions.append(completion)
        guard terminationCompletions.count == 1 else { return }
        shared.isStarted = false
        for handle in sessions.keys { agent.hangUp(handle, at: loop.now) }
        stopSound()
        if isRunning { agent.unregister(at: loop.now) } else { isUnregistered = true }
        // The platform may be gone: what it does not confirm in two seconds, it will find out by itself.
        terminationTimer = loop.schedule(at: loop.now + .seconds(2)) { [weak self] in
            self?.assumeIsolated { $0.finishTermination() }
        }
        drain()
    }

    /// Ends the termination once the other sides know of it and every recording is complete.
    func concludeTermination() {
        guard isTerminating, isUnregistered, sessions.isEmpty, closingCalls == 0, !agent.hasUnfinishedCalls else {
            return
        }
        finishTermination()
    }

    private func finishTermination() {
        guard !isTerminated else { return }
        isTerminated = true
        isRunning = false
        terminationTimer?.cancel()
        timer?.cancel()
        closeFlows()
        engine.stop()
        for completion in terminationCompletions { completion() }
        terminationCompletions = []
    }

    var status: SinchClientStatus {
        let next = agent.nextRegistrationAttempt.map { max(0, ($0 - loop.now).seconds) }
        // A binding whose refresh has failed may still be there, but nobody can tell: the platform does not answer.
        let isDoubtful = agent.registrationState == .registered && lastFailure != nil
        let state = isDoubtful ? .waiting : agent.registrationState
        return SinchClientStatus(
            registration: "\(state)", lastFailure: lastFailure?.description,
            nextAttemptIn: state == .waiting ? next : nil,
            grantedLifetime: grantedLifetime?.seconds,
            transport: agent.path?.flow.transport.rawValue, remoteAddress: agent.path?.flow.remote.description,
            localAddress: agent.path?.local.description, tls: agent.path?.cipher,
            keepAlive: agent.keepAliveKind?.rawValue,
            mediaScheduling: engine.scheduling.text,
            mediaSecurity: "none (plain RTP, allowed on loopback only)",
            registrationDelay: registrationDelay?.seconds, activeCalls: sessions.count)
    }

    // MARK: Driving the agent

    /// Carries out what the agent wants, then sets the timer for what it wants next.
    func drain() {
        while let action = agent.nextAction() {
            switch action {
            case .transmit(let message, let flow): transports?.send(message, over: flow)
            case .openFlow: openFlow()
            case .openStream(let flow): openStream(insteadOf: flow)
            case .keepAlive(let probe, let flow): transports?.send(probe, over: flow)
            case .closeFlow(let flow): transports?.close(flow)
            case .needsCredentials: askForToken()
            case .registration(let event): handle(event)
            case .call(let handle, let event): self.handle(event, of: handle)
            }
        }
        arm()
        concludeTermination()
    }

    private func arm() {
        let next = isTerminated ? nil : agent.nextTimeout
        guard next != timerDeadline else { return }
        timer?.cancel()
        timer = nil
        timerDeadline = next
        guard let next else { return }
        timer = loop.schedule(at: next) { [weak self] in
            self?.assumeIsolated { core in
                core.timerDeadline = nil
                core.timer = nil
                core.agent.timeout(at: core.loop.now)
                core.drain()
            }
        }
    }

    // MARK: Registration

    private func askForToken() {
        credentialRequest &+= 1
        let request = credentialRequest
        guard let client else { return }
        callBack { [weak self] in
            guard let self else { return }
            let registration = SinchClientRegistration { [weak self] answer in
                self?.perform { $0.supply(answer, for: request) }
            }
            if let delegate = client.delegate {
                delegate.clientRequiresRegistrationCredentials(client, withCallback: registration)
            } else {
                registration.registerDidFail(
                    error: SinchError(
                        .noCredentials, "the client has no delegate to ask for a token",
                        hint: "set the delegate before start()", step: "registering"))
            }
        }
    }

    private func supply(_ answer: Result<String, SinchError>, for request: UInt64) {
        // One answer for one question: a late or second one is not what the platform asks for now.
        guard request == credentialRequest, isRunning else { return }
        credentialRequest &+= 1
        switch answer {
        case .success(let token):
            agent.credentialsChanged([.bearer(token: token)], at: loop.now)
            drain()
        case .failure(let error):
            refuse(error)
        }
    }

    /// The client cannot be registered by anything that it can do itself: it is as before `start()`, which may be
    /// called again. Calls go on.
    func refuse(_ error: SinchError) {
        lastFailure = error
        shared.isStarted = false
        establishment?.cancel()
        establishment = nil
        agent.abandonRegistration()
        isRunning = false
        hasBeenRegistered = false
        credentialRequest &+= 1
        if isTerminating { isUnregistered = true }
        fail(error)
    }

    private func handle(_ event: RegistrationEvent) {
        switch event {
        case .registered(let expires, _):
            grantedLifetime = expires
            lastFailure = nil
            lastNetworkError = nil
            failedServers = []
            brokenFlow = nil
            shared.isStarted = !isTerminating
            if !hasBeenRegistered {
                hasBeenRegistered = true
                registrationDelay = startedAt.map { loop.now - $0 }
                if let client { callBack { client.delegate?.clientDidStart(client) } }
            }
            notifyRegistration()
        case .failed(let failure, let retryAt):
            if !changesServer(after: failure, retryAt: retryAt) { registrationFailed(failure, retryAt: retryAt) }
        case .unregistered:
            shared.isStarted = false
            isUnregistered = true
        }
    }

    /// An attempt failed, and no other server can help.
    func registrationFailed(_ failure: RegistrationFailure, retryAt: MonotonicTime?) {
        let error = SinchError(failure, cause: lastNetworkError)
        log(.warning, "registration", error.description)
        if hasBeenRegistered, retryAt != nil {
            lastFailure = error
        } else {
            refuse(error)
        }
        notifyRegistration()
    }

    private func notifyRegistration() {
        guard let registrationObserver else { return }
        let status = status
        callBack { registrationObserver(status) }
    }

    private func fail(_ error: SinchError) {
        guard let client else { return }
        callBack { client.delegate?.clientDidFail(client, error: error) }
    }
}
