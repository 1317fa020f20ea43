import Audio
import Configuration
import Dispatch
import FoundationEssentials
import MediaSession
import Network
import Primitives
import SinchRTC
import Synchronization
import Token

/// One user's client and everything that commands can ask of it. An actor on the signalling loop.
public actor AgentService {
    /// Whom the agent is for.
    public nonisolated let user: String
    nonisolated let options: AgentOptions
    nonisolated let loop: EventLoop
    nonisolated let client: SinchClient
    nonisolated let tokens: TokenProvider
    nonisolated let applicationKey: String
    private nonisolated let usesEmbeddedEnvironment: Bool
    nonisolated let log: AgentLog
    private nonisolated let delegate: AgentDelegate

    var calls: [SinchCall] = []
    var ended: [CallReport] = []
    var events = EventHistory()
    var waiters: [Waiter] = []
    /// Requests that wait for what they asked for.
    var orders: [Order] = []
    var isMuted = false
    private(set) var isEnding = false
    /// Why there is no token: more exact than what the library can say of it.
    var tokenFailure: CommandFailure?
    var parentWatch: ProcessWatch?
    var environmentWatch: ProcessWatch?
    private var startContinuation: CheckedContinuation<Result<Void, CommandFailure>, Never>?
    private var startedAt = Date()
    private var onTermination: (@Sendable () -> Void)?

    /// The signalling loop of this process.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Makes the client; `start` registers it.
    ///
    /// - Throws: a failure with the exit code for whatever is wrong with the options or the configuration.
    public init(options: AgentOptions, configuration: Configuration, log: AgentLog) throws(CommandFailure) {
        self.options = options
        self.log = log
        user = options.user
        do {
            loop = try signallingLoop.get()
        } catch {
            throw CommandFailure(exit: .internalError, message: error.message)
        }
        tokens = try TokenProvider(options: options, configuration: configuration)
        applicationKey = tokens.applicationKey
        usesEmbeddedEnvironment = configuration.profile.usesEmbeddedEnvironment
        let clientConfiguration = try ClientSettings.make(
            options: options, configuration: configuration, applicationKey: tokens.applicationKey)
        SinchRTC.setCallbackQueue(queue: DispatchQueue(label: "sinchctl.callbacks"))
        do {
            client = try SinchRTC.client(configuration: clientConfiguration)
        } catch let error as SinchError {
            throw CommandFailure(error)
        } catch {
            throw CommandFailure(exit: .internalError, message: "\(error)")
        }
        delegate = AgentDelegate()
    }

    /// Registers; returns when that succeeded or failed.
    public func start() async -> Result<Void, CommandFailure> {
        delegate.attach(self)
        client.delegate = delegate
        client.callClient.delegate = delegate
        client.onRegistrationChange { [weak self] status in
            self?.perform { $0.registrationChanged(status) }
        }
        return await withCheckedContinuation { continuation in
            startContinuation = continuation
            client.start()
        }
    }

    /// Sets what is to happen when `terminate` was asked for and is done.
    public func setTerminationHandler(_ handler: @escaping @Sendable () -> Void) {
        onTermination = handler
    }

    /// Ends every call, un-registers, and calls the termination handler.
    public func terminate() async {
        isEnding = true
        startContinuation?.resume(
            returning: .failure(
                CommandFailure(exit: .terminated, step: "registering", message: "ended before it was registered")))
        startContinuation = nil
        await client.terminate()
        record("terminated", call: nil)
        onTermination?()
        onTermination = nil
    }

    /// Runs work on the actor from any thread, in the order of the calls.
    nonisolated func perform(_ work: @escaping @Sendable (isolated AgentService) -> Void) {
        loop.execute { [self] in assumeIsolated { service in work(service) } }
    }

    // MARK: From the client

    func clientStarted() {
        record("registered", call: nil)
        startContinuation?.resume(returning: .success(()))
        startContinuation = nil
    }

    func clientFailed(_ error: any Error) {
        let isTokenMissing = (error as? SinchError)?.code == .noCredentials
        var failure =
            (isTokenMissing ? tokenFailure : nil) ?? (error as? SinchError).map { CommandFailure($0) }
            ?? (error as? CommandFailure) ?? CommandFailure(exit: .internalError, message: "\(error)")
        if (error as? SinchError)?.code == .unknownApplication, usesEmbeddedEnvironment {
            failure.hint =
                "an embedded environment that runs already does not know a new application; "
                + "start it anew: sinchctl environment stop"
        }
        record("registrationFailed", call: nil, message: failure.description)
        startContinuation?.resume(returning: .failure(failure))
        startContinuation = nil
    }

    func registrationChanged(_ status: SinchClientStatus) {
        if status.registration == "registered" {
            if events.lastRegistrationEvent != "registered" { record("registered", call: nil) }
        } else if let failure = status.lastFailure, events.lastRegistrationEvent == "registered" {
            record("registrationLost", call: nil, message: failure)
        }
    }

    func received(_ call: SinchCall) {
        calls.append(call)
        // A call that takes the place of another one keeps its devices.
        var media = call.previousCall == nil ? SinchCallMedia() : call.media
        media.recording = recordingPath(for: call)
        media.hangsUpAfterPlaying = options.hangUpAfterPlay
        call.media = media
        record("incoming", call: call)
        if options.autoAnswer { call.answer() }
    }

    func moved(_ call: SinchCall, to event: String) {
        if event == "established", let duration = call.userInfo as? Double {
            schedule(after: duration, call) { $0.hangup() }
        }
        if event == "ended" {
            calls.removeAll { $0 === call }
            let report = CallReport(call)
            ended.append(report)
            if ended.count > 100 { ended.removeFirst(ended.count - 100) }
            log.append(report)
        }
        record(event, call: call)
        settleOrders(event, of: call)
    }

    /// The file that a call is recorded to. While another call is being recorded to it, one beside it: two calls in
    /// one file would destroy each other.
    func recordingPath(for call: SinchCall) -> String? {
        guard let path = options.record else { return nil }
        guard calls.contains(where: { $0 !== call && $0.media.recording == path }) else { return path }
        let stem = path.hasSuffix(".wav") ? String(path.dropLast(4)) : path
        return "\(stem)-\(call.callId.prefix(8)).wav"
    }

    /// Whether calls can be made and arrive, as far as is known.
    var isRegistered: Bool { client.isStarted && events.lastRegistrationEvent == "registered" }

    // MARK: Events

    func record(
        _ name: String, call: SinchCall?, message: String? = nil, key: String? = nil, sipStatus: Int? = nil
    ) {
        let event = AgentEvent(
            seq: events.nextSequence, time: Timestamps.text(Date()), event: name, user: user,
            call: call.map { CallReport($0) }, message: message, key: key, sipStatus: sipStatus)
        events.append(event)
        settleWaiters()
    }

    // MARK: Helpers for the methods

    /// The call that a command means: the named one, or the only one.
    func call(named id: String?) throws(CommandFailure) -> SinchCall {
        if let id {
            let meant = id.isEmpty ? [] : calls.filter { $0.callId.hasPrefix(id) }
            guard let call = meant.first else {
                throw CommandFailure(
                    exit: .unreachable, message: "\(user) has no call '\(id)'", hint: "see: sinchctl calls")
            }
            guard meant.count == 1 || call.callId == id else {
                throw CommandFailure(
                    exit: .usage, message: "\(meant.count) calls of \(user) begin with '\(id)'",
                    hint: "name more of the identifier; see: sinchctl calls --json")
            }
            return call
        }
        guard let call = calls.first else {
            throw CommandFailure(exit: .unreachable, message: "\(user) has no call", hint: "see: sinchctl calls")
        }
        guard calls.count == 1 else {
            throw CommandFailure(
                exit: .usage, message: "\(user) has \(calls.count) calls", hint: "name one; see: sinchctl calls")
        }
        return call
    }

    func status() async -> JSONValue {
        let status = await withCheckedContinuation { continuation in
            client.status { continuation.resume(returning: $0) }
        }
        return StatusReport.make(
            user: user, applicationKey: applicationKey, startedAt: startedAt, status: status,
            capture: client.captureDescription, playback: client.playbackDescription, autoAnswer: options.autoAnswer,
            isMuted: isMuted, calls: calls.map { CallReport($0) })
    }

    func reportWithStatistics(_ call: SinchCall) async -> CallReport {
        let media = await withCheckedContinuation { continuation in
            call.statistics { continuation.resume(returning: $0) }
        }
        return CallReport(call, media: media.packetsSent + media.packetsReceived > 0 ? media : nil)
    }

    func place(_ parameters: CallParameters) throws(CommandFailure) -> SinchCall {
        let media = try parameters.media()
        let callClient = client.callClient
        let headers = parameters.headers ?? [:]
        let destination = parameters.destination
        let result: Result<SinchCall, Error>
        if destination.hasPrefix("+") {
            result = callClient.callPhoneNumber(destination, headers: headers, media: media)
        } else if destination.contains("@") || destination.lowercased().hasPrefix("sip:") {
            result = callClient.callSIP(destination, headers: headers, media: media)
        } else {
            result = callClient.callUser(withId: destination, headers: headers, media: media)
        }
        switch result {
        case .success(let call):
            call.delegate = delegate
            calls.append(call)
            return call
        case .failure(let error):
            throw (error as? SinchError).map { CommandFailure($0) }
                ?? CommandFailure(exit: .internalError, message: "\(error)")
        }
    }
}

