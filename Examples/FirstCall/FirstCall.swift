import Dispatch
import FoundationEssentials
@preconcurrency import Glibc
import SinchRTC

/// A first call: registers a user, calls another, talks for a while and hangs up.
///
/// Every callback comes on the main queue, so the class needs no locks.
final class FirstCall: SinchClientDelegate, SinchCallDelegate {
    private let environment: Environment
    private let callee: String
    private let seconds: Int
    private let client: SinchClient
    private var call: SinchCall?

    init(environment: Environment, user: String, callee: String, seconds: Int) throws {
        self.environment = environment
        self.callee = callee
        self.seconds = seconds
        client = try SinchRTC.client(
            withApplicationKey: environment.applicationKey, environmentHost: environment.address, userId: user)
    }

    func start() {
        client.delegate = self
        client.start()
    }

    // MARK: SinchClientDelegate

    func clientRequiresRegistrationCredentials(
        _ client: SinchClient, withCallback callback: SinchClientRegistration
    ) {
        // In production a backend signs the token: the secret has no place in a program that users have.
        do {
            callback.register(
                withJWT: try SinchJWT.sign(
                    applicationKey: environment.applicationKey, applicationSecret: environment.applicationSecret,
                    userId: client.userId))
        } catch {
            callback.registerDidFail(error: error)
        }
    }

    func clientDidStart(_ client: SinchClient) {
        print("registered as \(client.userId)")
        // A tone instead of the microphone, and no loudspeaker: this runs on machines without sound.
        var media = SinchCallMedia()
        media.capture = .tone(440)
        media.playback = .null
        switch client.callClient.callUser(withId: callee, media: media) {
        case .success(let call):
            call.delegate = self
            self.call = call
        case .failure(let error):
            finish(error: error)
        }
    }

    func clientDidFail(_ client: SinchClient, error: Error) {
        finish(error: error)
    }

    // MARK: SinchCallDelegate

    func callDidRing(_ call: SinchCall) {
        print("\(call.remoteUserId) rings")
    }

    func callDidEstablish(_ call: SinchCall) {
        print("talking to \(call.remoteUserId) for \(seconds) s")
        DispatchQueue.main.asyncAfter(deadline: .now() + .seconds(seconds)) { call.hangup() }
    }

    func callDidEnd(_ call: SinchCall) {
        print("ended: \(call.details.endCause.rawValue), \(call.lastStatistics.packetsReceived) packets received")
        let wasEstablished = call.details.establishedTime != nil
        finish(error: call.details.error, code: wasEstablished && call.details.endCause == .hungUp ? 0 : 1)
    }

    // MARK: The end

    private func finish(error: Error?, code: Int32 = 1) {
        if let error { fputs("first-call-example: \(error)\n", stderr) }
        // `terminateGracefully()` is enough for a program that goes on; this one has to wait before it exits.
        let client = client
        Task {
            await client.terminate()
            exit(error == nil ? code : 1)
        }
    }
}
