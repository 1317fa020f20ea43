import SIP

/// The 400 to a request that the parser refused (RFC 3261 section 16.3 step 1, 8.2): its sender learns at once, and why,
/// instead of waiting 32 s.
enum MalformedRequest {
    /// More lines than this are not looked at.
    private static let maxLines = 128

    /// The response, when the bytes look like a request other than ACK whose Via, From, To, Call-ID and CSeq can be made
    /// out; nil for everything else, since a response that its receiver cannot match only adds noise.
    static func answer(to bytes: [UInt8], reason: String) -> SIPMessage? {
        let lines = headerLines(of: bytes)
        guard let start = lines.first, !start.hasPrefix("SIP/2.0"), !start.hasPrefix("ACK "), start.contains("SIP/2.0")
        else { return nil }
        var found: [String: [String]] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let name = trimmed(line[..<colon]).lowercased()
            guard let full = names[name] else { continue }
            found[full, default: []].append(trimmed(line[line.index(after: colon)...]))
        }
        guard let via = found["Via"]?.first, SIPMessage.isAnswerable(via: via), let from = found["From"]?.first,
            let to = found["To"]?.first, let callID = found["Call-ID"]?.first, let cseq = found["CSeq"]?.first
        else { return nil }
        var response = SIPMessage(status: 400, reason: "Bad Request: " + printable(reason))
        for value in found["Via"] ?? [] { response.headers.append("Via", value) }
        response.headers.append("From", from)
        response.headers.append("To", to)
        response.headers.append("Call-ID", callID)
        response.headers.append("CSeq", cseq)
        // What is echoed is not trusted to be printable: if it is not, there is no response.
        guard (try? response.encoded()) != nil else { return nil }
        return response
    }

    private static let names = [
        "via": "Via", "v": "Via", "from": "From", "f": "From", "to": "To", "t": "To", "call-id": "Call-ID",
        "i": "Call-ID", "cseq": "CSeq",
    ]

    /// The lines before the empty one, continuations joined.
    private static func headerLines(of bytes: [UInt8]) -> [String] {
        var lines: [String] = []
        for raw in bytes.prefix(16_384).split(separator: 0x0A, maxSplits: maxLines, omittingEmptySubsequences: false) {
            let line = raw.last == 0x0D ? raw.dropLast() : raw
            if line.isEmpty {
                if lines.isEmpty { continue }
                break
            }
            let text = String(decoding: line, as: UTF8.self)
            if (line.first == 0x20 || line.first == 0x09), let last = lines.popLast() {
                lines.append(last + " " + trimmed(text[...]))
            } else {
                lines.append(text)
            }
        }
        return lines
    }

    private static func trimmed(_ text: Substring) -> String {
        let blank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        var rest = text.drop(while: blank)
        while let last = rest.last, blank(last) { rest.removeLast() }
        return String(rest)
    }

    /// A reason phrase of printable ASCII, not longer than a line.
    private static func printable(_ text: String) -> String {
        String(text.unicodeScalars.prefix(120).map { (" "..."~").contains($0) ? Character($0) : " " })
    }
}

extension SIPMessage {
    /// Whether a Via can carry a response back: it must have a branch that its sender will look for.
    fileprivate static func isAnswerable(via: String) -> Bool {
        via.lowercased().contains("branch=")
    }
}
