/// Keys in the body of an INFO, in the two forms that gateways know although no RFC describes them:
/// `application/dtmf-relay` (`Signal=5`, `Duration=160`) and `application/dtmf` (the key alone).
public enum SIPDTMFBody {
    /// The media type that is sent.
    public static let contentType = "application/dtmf-relay"
    /// The media types that are read.
    public static let accepted = "application/dtmf-relay, application/dtmf"

    /// Whether a Content-Type, parameters aside, is one of the two.
    public static func isContentType(_ contentType: String) -> Bool {
        kind(of: contentType) != nil
    }

    /// The body for one key.
    ///
    /// - Parameter milliseconds: how long the key is held.
    public static func encoded(key: Character, milliseconds: Int) -> [UInt8] {
        Array("Signal=\(key)\r\nDuration=\(milliseconds)\r\n".utf8)
    }

    /// The key that a body tells of: `0`–`9`, `*`, `#`, `A`–`D`. Nil for anything else.
    public static func key(in body: [UInt8], contentType: String) -> Character? {
        guard body.count <= 256, let kind = kind(of: contentType) else { return nil }
        let text = String(decoding: body, as: UTF8.self)
        guard kind == .relay else { return key(trimmed(text[...])) }
        for line in text.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2, trimmed(parts[0]).asciiLowercased == "signal" { return key(trimmed(parts[1])) }
        }
        return nil
    }

    private enum Kind {
        case relay, plain
    }

    private static func kind(of contentType: String) -> Kind? {
        let type = contentType.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
        return switch trimmed(type).asciiLowercased {
        case "application/dtmf-relay": .relay
        case "application/dtmf": .plain
        default: nil
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        String(text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
    }

    /// Some senders write 10 and 11 for star and pound, as events are numbered.
    private static func key(_ text: String) -> Character? {
        let aliases = ["10": "*", "11": "#", "12": "A", "13": "B", "14": "C", "15": "D"]
        guard let key = (aliases[text] ?? text).uppercased().first, (aliases[text] ?? text).count == 1,
            "0123456789*#ABCD".contains(key)
        else { return nil }
        return key
    }
}
