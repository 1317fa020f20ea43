import Agent
import Configuration
import Glibc
import MediaSession

/// The line that shows a call while it goes on, and the keys that control it: for people at a terminal.
///
/// Standard error carries the line, so that standard output stays free for the result. The terminal is put back as it
/// was when the object goes, however the command ends short of being killed.
final class LiveLine {
    /// What the user wants.
    enum Key {
        /// Mute, or unmute.
        case mute(Bool)
        /// Hold, or resume.
        case hold(Bool)
        /// Press a key in the call.
        case digit(Character)
        /// Hang up.
        case quit
    }

    private let original: termios
    private let width: Int
    private(set) var isMuted = false
    private var isOnHold = false
    private var isOpen = true

    /// Nil unless a person sits there: standard input and standard error are terminals, and nothing asked for silence.
    init?(_ output: Output) {
        guard !output.isJSON, !output.isQuiet, output.errorTerminal.isInteractive, isatty(0) == 1 else { return nil }
        var settings = termios()
        guard tcgetattr(0, &settings) == 0 else { return nil }
        original = settings
        width = max(20, output.errorTerminal.width)
        // Keys are read as they are pressed, and not shown; Ctrl-C stays an interrupt.
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(0, TCSANOW, &settings)
        put("keys: m mute, h hold, 0-9*# DTMF, q hang up\n")
    }

    deinit {
        close()
    }

    /// Puts the terminal back as it was; nothing is shown from here on.
    func close() {
        guard isOpen else { return }
        isOpen = false
        clear()
        var settings = original
        tcsetattr(0, TCSANOW, &settings)
    }

    /// Shows where the call stands.
    func show(_ call: CallReport) {
        var parts = [call.state]
        if let duration = call.duration { parts.append(Self.clock(duration)) }
        isOnHold = call.onHold ?? false
        if isOnHold { parts.append("on hold") }
        if call.heldByRemote ?? false { parts.append("held by the other side") }
        if isMuted { parts.append("muted") }
        if let media = call.media {
            parts.append("out \(Self.bar(media.audioLevelSent)) in \(Self.bar(media.audioLevelReceived))")
            parts.append("loss \(Numbers.percent(media.lossRatio))")
            parts.append("jitter \(Numbers.milliseconds(media.jitter * 1_000))")
            parts.append("delay \(Numbers.milliseconds(media.jitterBufferDelay * 1_000))")
        }
        put("\r" + String(parts.joined(separator: "  ").prefix(width - 1)) + "\u{1B}[K")
    }

    /// Makes room for a line of text that is to stay.
    func clear() {
        put("\r\u{1B}[K")
    }

    /// The key that was pressed; nil for one without a meaning.
    func readKey() -> Key? {
        var byte: UInt8 = 0
        guard read(0, &byte, 1) == 1 else { return nil }
        switch byte {
        case UInt8(ascii: "m"):
            isMuted.toggle()
            return .mute(isMuted)
        case UInt8(ascii: "h"): return .hold(!isOnHold)
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "*"), UInt8(ascii: "#"):
            return .digit(Character(UnicodeScalar(byte)))
        case UInt8(ascii: "q"): return .quit
        default: return nil
        }
    }

    private static func clock(_ seconds: Double) -> String {
        let whole = Int(max(0, min(seconds, 359_999)))
        let rest = whole % 60
        return "\(whole / 60):\(rest < 10 ? "0" : "")\(rest)"
    }

    /// A level as a bar of eight steps, 6 dB each: speech stands in the upper half.
    private static func bar(_ level: Double) -> String {
        var steps = 0
        var threshold = 1.0 / 128
        while steps < 8, level >= threshold {
            steps += 1
            threshold *= 2
        }
        return String(repeating: "▮", count: steps) + String(repeating: "▯", count: 8 - steps)
    }

    private func put(_ text: String) {
        _ = Output.write(text, to: 2)
    }
}