/// Receives the SDK's callbacks and hands them to the service in order.
private final class AgentDelegate: SinchClientDelegate, SinchCallClientDelegate, SinchCallDelegate, Sendable {
    private let service = Mutex<AgentService?>(nil)

    func attach(_ service: AgentService) {
        self.service.withLock { $0 = service }
    }

    private func tell(_ work: @escaping @Sendable (isolated AgentService) -> Void) {
        service.withLock { $0 }?.perform(work)
    }

    func clientRequiresRegistrationCredentials(
        _ client: SinchClient, withCallback callback: SinchClientRegistration
    ) {
        guard let service = service.withLock({ $0 }) else { return }
        let tokens = service.tokens
        Task.detached {
            do {
                callback.register(withJWT: try await tokens.token(for: client.userId))
            } catch {
                let failure =
                    (error as? CommandFailure) ?? (error as? SinchError).map { CommandFailure($0) }
                    ?? (error as? TokenError).map { CommandFailure($0) }
                    ?? CommandFailure(exit: .registrationRefused, step: "token", message: "\(error)")
                service.perform { $0.tokenFailure = failure }
                callback.registerDidFail(error: error)
            }
        }
    }

    func clientDidStart(_ client: SinchClient) {
        tell { $0.clientStarted() }
    }

    func clientDidFail(_ client: SinchClient, error: Error) {
        tell { $0.clientFailed(error) }
    }

