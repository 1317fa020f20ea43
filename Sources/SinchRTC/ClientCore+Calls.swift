import Audio
import Dispatch
import MediaSession
import Network
import Primitives
import SDP
import SIP
import Signalling

/// A core that other threads hold without keeping it alive.
final class WeakCore: Sendable {
    private let core: @Sendable () -> ClientCore?

    init(_ core: ClientCore) {
        self.core = { [weak core] in core }
    }

    var value: ClientCore? { core() }
}

/// One call's parts on this side: the public object, its ports, and its media once it flows.
struct CallSession {
    let call: SinchCall
    var port: MediaPort?
    var stream: MediaStream?
    /// What was agreed on last; before the answer, with the device whose early media is heard.
    var audio: NegotiatedAudio?
    /// The device whose early media is heard.
    var earlyFork: Int?
    /// Whether devices are being opened for the stream.
    var isOpening = false
    /// Whether the application wants the call on hold.
    var wantsHold = false
    var isMuted = false
    /// What the call's own devices are; nil: the client's.
    var options: SinchCallMedia
    var mediaDeadline: TimerHandle?

    /// Whether nothing goes out: this side holds the call, or has asked for it.
    var isSilenced: Bool { wantsHold || call.isOnHold }
}

extension ClientCore {
    // MARK: Commands

    func place(_ call: SinchCall, to target: SIPURI) {
        guard shared.isStarted else {
            call.advance(
                to: .ended,
                termination: CallTermination(.failed, isLocal: true, phrase: "the client is not started"),
                error: SinchError(
                    .notStarted, "the client is not started", hint: "call start() and wait for clientDidStart",
                    step: "calling"))
            return
        }
        guard let path = agent.path else {
            call.advance(
                to: .ended,
                termination: CallTermination(
                    .network, isLocal: true, phrase: "the connection to the platform is lost"))
            return
        }
        let port: MediaPort
        do {
            port = try MediaPort(host: path.local.host)
        } catch {
            call.advance(to: .ended, termination: CallTermination(.media, isLocal: true, phrase: error.message))
            return
        }
        let headers = call.headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        let handle = agent.call(target, callID: call.callId, headers: headers, media: port.local, at: loop.now)
        call.wasPlaced = true
        sessions[handle] = CallSession(call: call, port: port, options: call.media)
        drain()
    }

    func answer(_ call: SinchCall, headers: [String: String] = [:]) {
        guard let (handle, session) = find(call), call.direction == .incoming, session.port == nil,
            let path = agent.path
        else { return }
        do {
            let port = try MediaPort(host: path.local.host)
            sessions[handle]?.port = port
            sessions[handle]?.options = call.media
            let headers = headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
            agent.answer(handle, media: port.local, headers: headers, at: loop.now)
        } catch {
            agent.hangUp(
                handle, status: 500, termination: CallTermination(.media, isLocal: true, phrase: error.message),
                at: loop.now)
        }
        drain()
    }

    func hangUp(_ call: SinchCall, status: Int) {
        guard let (handle, _) = find(call) else { return }
        agent.hangUp(handle, status: status, at: loop.now)
        drain()
    }

    /// Ends a call for a reason of ours.
    func giveUp(_ handle: CallHandle, _ termination: CallTermination) {
        agent.hangUp(handle, status: 488, reason: nil, termination: termination, at: loop.now)
        drain()
    }

    /// Ends an outgoing call that nobody answered.
    func giveUpRinging(_ call: SinchCall) {
        guard let (handle, _) = find(call), call.state < .answered else { return }
        agent.giveUpRinging(handle, at: loop.now)
        drain()
    }

    func find(_ call: SinchCall) -> (CallHandle, CallSession)? {
        sessions.first { $0.value.call === call }.map { ($0.key, $0.value) }
    }

    // MARK: Events

    func handle(_ event: CallEvent, of handle: CallHandle) {
        switch event {
        case .incoming(let incoming): receive(incoming, handle: handle)
        case .progressed: sessions[handle]?.call.advance(to: .progressing)
        case .rang: sessions[handle]?.call.advance(to: .ringing)
        case .earlyMedia(let audio, let fork): hearEarly(audio, fork: fork, of: handle)
        case .earlyMediaEnded(let fork): earlyMediaEnded(fork: fork, of: handle)
        case .answerHeaders(let headers): sessions[handle]?.call.setRemoteHeaders(headers)
        case .answered(let audio):
            sessions[handle]?.call.advance(to: .answered)
            useMedia(audio, of: handle)
        case .mediaChanged(let audio): useMedia(audio, of: handle)
        case .holdChanged(let local, let remote):
            sessions[handle]?.call.setHold(local: local, remote: remote)
            applyMedia(of: handle)
        case .changeFailed(let reason): holdFailed(reason, of: handle)
        case .keyReceived(let key): received(key, of: handle)
        case .keysSent: keysSent(of: handle)
        case .keysFailed(let termination): keysFailed(termination, of: handle)
        case .transferRequested(let request): follow(request, of: handle)
        case .transferProgress(let status): transferProgressed(status, of: handle)
        case .transferred: transferred(handle)
        case .transferFailed(let termination): transferFailed(termination, of: handle)
        case .ended(let termination):
            end(handle, termination)
        }
    }

    private func receive(_ incoming: IncomingCall, handle: CallHandle) {
        guard !isTerminating else {
            agent.hangUp(handle, status: 480, at: loop.now)
            return
        }
        let replaced = incoming.replaces.flatMap { sessions[$0] }
        let identity = incoming.assertedIdentity ?? incoming.from
        let call = SinchCall(
            callId: incoming.callID, remoteUserId: Identifiers.name(of: identity.uri),
            remoteDisplayName: identity.displayName ?? incoming.from.displayName, direction: .incoming,
            headers: incoming.headers, previousCall: replaced?.call, core: self)
        if let replaced { call.media = replaced.options.withoutRecording }
        sessions[handle] = CallSession(call: call, options: call.media)
        guard let client else { return }
        callBack {
            let callClient = client.callClient
            if let delegate = callClient.delegate {
                delegate.client(callClient, didReceiveIncomingCall: call)
                // The user is in this call already: only whom it is with has changed.
                if call.previousCall != nil { call.answer() }
            } else {
                // Nobody is there to answer: say so instead of ringing for ever.
                call.hangup()
            }
        }
    }

    private func end(_ handle: CallHandle, _ termination: CallTermination) {
        guard let session = sessions.removeValue(forKey: handle) else { return }
        session.mediaDeadline?.cancel()
        let call = session.call
        guard let stream = session.stream else {
            call.advance(to: .ended, termination: termination)
            return
        }
        // The end is told when the statistics are final and the recording is complete.
        closingCalls += 1
        let loop = loop
        engine.remove(stream) { [self] statistics in
            loop.execute {
                call.lastStatistics = statistics
                call.advance(to: .ended, termination: termination)
                self.assumeIsolated { core in
                    core.closingCalls -= 1
                    core.concludeTermination()
                }
            }
        }
    }
}
