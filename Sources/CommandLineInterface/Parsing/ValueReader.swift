/// Checks one value against what the table allows.
enum ValueReader {
    /// Why a value is not allowed; reads on after "bad value 'x' for --option: ".
    struct Refusal: Error, Equatable {
        var reason: String
        /// The allowed word that was probably meant.
        var suggestion: String?
    }

    /// The value, checked and converted.
    static func read(_ text: String, as kind: ValueKind) throws(Refusal) -> ParsedCommand.Value {
        guard !text.isEmpty else { throw Refusal(reason: "it is empty") }
        guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) || kind == .file else {
            throw Refusal(reason: "it contains a control character")
        }
        switch kind {
        case .flag, .text, .file, .call:
            return .text(text)
        case .user:
            guard !text.contains(where: \.isWhitespace), text.utf8.count <= 255 else {
                throw Refusal(reason: "a user's name has no spaces and at most 255 bytes")
            }
            return .text(text)
        case .integer(_, let range):
            guard let number = Int(text), range.contains(number) else {
                throw Refusal(reason: "it must be a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return .integer(number)
        case .duration(let minimum):
            return .duration(try readDuration(text, atLeastSeconds: minimum))
        case .choice(_, let words):
            guard words.contains(text) else {
                throw Refusal(
                    reason: "it must be \(list(words))",
                    suggestion: Suggestion.nearest(to: text, among: words))
            }
            return .text(text)
        case .device:
            return .text(try readDevice(text))
        case .header:
            return .text(try readHeader(text))
        }
    }

    private static func readDuration(_ text: String, atLeastSeconds minimum: Int) throws(Refusal) -> Duration {
        guard let duration = DurationText.parse(text) else {
            throw Refusal(reason: "it must be a length of time such as 5, 5s, 500ms, 2m or 1h")
        }
        guard duration > .zero else { throw Refusal(reason: "it must be longer than 0") }
        guard duration >= .seconds(minimum) else {
            throw Refusal(reason: "it must be at least \(DurationText.text(seconds: minimum))")
        }
        return duration
    }

    /// Only the form is checked here; whether the device exists is found out by opening it.
    private static func readDevice(_ text: String) throws(Refusal) -> String {
        let kinds = ["alsa", "file", "tone", "silence", "null", "echo"]
        let kind = text.prefix { $0 != ":" }
        let rest = text.dropFirst(kind.count)
        let needsName = kind == "file" || (kind == "alsa" && !rest.isEmpty) || (kind == "tone" && !rest.isEmpty)
        let takesName = needsName || kind == "alsa" || kind == "tone"
        guard kinds.contains(String(kind)), needsName ? rest.count > 1 : rest.isEmpty || takesName else {
            throw Refusal(
                reason: "it must be alsa:PCM, file:PATH.wav, tone:HZ, silence, null or echo",
                suggestion: Suggestion.nearest(to: text, among: kinds))
        }
        return text
    }

    private static func readHeader(_ text: String) throws(Refusal) -> String {
        let name = text.prefix { $0 != ":" }
        let isToken = name.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || "-.!%*_+`'~".utf8.contains(byte)
        }
        guard isToken, name.lowercased().hasPrefix("x-"), name.count > 2, text.contains(":") else {
            throw Refusal(reason: "it must be 'x-name: value'")
        }
        return text
    }

    /// `a, b or c`.
    static func list(_ words: [String]) -> String {
        guard let last = words.last, words.count > 1 else { return words.first ?? "" }
        return words.dropLast().joined(separator: ", ") + " or " + last
    }
}
