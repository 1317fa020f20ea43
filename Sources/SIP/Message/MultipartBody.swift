/// A body of several parts (RFC 2046 section 5.1), as gateways send it: a session description beside something else.
public struct MultipartBody: Sendable {
    /// One part.
    public struct Part: Sendable {
        /// The header lines, names in lower case.
        public var headers: [(name: String, value: String)]
        /// What follows the part's empty line.
        public var body: [UInt8]

        /// The value of the first header of that name, which is given in lower case.
        public func header(_ name: String) -> String? {
            headers.first { $0.name == name }?.value
        }
    }

    /// More parts than this are not looked at.
    static let maximumParts = 16
    private static let maximumHeaders = 16

    /// The parts in order.
    public let parts: [Part]

    /// Takes a body apart; nil when its type has no usable boundary or no part can be found.
    public init?(_ body: [UInt8], contentType: String) {
        guard let boundary = Self.boundary(of: contentType) else { return nil }
        let delimiter = Array("--\(boundary)".utf8)
        var parts: [Part] = []
        var start: Int?
        var line = 0
        while line < body.count, parts.count < Self.maximumParts {
            let end = body[line...].firstIndex(of: UInt8(ascii: "\n")) ?? body.count
            if body[line..<end].starts(with: delimiter) {
                if let start, let part = Self.part(body[start..<max(start, Self.withoutLineEnd(body, line))]) {
                    parts.append(part)
                }
                start = min(end + 1, body.count)
                let rest = body[(line + delimiter.count)..<end]
                if rest.starts(with: "--".utf8) {
                    start = nil
                    break
                }
            }
            line = end + 1
        }
        // The last delimiter may be missing: what came is still a part.
        if let start, start < body.count, parts.count < Self.maximumParts, let part = Self.part(body[start...]) {
            parts.append(part)
        }
        guard !parts.isEmpty else { return nil }
        self.parts = parts
    }

    /// The line end before a delimiter belongs to the delimiter.
    private static func withoutLineEnd(_ body: [UInt8], _ position: Int) -> Int {
        var end = position
        if end > 0, body[end - 1] == UInt8(ascii: "\n") { end -= 1 }
        if end > 0, body[end - 1] == UInt8(ascii: "\r") { end -= 1 }
        return end
    }

    private static func part(_ bytes: ArraySlice<UInt8>) -> Part? {
        var headers: [(name: String, value: String)] = []
        var position = bytes.startIndex
        while position < bytes.endIndex {
            let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.endIndex
            var line = bytes[position..<end]
            if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
            position = min(end + 1, bytes.endIndex)
            if line.isEmpty { return Part(headers: headers, body: Array(bytes[position...])) }
            guard headers.count < maximumHeaders else { return nil }
            if line.first == UInt8(ascii: " ") || line.first == UInt8(ascii: "\t"), let last = headers.indices.last {
                headers[last].value += " " + String(decoding: line, as: UTF8.self).trimmingBlanks
            } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
                headers.append(
                    (
                        String(decoding: line[..<colon], as: UTF8.self).trimmingBlanks.lowercased(),
                        String(decoding: line[(colon + 1)...], as: UTF8.self).trimmingBlanks
                    ))
            }
        }
        return nil
    }

    private static func boundary(of contentType: String) -> String? {
        for parameter in contentType.split(separator: ";").dropFirst() {
            let pair = parameter.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, String(pair[0]).trimmingBlanks.lowercased() == "boundary" else { continue }
            var value = String(pair[1]).trimmingBlanks
            if value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") {
                value = String(value.dropFirst().dropLast())
            }
            return value.isEmpty || value.utf8.count > 70 ? nil : value
        }
        return nil
    }
}

extension String {
    fileprivate var trimmingBlanks: String {
        let start = drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
