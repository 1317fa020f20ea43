import Audio
import Dispatch
import MediaSession
import Network
import Primitives
import SDP
import Signalling

/// The media of the calls: what was negotiated becomes streams, and what they tell becomes the state of their calls.
extension ClientCore {
    // MARK: Microphone and statistics

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

    // MARK: What was negotiated

    /// The call was answered, or its media changed.
    func useMedia(_ audio: NegotiatedAudio, of handle: CallHandle) {
        guard sessions[handle] != nil, mayFlow(audio, of: handle) else { return }
        sessions[handle]?.audio = audio
        sessions[handle]?.earlyFork = nil
        if sessions[handle]?.stream != nil {
            applyMedia(of: handle)
            awaitMedia(of: handle)
        } else {
            openMedia(of: handle)
        }
    }

    /// Somebody is heard before the answer: an announcement, or the ringing tone of another network. Of several devices
    /// the one that began last is heard.
    func hearEarly(_ audio: NegotiatedAudio, fork: Int, of handle: CallHandle) {
        guard let session = sessions[handle], session.call.state < .answered, isAllowed(audio) else { return }
        sessions[handle]?.audio = audio
        sessions[handle]?.earlyFork = fork
        session.stream == nil ? openMedia(of: handle) : applyMedia(of: handle)
    }

    func earlyMediaEnded(fork: Int, of handle: CallHandle) {
        guard let session = sessions[handle], session.earlyFork == fork, session.call.state < .answered else { return }
        sessions[handle]?.audio?.direction = .inactive
        applyMedia(of: handle)
    }

    /// What the stream shall do: what was negotiated, or less where this side holds the call.
    private func audio(of session: CallSession) -> (NegotiatedAudio, MediaStream.Phase)? {
        guard var audio = session.audio else { return nil }
        if session.isSilenced { audio.direction = .inactive }
        let isHeld = session.isSilenced || session.call.isHeldByRemote
        return (audio, session.call.state < .answered ? .early : isHeld ? .held : .talking)
    }

    /// Tells the stream what has changed.
    func applyMedia(of handle: CallHandle) {
        guard let session = sessions[handle], let stream = session.stream, let (audio, phase) = audio(of: session)
        else { return }
        engine.update(stream, to: audio, phase: phase)
        if phase == .held, session.mediaDeadline != nil { established(handle) }
    }

    /// Opens the call's devices and makes its stream; `mediaReady` follows.
    private func openMedia(of handle: CallHandle) {
        guard let session = sessions[handle], !session.isOpening, let port = session.port,
            let (audio, phase) = audio(of: session)
        else { return }
        sessions[handle]?.isOpening = true
        let settings = MediaStream.Settings(
            audio: audio, phase: phase, opusBitrate: configuration.opusBitrate,
            opusComplexity: configuration.opusComplexity, inactivityTimeout: configuration.inactivityTimeout,
            isMuted: isMuted || session.isMuted, leavesMachine: configuration.mediaSecurity == .none)
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

    /// Whether plain media may go there.
    private func isAllowed(_ audio: NegotiatedAudio) -> Bool {
        configuration.mediaSecurity.allowsPlain(
            to: TransportAddress(host: audio.remoteAddress, port: audio.remoteRTPPort))
    }

    /// Whether media may go where the peer wants it; ends the call where not: plain RTP must not leave this machine.
    private func mayFlow(_ audio: NegotiatedAudio, of handle: CallHandle) -> Bool {
        // A peer that does not listen may name no address at all.
        guard audio.direction.sends, !isAllowed(audio) else { return true }
        let remote = TransportAddress(host: audio.remoteAddress, port: audio.remoteRTPPort)
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
        sessions[handle]?.isOpening = false
        switch result {
        case .success(let stream):
            sessions[handle]?.stream = stream
            engine.add(stream)
            if let session = sessions[handle] { applyMute(to: session) }
            // What was negotiated while the devices were being opened.
            applyMedia(of: handle)
            awaitMedia(of: handle)
        case .failure(let error):
            sessions[handle]?.call.deviceError = error
            giveUp(handle, CallTermination(.media, isLocal: true, phrase: error.message))
        }
    }

    /// The call is answered and its stream runs: from now on the other side should be heard.
    private func awaitMedia(of handle: CallHandle) {
        guard let session = sessions[handle], session.call.state == .answered, session.mediaDeadline == nil,
            let (audio, phase) = audio(of: session)
        else { return }
        guard audio.direction.receives, phase == .talking else {
            session.call.advance(to: .established)
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
    }

    // MARK: What streams tell

    func handle(_ event: MediaEvent, of handle: CallHandle) {
        guard let session = sessions[handle] else { return }
        switch event {
        case .firstPacketReceived: established(handle)
        case .sourceExhausted:
            if session.options.hangsUpAfterPlaying { hangUp(session.call, status: 603) }
        case .inactive(let silence):
            giveUp(
                handle,
                CallTermination(.inactive, isLocal: true, phrase: "no media for \(Int(silence.seconds)) s"))
        case .deviceFailed(let error):
            log(.warning, "audio", error.message)
        case .keyReceived(let key): received(key, of: handle)
        case .keysSent: keysSent(of: handle)
        }
    }

    private func established(_ handle: CallHandle) {
        guard let session = sessions[handle] else { return }
        session.mediaDeadline?.cancel()
        sessions[handle]?.mediaDeadline = nil
        session.call.advance(to: .established)
    }
}
