/// The name of an audio device as people write it: `alsa:PCM`, `file:PATH`, `tone:HZ`, `silence`, `null`, `echo`.
public enum AudioDeviceName: Hashable, Sendable, CustomStringConvertible {
    /// An ALSA PCM by its name in ALSA's configuration, e.g. `default`, `pulse`, `hw:0,0`.
    case alsa(String)
    /// A WAV file: read as a source, written as a sink.
    case file(String)
    /// A sine wave of this frequency in hertz, 20 to 20,000 (source only).
    case tone(Double)
    /// Digital silence (source), or discards (sink).
    case silence
    /// Discards what is written (sink), or digital silence (source).
    case null
    /// What is written to the sink is read back from the source; both sides of a client must be `echo`.
    case echo

    /// Reads a device name.
    ///
    /// `alsa` alone means `alsa:default`, `tone` alone `tone:440`.
    ///
    /// - Throws: `.invalidName` with the forms that are understood.
    public init(parsing text: String) throws(AudioError) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let kind = parts.first.map(String.init) ?? ""
        let argument = parts.count > 1 ? String(parts[1]) : nil
        switch (kind, argument) {
        case ("alsa", nil): self = .alsa("default")
        case ("alsa", let name?) where Self.isPlain(name): self = .alsa(name)
        case ("file", let path?) where Self.isPlain(path): self = .file(path)
        case ("tone", nil): self = .tone(440)
        case ("tone", let frequency?):
            guard let hertz = Double(frequency), (20...20_000).contains(hertz) else {
                throw AudioError(
                    .invalidName, "audio device '\(text)': the frequency of a tone is 20 to 20000 Hz",
                    hint: "write for example tone:440")
            }
            self = .tone(hertz)
        case ("silence", nil): self = .silence
        case ("null", nil): self = .null
        case ("echo", nil): self = .echo
        default:
            throw AudioError(
                .invalidName, "audio device '\(text)' is not understood",
                hint: "use alsa:PCM, file:PATH.wav, tone:HZ, silence, null or echo (sinchctl devices lists PCMs)")
        }
    }

    /// The name as `init(parsing:)` reads it.
    public var description: String {
        switch self {
        case .alsa(let name): "alsa:\(name)"
        case .file(let path): "file:\(path)"
        case .tone(let hertz): hertz == hertz.rounded() ? "tone:\(Int(hertz))" : "tone:\(hertz)"
        case .silence: "silence"
        case .null: "null"
        case .echo: "echo"
        }
    }

    /// Whether the device is hardware (or a sound server), with a clock of its own.
    public var isHardware: Bool {
        if case .alsa = self { true } else { false }
    }

    /// A C library will see the text, so a NUL would silently cut it.
    private static func isPlain(_ text: String) -> Bool {
        !text.isEmpty && !text.utf8.contains(0)
    }
}
