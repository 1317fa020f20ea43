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
    var audio: NegotiatedAudio?
    var isMuted = false
    /// What the call's own devices are; nil: the client's.
    var options: SinchCallMedia
    var mediaDeadline: TimerHandle?
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

    func answer(_ call: SinchCall) {
        guard let (handle, session) = find(call), call.direction == .incoming, session.port == nil,
            let path = agent.path
        else { return }
        do {
            let port = try MediaPort(host: path.local.host)
            sessions[handle]?.port = port
            sessions[handle]?.options = call.media
            agent.answer(handle, media: port.local, at: loop.now)
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

    /// Ends an outgoing call that nobody answered.
    func giveUpRinging(_ call: SinchCall) {
        guard let (handle, _) = find(call), call.state < .answered else { return }
        agent.giveUpRinging(handle, at: loop.now)
        drain()
    }

    /// Mutes or unmutes every call, and those to come.
    func setMuted(_ muted: Bool) {
        guard muted != isMuted else { return }
        isMuted = muted
        for session in sessions.values { applyMute(to: session) }
        guard let controller = client?.audioController else { return }
        callBack {
            if muted {
                controller.delegate?.audioControllerMuted(controller)
            } else {
                controller.delegate?.audioControllerUnmuted(controller)
            }
        }
    }

    func setMuted(_ muted: Bool, call: SinchCall) {
        guard let (handle, _) = find(call) else { return }
        sessions[handle]?.isMuted = muted
        if let session = sessions[handle] { applyMute(to: session) }
    }

    private func applyMute(to session: CallSession) {
        guard let stream = session.stream else { return }
        engine.setMuted(isMuted || session.isMuted, of: stream)
    }

    func statistics(of call: SinchCall, completion: @escaping @Sendable (MediaStatistics) -> Void) {
        if let (_, session) = find(call), let stream = session.stream {
            engine.statistics(of: stream) { statistics in
                callBack { completion(statistics) }
            }
        } else {
            let last = call.lastStatistics
            callBack { completion(last) }
        }
    }

    private func find(_ call: SinchCall) -> (CallHandle, CallSession)? {
        sessions.first { $0.value.call === call }.map { ($0.key, $0.value) }
    }

    // MARK: Events

    func handle(_ event: CallEvent, of handle: CallHandle) {
        switch event {
        case .incoming(let incoming): receive(incoming, handle: handle)
        case .progressed: sessions[handle]?.call.advance(to: .progressing)
        case .rang: sessions[handle]?.call.advance(to: .ringing)
        case .answered(let audio):
            guard let session = sessions[handle] else { return }
            session.call.advance(to: .answered)
            startMedia(audio, of: handle)
        case .mediaChanged(let audio):
            guard mayFlow(audio, of: handle), sessions[handle] != nil else { return }
            sessions[handle]?.audio = audio
            if let stream = sessions[handle]?.stream { engine.update(stream, to: audio) }
        case .ended(let termination):
            end(handle, termination)
        }
    }

    private func receive(_ incoming: IncomingCall, handle: CallHandle) {
        guard !isTerminating else {
            agent.hangUp(handle, status: 480, at: loop.now)
            return
        }
        let call = SinchCall(
            callId: incoming.callID, remoteUserId: incoming.from.uri.user ?? incoming.from.uri.host,
            remoteDisplayName: incoming.from.displayName, direction: .incoming, headers: incoming.headers, core: self)
        sessions[handle] = CallSession(call: call, options: call.media)
        guard let client else { return }
        callBack {
            let callClient = client.callClient
            if let delegate = callClient.delegate {
                delegate.client(callClient, didReceiveIncomingCall: call)
            } else {
                // Nobody is there to answer: say so instead of ringing for ever.
                call.hangup()
            }
        }
    }

    private func startMedia(_ audio: NegotiatedAudio, of handle: CallHandle) {
        guard let session = sessions[handle], let port = session.port else { return }
        sessions[handle]?.audio = audio
        guard mayFlow(audio, of: handle) else { return }
        let settings = MediaStream.Settings(
            audio: audio, opusBitrate: configuration.opusBitrate, opusComplexity: configuration.opusComplexity,
            inactivityTimeout: configuration.inactivityTimeout, isMuted: isMuted || session.isMuted)
        let capture = session.options.capture ?? configuration.capture
        let playback = session.options.playback ?? configuration.playback
        let recording = session.options.recording
        let loop = loop
        // Devices and files can take a while to open: that is no work for the signalling or the media thread.
        let weakCore = WeakCore(self)
        DispatchQueue.global().async {
            let result = Result { () throws(AudioError) -> MediaStream in
                let devices = try makeDevicePair(capture: capture, playback: playback)
                do throws(AudioError) {
                    try devices.source.start()
                    try devices.sink.start()
                    let recorder = try recording.map { path throws(AudioError) in try StereoRecorder(path: path) }
                    return try MediaStream(
                        port: port, settings: settings, source: devices.source, sink: devices.sink, recorder: recorder
                    ) { event in
                        loop.execute { weakCore.value?.assumeIsolated { $0.handle(event, of: handle) } }
                    }
                } catch {
                    devices.source.stop()
                    devices.sink.stop()
                    throw error
                }
            }
            loop.execute { weakCore.value?.assumeIsolated { $0.mediaReady(result, of: handle) } }
        }
    }

    /// Whether media may go where the peer wants it; ends the call where not: plain RTP must not leave this machine.
    private func mayFlow(_ audio: NegotiatedAudio, of handle: CallHandle) -> Bool {
        let remote = TransportAddress(host: audio.remoteAddress, port: audio.remoteRTPPort)
        guard audio.direction != .inactive, !configuration.mediaSecurity.allowsPlain(to: remote) else { return true }
        giveUp(
            handle,
            CallTermination(
                .media, isLocal: true,
                phrase: "media to \(remote) would be unencrypted; plain RTP beyond loopback needs mediaSecurity none"))
        return false
    }

    private func mediaReady(_ result: Result<MediaStream, AudioError>, of handle: CallHandle) {
        guard sessions[handle] != nil else {
            // The call ended while its devices were being opened.
            if case .success(let stream) = result { DispatchQueue.global().async { stream.discard() } }
            return
        }
        switch result {
        case .success(let stream):
            sessions[handle]?.stream = stream
            engine.add(stream)
            if let session = sessions[handle] { applyMute(to: session) }
            if sessions[handle]?.audio?.direction.receives == false {
                sessions[handle]?.call.advance(to: .established)
                return
            }
            sessions[handle]?.mediaDeadline = loop.schedule(at: loop.now + configuration.mediaTimeout) { [weak self] in
                self?.assumeIsolated { core in
                    core.giveUp(
                        handle,
                        CallTermination(
                            .media, isLocal: true,
                            phrase: "the call was answered, but no media arrived within "
                                + "\(Int(core.configuration.mediaTimeout.seconds)) s"))
                }
            }
        case .failure(let error):
            sessions[handle]?.call.deviceError = error
            giveUp(handle, CallTermination(.media, isLocal: true, phrase: error.message))
        }
    }

    /// Ends a call for a reason of ours.
    func giveUp(_ handle: CallHandle, _ termination: CallTermination) {
        agent.hangUp(
            handle, status: 488, reason: nil, termination: termination, at: loop.now)
        drain()
    }

    func handle(_ event: MediaEvent, of handle: CallHandle) {
        guard let session = sessions[handle] else { return }
        switch event {
        case .firstPacketReceived:
            session.mediaDeadline?.cancel()
            sessions[handle]?.mediaDeadline = nil
            session.call.advance(to: .established)
        case .sourceExhausted:
            if session.options.hangsUpAfterPlaying { hangUp(session.call, status: 603) }
        case .inactive(let silence):
            giveUp(
                handle,
                CallTermination(.inactive, isLocal: true, phrase: "no media for \(Int(silence.seconds)) s"))
        case .deviceFailed(let error):
            log(.warning, "audio", error.message)
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
