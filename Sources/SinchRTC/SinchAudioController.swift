import FoundationEssentials

/// Controls what is said and heard, for all calls of a client. Any thread.
public final class SinchAudioController: Sendable {
    private let delegateReference = DelegateReference<any SinchAudioControllerDelegate>()
    private let core: ClientCore

    init(core: ClientCore) {
        self.core = core
    }

    /// Who is told when the microphone is muted; held weakly.
    public var delegate: (any SinchAudioControllerDelegate)? {
        get { delegateReference.value }
        set { delegateReference.value = newValue }
    }

    /// Sends silence instead of what is captured, in every call, also in those to come.
    public func mute() {
        core.perform { $0.setMuted(true) }
    }

    /// Sends what is captured again.
    public func unmute() {
        core.perform { $0.setMuted(false) }
    }

    /// Plays a WAV file on the playback device: a ringtone, a ringback tone. One at a time; a new one replaces it.
    ///
    /// - Throws: `SinchError` with code `audioDevice` when the file is missing or no PCM WAV.
    public func startPlayingSoundFile(withPath path: String?, looping: Bool) throws {
        guard let path else {
            throw SinchError(.invalidArgument, "no sound file was given")
        }
        try core.startSound(path: path, looping: looping)
    }

    /// Stops the sound file.
    public func stopPlayingSoundFile() {
        core.perform { $0.stopSound() }
    }
}

/// What an audio controller tells its observer, on the callback queue. Every method is optional.
public protocol SinchAudioControllerDelegate: AnyObject {
    /// The microphone was muted.
    func audioControllerMuted(_ controller: SinchAudioController)
    /// The microphone was unmuted.
    func audioControllerUnmuted(_ controller: SinchAudioController)
}

extension SinchAudioControllerDelegate {
    /// Does nothing.
    public func audioControllerMuted(_ controller: SinchAudioController) {}
    /// Does nothing.
    public func audioControllerUnmuted(_ controller: SinchAudioController) {}
}
