/// Details of how devices are made; the defaults suit calls.
public struct AudioDeviceOptions: Equatable, Sendable {
    /// Frames of 48 kHz that a hardware sink is kept filled with: 30 ms. More is safer and later.
    public var targetFillFrames = 3 * AudioFormat.blockFrames
    /// Whether a file source starts again at its end.
    public var loops = false

    /// The defaults.
    public init() {}
}

/// Makes the source of that name. Opens files; hardware is opened by `start()`.
///
/// - Throws: `.missing` or `.unusable` for files, `.invalidName` for names that are no source of their own.
public func makeSource(
    _ name: AudioDeviceName, options: AudioDeviceOptions = AudioDeviceOptions()
) throws(AudioError) -> any AudioSource {
    switch name {
    case .alsa(let pcm): return ALSASource(pcm: pcm)
    case .file(let path): return try WAVReader(path: path, loops: options.loops)
    case .tone(let frequency): return ToneSource(frequency: frequency)
    case .silence, .null: return SilenceSource(name: name)
    case .echo: throw echoAlone
    }
}

/// Makes the sink of that name. Creates files; hardware is opened by `start()`.
///
/// - Throws: `.cannotCreate` for files, `.invalidName` for names that are no sink of their own.
public func makeSink(
    _ name: AudioDeviceName, options: AudioDeviceOptions = AudioDeviceOptions()
) throws(AudioError) -> any AudioSink {
    switch name {
    case .alsa(let pcm): return ALSASink(pcm: pcm, targetFillFrames: options.targetFillFrames)
    case .file(let path): return try WAVWriter(path: path, channels: 1)
    case .null, .silence: return NullSink(name: name)
    case .tone:
        throw AudioError(
            .invalidName, "'\(name)' makes sound and cannot play any",
            hint: "use it as the capture device, and for example null for playback")
    case .echo: throw echoAlone
    }
}

/// Makes both devices of a client. `echo` works for both sides together only: it returns what the client hears.
///
/// - Throws: What `makeSource` and `makeSink` throw.
public func makeDevicePair(
    capture: AudioDeviceName, playback: AudioDeviceName, options: AudioDeviceOptions = AudioDeviceOptions()
) throws(AudioError) -> (source: any AudioSource, sink: any AudioSink) {
    if capture == .echo && playback == .echo {
        let pair = EchoDevice()
        return (pair.source, pair.sink)
    }
    // The source first: a missing input file must not leave an empty output file behind.
    let source = try makeSource(capture, options: options)
    return (source, try makeSink(playback, options: options))
}

private let echoAlone = AudioError(
    .invalidName, "'echo' returns what is heard, so it must be both the capture and the playback device",
    hint: "use --capture echo --playback echo")
