import Audio

/// What one call does with sound, where it differs from the client's devices. Set it before the call is answered.
public struct SinchCallMedia: Sendable, Equatable {
    /// Where what is sent comes from; nil: the client's capture device.
    public var capture: AudioDeviceName?
    /// Where what is heard goes to; nil: the client's playback device.
    public var playback: AudioDeviceName?
    /// A file for a stereo WAV: left what was sent, right what was heard, on one time base; nil: none.
    public var recording: String?
    /// Whether the call ends when the capture file has been played.
    public var hangsUpAfterPlaying = false

    /// The client's devices, no recording.
    public init() {}

    /// The same for a call that follows this one: two calls cannot write one file.
    var withoutRecording: SinchCallMedia {
        var media = self
        media.recording = nil
        return media
    }
}
