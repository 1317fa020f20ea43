/// Reads a session description line by line; every count is checked before anything is stored.
struct SDPParser {
    private let limits: SDPLimits
    private var lineNumber = 0
    private var attributeCount = 0
    private var origin: SDPOrigin?
    private var name: String?
    private var connection: SDPConnection?
    private var bandwidth: [SDPBandwidth] = []
    private var times: [SDPTime] = []
    private var attributes: [SDPAttribute] = []
    private var otherLines: [SDPLine] = []
    private var media: [MediaDescription] = []
    private var current: MediaDescription?

    init(limits: SDPLimits) {
        self.limits = limits
    }

    mutating func parse(_ bytes: [UInt8]) throws(SDPParseError) -> SessionDescription {
        guard bytes.count <= limits.maxBytes else {
            throw SDPParseError(
                code: .tooLarge, line: 0, reason: "\(bytes.count) bytes, more than the \(limits.maxBytes) accepted")
        }
        var start = 0
        while start < bytes.count {
            var end = start
            while end < bytes.count, bytes[end] != 0x0A { end += 1 }
            lineNumber += 1
            let next = end + 1
            if end > start, bytes[end - 1] == 0x0D { end -= 1 }
            try line(bytes[start..<end])
            start = next
        }
        guard lineNumber > 0 else {
            throw SDPParseError(code: .missingLine, line: 0, reason: "the description is empty")
        }
        if let current { media.append(current) }
        guard let origin else {
            throw SDPParseError(code: .missingLine, line: 0, reason: "no o= line (RFC 8866 section 5.2)")
        }
        return SessionDescription(
            origin: origin, name: name ?? "-", connection: connection, bandwidth: bandwidth, times: times,
            attributes: attributes, otherLines: otherLines, media: media)
    }

    private mutating func line(_ bytes: ArraySlice<UInt8>) throws(SDPParseError) {
        guard let type = bytes.first else { return }  // Empty lines are forgiven: many bodies end with one.
        guard bytes.count <= limits.maxLineBytes else {
            throw failure(.tooLarge, "\(bytes.count) bytes, more than the \(limits.maxLineBytes) accepted")
        }
        guard !bytes.contains(where: { $0 == 0 || $0 == 0x0D }) else {
            throw failure(.invalidCharacter, "a NUL or a lone CR (RFC 8866 section 9)")
        }
        guard bytes.dropFirst().first == UInt8(ascii: "="), type > 0x20, type < 0x7F else {
            throw failure(.malformedLine, "not of the form letter=value (RFC 8866 section 5)")
        }
        if lineNumber == 1 {
            guard type == UInt8(ascii: "v") else {
                throw failure(.missingLine, "the first line is not v= (RFC 8866 section 5.1)")
            }
        }
        let value = String(decoding: bytes.dropFirst(2), as: UTF8.self)
        switch type {
        case UInt8(ascii: "v"): try version(value)
        case UInt8(ascii: "o"): try originLine(value)
        case UInt8(ascii: "s"): try sessionName(value)
        case UInt8(ascii: "c"): try connectionLine(value)
        case UInt8(ascii: "b"): try bandwidthLine(value)
        case UInt8(ascii: "t"): try time(value)
        case UInt8(ascii: "r"): try repetition(value)
        case UInt8(ascii: "a"): try attribute(value)
        case UInt8(ascii: "m"): try mediaLine(value)
        default:
            let line = SDPLine(type: Character(UnicodeScalar(type)), value: value)
            if current != nil {
                current?.otherLines.append(line)
            } else {
                otherLines.append(line)
            }
        }
    }

    private mutating func version(_ value: String) throws(SDPParseError) {
        guard lineNumber == 1 else { throw failure(.misplacedLine, "v= stands not first (RFC 8866 section 5.1)") }
        guard value == "0" else { throw failure(.malformedLine, "version is not 0 (RFC 8866 section 5.1)") }
    }

    private mutating func originLine(_ value: String) throws(SDPParseError) {
        try sessionLevelOnce(origin == nil, "o")
        let fields = value.split(separator: " ")
        guard fields.count == 6 else {
            throw failure(.malformedLine, "o= has \(fields.count) fields instead of 6 (RFC 8866 section 5.2)")
        }
        guard let identifier = SDPNumber.saturating(fields[1]), let version = SDPNumber.saturating(fields[2]) else {
            throw failure(.malformedLine, "o= has an identifier or version that is no number (RFC 8866 section 5.2)")
        }
        var parsed = SDPOrigin(
            username: String(fields[0]), sessionID: identifier, sessionVersion: version, address: String(fields[5]))
        parsed.networkType = String(fields[3])
        parsed.addressType = String(fields[4])
        origin = parsed
    }