    func client(_ client: SinchCallClient, didReceiveIncomingCall call: SinchCall) {
        // At once: the caller may give up before the service's turn comes.
        call.delegate = self
        tell { $0.received(call) }
    }

    func callDidProgress(_ call: SinchCall) { tell { $0.moved(call, to: "progressing") } }
    func callDidRing(_ call: SinchCall) { tell { $0.moved(call, to: "ringing") } }
    func callDidAnswer(_ call: SinchCall) { tell { $0.moved(call, to: "answered") } }
    func callDidEstablish(_ call: SinchCall) { tell { $0.moved(call, to: "established") } }
    func callDidEnd(_ call: SinchCall) { tell { $0.moved(call, to: "ended") } }

    func callDidHold(_ call: SinchCall) { tell { $0.happened("held", in: call) } }
    func callDidResume(_ call: SinchCall) { tell { $0.happened("resumed", in: call) } }
    func callDidGetHeld(_ call: SinchCall) { tell { $0.happened("heldByRemote", in: call) } }
    func callDidGetResumed(_ call: SinchCall) { tell { $0.happened("resumedByRemote", in: call) } }
    func callDidFailToHold(_ call: SinchCall, error: Error) { tell { $0.failed("holdFailed", in: call, error) } }
    func callDidReceiveDTMF(_ call: SinchCall, key: String) { tell { $0.record("dtmf", call: call, key: key) } }
    func callDidSendDTMF(_ call: SinchCall) { tell { $0.happened("dtmfSent", in: call) } }
    func callDidFailToSendDTMF(_ call: SinchCall, error: Error) { tell { $0.failed("dtmfFailed", in: call, error) } }
    func callDidTransfer(_ call: SinchCall) { tell { $0.happened("transferred", in: call) } }
    func callDidFailToTransfer(_ call: SinchCall, error: Error) {
        tell { $0.failed("transferFailed", in: call, error) }
    }
    func callDidProgressTransfer(_ call: SinchCall, sipStatus: Int) {
        tell { $0.record("transferProgress", call: call, sipStatus: sipStatus) }
    }
    func call(_ call: SinchCall, willTransferTo newCall: SinchCall) {
        newCall.delegate = self
        tell { $0.transferring(call, to: newCall) }
    }
}
