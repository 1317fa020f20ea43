/// The one format that flows between devices, mixers and codecs: 48 kHz, mono, signed 16 bit.
public enum AudioFormat {
    /// Samples a second.
    public static let sampleRate = 48_000
    /// Frames in a block: the media thread's unit of work, 10 ms.
    public static let blockFrames = 480
    /// Frames in the usual RTP packet, 20 ms.
    public static let packetFrames = 960
}