    private mutating func sessionName(_ value: String) throws(SDPParseError) {
        try sessionLevelOnce(name == nil, "s")
        name = value.isEmpty ? "-" : value
    }

    private mutating func connectionLine(_ value: String) throws(SDPParseError) {
        let fields = value.split(separator: " ")
        guard fields.count == 3 else {
            throw failure(.malformedLine, "c= has \(fields.count) fields instead of 3 (RFC 8866 section 5.7)")
        }
        let parsed = SDPConnection(
            networkType: String(fields[0]), addressType: String(fields[1]), address: String(fields[2]))
        if current != nil {
            current?.connections.append(parsed)
        } else {
            try sessionLevelOnce(connection == nil, "c")
            connection = parsed
        }
    }

    private mutating func bandwidthLine(_ value: String) throws(SDPParseError) {
        guard let colon = value.firstIndex(of: ":"),
            let number = SDPNumber.saturating(value[value.index(after: colon)...].trimmed)
        else {
            throw failure(.malformedLine, "b= is not TYPE:NUMBER (RFC 8866 section 5.8)")
        }
        let parsed = SDPBandwidth(type: String(value[..<colon]), value: number)
        if current != nil {
            current?.bandwidth.append(parsed)
        } else {
            bandwidth.append(parsed)
        }
    }

    private mutating func time(_ value: String) throws(SDPParseError) {
        guard current == nil else {
            throw failure(.misplacedLine, "t= inside a media description (RFC 8866 section 5.9)")
        }
        let fields = value.split(separator: " ")
        guard fields.count == 2, let start = SDPNumber.saturating(fields[0]),
            let stop = SDPNumber.saturating(fields[1])
        else {
            throw failure(.malformedLine, "t= is not two numbers (RFC 8866 section 5.9)")
        }
        times.append(SDPTime(start: start, stop: stop))
    }

    private mutating func repetition(_ value: String) throws(SDPParseError) {
        guard current == nil, let last = times.indices.last else {
            throw failure(.misplacedLine, "r= without a t= before it (RFC 8866 section 5.10)")
        }
        times[last].repeats.append(value)
    }

    private mutating func attribute(_ value: String) throws(SDPParseError) {
        attributeCount += 1
        guard attributeCount <= limits.maxAttributes else {
            throw failure(.tooLarge, "more than \(limits.maxAttributes) attributes")
        }
        let parsed: SDPAttribute
        if let colon = value.utf8.firstIndex(of: UInt8(ascii: ":")) {
            parsed = SDPAttribute(String(value[..<colon]), String(value[value.utf8.index(after: colon)...]))
        } else {
            parsed = SDPAttribute(value)
        }
        guard !parsed.name.isEmpty else {
            throw failure(.malformedLine, "a= has no name (RFC 8866 section 5.13)")
        }
        if current != nil {
            current?.attributes.append(parsed)
        } else {
            attributes.append(parsed)
        }
    }

    private mutating func mediaLine(_ value: String) throws(SDPParseError) {
        guard media.count + (current == nil ? 0 : 1) < limits.maxMedia else {
            throw failure(.tooLarge, "more than \(limits.maxMedia) media descriptions")
        }
        let fields = value.split(separator: " ")
        guard fields.count >= 4 else {
            throw failure(.malformedLine, "m= has \(fields.count) fields, fewer than 4 (RFC 8866 section 5.14)")
        }
        guard fields.count - 3 <= limits.maxFormats else {
            throw failure(.tooLarge, "m= lists more than \(limits.maxFormats) formats")
        }
        let ports = fields[1].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let port = ports.first.flatMap(SDPNumber.port) else {
            throw failure(.malformedLine, "m= has a port that is not 0 to 65535 (RFC 8866 section 5.14)")
        }
        var portCount: Int?
        if ports.count == 2 {
            guard let count = SDPNumber.port(ports[1]), count > 0 else {
                throw failure(.malformedLine, "m= has a number of ports that is not 1 to 65535")
            }
            portCount = Int(count)
        }
        if let current { media.append(current) }
        current = MediaDescription(
            media: String(fields[0]), port: port, portCount: portCount, profile: String(fields[2]),
            formats: fields[3...].map { String($0) })
    }

    private func sessionLevelOnce(_ isFirst: Bool, _ type: String) throws(SDPParseError) {
        guard current == nil else {
            throw failure(.misplacedLine, "\(type)= inside a media description (RFC 8866 section 5)")
        }
        guard isFirst else { throw failure(.misplacedLine, "a second \(type)= line (RFC 8866 section 5)") }
    }

    private func failure(_ code: SDPParseError.Code, _ reason: String) -> SDPParseError {
        SDPParseError(code: code, line: lineNumber, reason: reason)
    }
}
