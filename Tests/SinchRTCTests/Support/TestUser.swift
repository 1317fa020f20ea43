import Audio
import SinchRTC
import Synchronization
import Token

/// What a user's delegates were told.
enum UserEvent: Sendable, Equatable {
    case needsToken
    case started
    case failed(SinchError.Code)
    case incoming(String)
    case progress(String)
    case ring(String)
    case answer(String)
    case establish(String)
    case end(String, SinchCallDetails.EndCause)
    /// What happens while a call goes on: `hold`, `key 5`, `transferred`, …
    case conversation(String, String)
    case muted
    case unmuted
    case registration(String)

    /// The call's events carry its id; without it they are easier to compare.
    var name: String {
        switch self {
        case .needsToken: "needsToken"
        case .started: "started"
        case .failed: "failed"
        case .incoming: "incoming"
        case .progress: "progress"
        case .ring: "ring"
        case .answer: "answer"
        case .establish: "establish"
        case .end: "end"
        case .conversation(let what, _): what
        case .muted: "muted"
        case .unmuted: "unmuted"
        case .registration: "registration"
        }
    }

    var callId: String? {
        switch self {
        case .incoming(let id), .progress(let id), .ring(let id), .answer(let id), .establish(let id), .end(let id, _),
            .conversation(_, let id):
            id
        default: nil
        }
    }
}

/// A client with every delegate, as a test needs it.
final class TestUser: SinchClientDelegate, SinchCallClientDelegate, SinchCallDelegate, SinchAudioControllerDelegate,
    Sendable
{
    /// What to do with incoming calls.
    enum Policy: Sendable {
        case hold, answer, decline, busy
    }

    struct NoToken: Error {}

    let client: SinchClient
    let log = EventLog<UserEvent>()
    private let key: String
    private let secret: ApplicationSecret?
    private let state: Mutex<(policy: Policy, incoming: [SinchCall], errors: [SinchError], media: SinchCallMedia)>
    private let transferredCalls = Mutex<[SinchCall]>([])

    /// - Parameter secret: nil: the user has no token to give.
    init(
        _ configuration: SinchClientConfiguration, secret: ApplicationSecret?, policy: Policy = .hold,
        incomingMedia: SinchCallMedia = SinchCallMedia()
    ) throws {
        key = configuration.applicationKey
        self.secret = secret
        state = Mutex((policy, [], [], incomingMedia))
        client = try SinchRTC.client(configuration: configuration)
        client.delegate = self
        client.callClient.delegate = self
        client.audioController.delegate = self
    }

    var incoming: [SinchCall] { state.withLock { $0.incoming } }
    var errors: [SinchError] { state.withLock { $0.errors } }

    func start() async throws {
        client.start()
        try await log.wait("clientDidStart") { $0.contains(.started) }
    }

    func failure() async throws -> SinchError? {
        try await log.wait("clientDidFail") { events in events.contains { $0.name == "failed" } }
        return errors.last
    }

    func call(_ user: String, headers: [String: String] = [:], media: SinchCallMedia = SinchCallMedia()) throws
        -> SinchCall
    {
        let call = try client.callClient.callUser(withId: user, headers: headers, media: media).get()
        call.delegate = self
        return call
    }

    /// The names of what a call's delegate was told.
    func story(of call: SinchCall) -> [String] {
        log.events.filter { $0.callId == call.callId }.map(\.name)
    }

    func wait(_ name: String, of call: SinchCall, timeout: Int = 15) async throws {
        let id = call.callId
        try await log.wait("\(name) of \(id)", timeout: timeout) { events in
            events.contains { $0.name == name && $0.callId == id }
        }
    }

    func nextIncoming(count: Int = 1) async throws -> SinchCall {
        try await log.wait("an incoming call") { events in events.count { $0.name == "incoming" } >= count }
        return incoming[count - 1]
    }

    // MARK: Delegates

    func clientRequiresRegistrationCredentials(
        _ client: SinchClient, withCallback callback: SinchClientRegistration
    ) {
        log.append(.needsToken)
        do {
            guard let secret else { throw NoToken() }
            callback.register(
                withJWT: try SinchJWT.sign(applicationKey: key, applicationSecret: secret, userId: client.userId))
        } catch {
            callback.registerDidFail(error: error)
        }
    }

    func clientDidStart(_ client: SinchClient) { log.append(.started) }

    func clientDidFail(_ client: SinchClient, error: Error) {
        let error = error as? SinchError ?? SinchError(.internal, "not a SinchError: \(error)")
        state.withLock { $0.errors.append(error) }
        log.append(.failed(error.code))
    }

    func client(_ client: SinchCallClient, didReceiveIncomingCall call: SinchCall) {
        let policy = state.withLock { state in
            state.incoming.append(call)
            call.media = state.media
            return state.policy
        }
        call.delegate = self
        log.append(.incoming(call.callId))
        switch policy {
        case .hold: break
        case .answer: call.answer()
        case .decline: call.hangup()
        case .busy: call.hangupBusy()
        }
    }

    func callDidProgress(_ call: SinchCall) { log.append(.progress(call.callId)) }
    func callDidRing(_ call: SinchCall) { log.append(.ring(call.callId)) }
    func callDidAnswer(_ call: SinchCall) { log.append(.answer(call.callId)) }
    func callDidEstablish(_ call: SinchCall) { log.append(.establish(call.callId)) }
    func callDidEnd(_ call: SinchCall) { log.append(.end(call.callId, call.details.endCause)) }

    private func tell(_ what: String, _ call: SinchCall) { log.append(.conversation(what, call.callId)) }
    func callDidHold(_ call: SinchCall) { tell("hold", call) }
    func callDidResume(_ call: SinchCall) { tell("resume", call) }
    func callDidGetHeld(_ call: SinchCall) { tell("held", call) }
    func callDidGetResumed(_ call: SinchCall) { tell("goesOn", call) }
    func callDidFailToHold(_ call: SinchCall, error: Error) { tell("holdFailed", call) }
    func callDidReceiveDTMF(_ call: SinchCall, key: String) { tell("key \(key)", call) }
    func callDidSendDTMF(_ call: SinchCall) { tell("keysSent", call) }
    func callDidFailToSendDTMF(_ call: SinchCall, error: Error) { tell("keysFailed", call) }
    func callDidProgressTransfer(_ call: SinchCall, sipStatus: Int) { tell("transfer \(sipStatus)", call) }
    func callDidTransfer(_ call: SinchCall) { tell("transferred", call) }
    func callDidFailToTransfer(_ call: SinchCall, error: Error) {
        tell("transferFailed \((error as? SinchError)?.code.rawValue ?? "")", call)
    }
    func call(_ call: SinchCall, willTransferTo newCall: SinchCall) {
        newCall.delegate = self
        transferredCalls.withLock { $0.append(newCall) }
        tell("transferring", call)
    }

    /// The calls that this user was made to make.
    var transferred: [SinchCall] { transferredCalls.withLock { $0 } }
    func audioControllerMuted(_ controller: SinchAudioController) { log.append(.muted) }
    func audioControllerUnmuted(_ controller: SinchAudioController) { log.append(.unmuted) }
}
