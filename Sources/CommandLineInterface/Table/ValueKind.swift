/// What the value of an option or argument may be. The parser checks it, help names it, completions offer it.
enum ValueKind: Sendable, Equatable {
    /// No value.
    case flag
    /// Any text that is not empty; the name is shown in its place.
    case text(String)
    /// A user's name.
    case user
    /// A whole number in a range.
    case integer(String, ClosedRange<Int>)
    /// A length of time: `5`, `5s`, `500ms`, `2m`, `1h`, at least the given number of seconds and more than zero.
    case duration(atLeastSeconds: Int)
    /// One of the given words.
    case choice(String, [String])
    /// A file's path.
    case file
    /// The name of an audio device.
    case device
    /// A signalling header that the application adds: `x-name: value`.
    case header
    /// The identifier of a call.
    case call

    /// Any positive length of time.
    static let duration = ValueKind.duration(atLeastSeconds: 0)

    /// What stands for the value in help; nil for a flag.
    var valueName: String? {
        switch self {
        case .flag: nil
        case .text(let name), .integer(let name, _), .choice(let name, _): name
        case .user: "USER"
        case .duration: "TIME"
        case .file: "FILE"
        case .device: "DEVICE"
        case .header: "HEADER"
        case .call: "CALL"
        }
    }

    /// The words that a completion can offer without asking anyone.
    var words: [String] {
        switch self {
        case .choice(_, let words): words
        case .device: ["alsa:default", "echo", "file:", "null", "silence", "tone:440"]
        default: []
        }
    }
}
