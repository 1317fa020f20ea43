import Glibc

/// What is known about where text goes: a person's terminal, or a pipe or file.
struct Terminal: Sendable, Equatable {
    /// Whether a person sees the text as it comes.
    var isInteractive: Bool
    /// Whether colours are wanted.
    var hasColor: Bool
    /// Columns; 80 when nobody says.
    var width: Int

    /// What programs print for: plain text, 80 columns.
    static let plain = Terminal(isInteractive: false, hasColor: false, width: 80)

    /// Looks at a file descriptor and the user's wishes: `--no-color` and `NO_COLOR` (not empty) beat
    /// `CLICOLOR_FORCE` (not empty and not 0), which beats `TERM=dumb`, a missing `TERM` and a pipe.
    init(descriptor: Int32, environment: [String: String], noColor: Bool = false) {
        let isTerminal = isatty(descriptor) == 1
        self.init(
            isInteractive: isTerminal,
            hasColor: Self.wantsColor(isTerminal: isTerminal, environment: environment, noColor: noColor),
            width: Self.width(of: descriptor, isTerminal: isTerminal, environment: environment))
    }

    init(isInteractive: Bool, hasColor: Bool, width: Int) {
        self.isInteractive = isInteractive
        self.hasColor = hasColor
        self.width = width
    }

    /// The rule for colours, apart from any terminal.
    static func wantsColor(isTerminal: Bool, environment: [String: String], noColor: Bool) -> Bool {
        if noColor || !(environment["NO_COLOR"] ?? "").isEmpty { return false }
        if let force = environment["CLICOLOR_FORCE"], !force.isEmpty, force != "0" { return true }
        let name = environment["TERM"] ?? ""
        return isTerminal && !name.isEmpty && name != "dumb"
    }

    private static func width(of descriptor: Int32, isTerminal: Bool, environment: [String: String]) -> Int {
        guard isTerminal else { return 80 }
        if let columns = environment["COLUMNS"].flatMap({ Int($0) }), columns > 0 { return max(40, columns) }
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return max(40, Int(size.ws_col))
    }

    /// The meanings that colours have here; a colour never says what the text does not.
    enum Style: String, Sendable {
        case good = "32"
        case bad = "31"
        case warning = "33"
        case strong = "1"
        case faint = "2"
    }

    /// The text in a style, when colours are wanted.
    func styled(_ text: String, _ style: Style) -> String {
        hasColor && !text.isEmpty ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }
}
