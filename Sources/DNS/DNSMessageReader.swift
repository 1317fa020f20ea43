/// Reads a name server's message (RFC 1035, section 4) for the records that answer one question.
///
/// Everything in the message is the work of a stranger: every access is checked, names cannot loop, aliases are followed a
/// few steps only, records that are not wanted or make no sense are left out, and what is kept is bounded.
public struct DNSMessageReader {
    /// Records of one answer that are kept.
    public static let maximumRecords = 64
    /// Records of one message that are looked at.
    static let maximumRecordsRead = 512
    /// Aliases (CNAME) between the name asked for and the one that has the records.
    static let maximumAliases = 8
    /// Pointers inside one name.
    private static let maximumPointers = 32

    private static let noError = 0
    private static let nameError = 3
    private static let classInternet: UInt16 = 1
    private static let typeAlias: UInt16 = 5
    private static let typeStartOfAuthority: UInt16 = 6

    private struct Malformed: Error {
        var reason: String
    }

    private let bytes: [UInt8]
    private var position = 12

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Reads the answer to a question for records of `type`.
    ///
    /// The name is taken from the message's own question section: whoever sent the question has compared it, and a search
    /// list may have changed it.
    public static func read(_ bytes: [UInt8], for type: DNSQuestion.RecordType) -> DNSReply {
        var reader = DNSMessageReader(bytes)
        do {
            return try reader.reply(type)
        } catch {
            return DNSReply(.failed(.malformed(error.reason)))
        }
    }

    // MARK: The message

    private mutating func reply(_ type: DNSQuestion.RecordType) throws(Malformed) -> DNSReply {
        let flags = try number16(at: 2)
        guard flags & 0x8000 != 0 else { throw Malformed(reason: "it is a question") }
        guard try number16(at: 4) == 1 else { throw Malformed(reason: "it does not repeat the question") }
        let answers = try Int(number16(at: 6))
        let authorities = try Int(number16(at: 8))
        guard let asked = try name() else { throw Malformed(reason: "its question has no host name") }
        guard try number16() == type.rawValue, try number16() == Self.classInternet else {
            throw Malformed(reason: "it answers another question")
        }
        let code = Int(flags & 0xF)
        guard code == Self.noError || code == Self.nameError else {
            return DNSReply(.failed(.noServer(Self.text(ofCode: code))))
        }
        let section = try readAnswers(answers, type)
        let (records, lifetime) = try section.records(of: asked)
        if !records.isEmpty {
            return DNSReply(.records(records), lifetime: .seconds(lifetime))
        }
        if section.hasUnusable, code == Self.noError { throw Malformed(reason: "no record in it makes sense") }
        // All of the answer section was read, or there is no telling where the next one starts.
        let negative = answers <= Self.maximumRecordsRead ? try negativeLifetime(authorities) : 0
        return DNSReply(code == Self.nameError ? .noSuchName : .noData, lifetime: .seconds(negative))
    }

    private static func text(ofCode code: Int) -> String {
        switch code {
        case 1: "it says that the question is malformed (FORMERR)"
        case 2: "it failed (SERVFAIL)"
        case 4: "it does not know this kind of question (NOTIMP)"
        case 5: "it refuses (REFUSED)"
        default: "it reports error \(code)"
        }
    }

    /// What the answer section holds, by owner.
    private struct Section {
        var records: [(owner: String, record: DNSRecord, lifetime: UInt32)] = []
        var aliases: [String: (target: String, lifetime: UInt32)] = [:]
        /// A record of the wanted kind had to be left out.
        var hasUnusable = false

        /// The records of `name` or of what it is an alias of, and the shortest lifetime on the way.
        func records(of name: String) throws(Malformed) -> ([DNSRecord], UInt32) {
            var name = name
            var lifetime = UInt32.max
            var steps = 0
            while let alias = aliases[name] {
                steps += 1
                guard steps <= DNSMessageReader.maximumAliases else {
                    throw Malformed(reason: "its aliases do not end")
                }
                lifetime = min(lifetime, alias.lifetime)
                name = alias.target
            }
            var seen: Set<DNSRecord> = []
            var found: [DNSRecord] = []
            for entry in records where entry.owner == name && found.count < DNSMessageReader.maximumRecords {
                lifetime = min(lifetime, entry.lifetime)
                if seen.insert(entry.record).inserted { found.append(entry.record) }
            }
            return (found, lifetime)
        }
    }

    private mutating func readAnswers(_ count: Int, _ type: DNSQuestion.RecordType) throws(Malformed) -> Section {
        var section = Section()
        for _ in 0..<min(count, Self.maximumRecordsRead) {
            let header = try recordHeader()
            defer { position = header.end }
            guard header.isInternet, let owner = header.owner else { continue }
            if header.type == Self.typeAlias {
                // Two aliases of one name are an error (RFC 1034, 3.6.2); the first one counts.
                if let target = try name(within: header.end), section.aliases[owner] == nil {
                    section.aliases[owner] = (target, header.lifetime)
                }
            } else if header.type == type.rawValue {
                if let record = try record(type, until: header.end) {
                    section.records.append((owner, record, header.lifetime))
                } else {
                    section.hasUnusable = true
                }
            }
        }
        return section
    }

    /// How long "there is nothing" holds: what the zone's SOA record says (RFC 2308, 5); without one, not at all.
    private mutating func negativeLifetime(_ count: Int) throws(Malformed) -> UInt32 {
        for _ in 0..<min(count, Self.maximumRecordsRead) {
            let header = try recordHeader()
            guard header.isInternet, header.type == Self.typeStartOfAuthority, header.end - position >= 20 else {
                position = header.end
                continue
            }
            // The last of five numbers after two names.
            position = header.end - 4
            return min(header.lifetime, Self.lifetime(try number32()))
        }
        return 0
    }

    // MARK: Records

    private struct RecordHeader {
        /// Nil when the name is none that a host has.
        var owner: String?
        var type: UInt16
        var isInternet: Bool
        var lifetime: UInt32
        /// Where the record's data ends.
        var end: Int
    }

    private mutating func recordHeader() throws(Malformed) -> RecordHeader {
        let owner = try name()
        let type = try number16()
        let isInternet = try number16() == Self.classInternet
        let lifetime = Self.lifetime(try number32())
        let length = try Int(number16())
        guard length <= bytes.count - position else { throw Malformed(reason: "a record is cut off") }
        return RecordHeader(
            owner: owner, type: type, isInternet: isInternet, lifetime: lifetime, end: position + length)
    }

    /// Seconds; what has the highest bit set counts as zero (RFC 2181, 8).
    private static func lifetime(_ value: UInt32) -> UInt32 { value > UInt32(Int32.max) ? 0 : value }

    /// The record's data; nil when it makes no sense.
    private mutating func record(_ type: DNSQuestion.RecordType, until end: Int) throws(Malformed) -> DNSRecord? {
        switch type {
        case .a, .aaaa:
            return DNSAddress.text(of: bytes[position..<end], isIPv6: type == .aaaa).map { .address($0) }
        case .srv:
            guard end - position >= 7 else { return nil }
            let (priority, weight, port) = (try number16(), try number16(), try number16())
            guard let target = try name(within: end), position == end, port != 0 || target.isEmpty else { return nil }
            return .service(SRVRecord(priority: priority, weight: weight, port: port, target: target))
        case .naptr:
            guard end - position >= 8 else { return nil }
            let (order, preference) = (try number16(), try number16())
            guard let flags = string(within: end), let service = string(within: end), let regexp = string(within: end),
                let replacement = try name(within: end), position == end
            else { return nil }
            return .rule(
                NAPTRRecord(
                    order: order, preference: preference, flags: DNSName.lowercased(flags),
                    service: DNSName.lowercased(service), regexp: regexp, replacement: replacement))
        }
    }

    // MARK: Numbers, strings, names

    private func number16(at index: Int) throws(Malformed) -> UInt16 {
        guard index + 2 <= bytes.count else { throw Malformed(reason: "it is cut off") }
        return UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])
    }

    private mutating func number16() throws(Malformed) -> UInt16 {
        let value = try number16(at: position)
        position += 2
        return value
    }

    private mutating func number32() throws(Malformed) -> UInt32 {
        let high = try number16()
        return UInt32(high) << 16 | UInt32(try number16())
    }

    /// A length and so many bytes, which must be printable ASCII.
    private mutating func string(within end: Int) -> String? {
        guard position < end else { return nil }
        let start = position + 1
        let stop = start + Int(bytes[position])
        guard stop <= end, bytes[start..<stop].allSatisfy({ (0x20...0x7E).contains($0) }) else { return nil }
        position = stop
        return String(decoding: bytes[start..<stop], as: UTF8.self)
    }

    /// A name that must not reach beyond its record.
    private mutating func name(within end: Int) throws(Malformed) -> String? {
        let name = try name()
        guard position <= end else { throw Malformed(reason: "a name is longer than its record") }
        return name
    }

    /// A name in lower case without a dot at its end, the root as an empty string; nil when it has bytes that no host name
    /// has. Moves on to what follows the name either way.
    private mutating func name() throws(Malformed) -> String? {
        var text: [UInt8] = []
        var isHostName = true
        var index = position
        var end: Int?
        var pointers = 0
        while true {
            guard index < bytes.count else { throw Malformed(reason: "a name is cut off") }
            let length = Int(bytes[index])
            if length & 0xC0 == 0xC0 {
                guard index + 1 < bytes.count else { throw Malformed(reason: "a name is cut off") }
                end = end ?? index + 2
                let target = (length & 0x3F) << 8 | Int(bytes[index + 1])
                pointers += 1
                // Only backwards, so that no name can go round in circles.
                guard target < index, pointers <= Self.maximumPointers else {
                    throw Malformed(reason: "a name points to itself")
                }
                index = target
                continue
            }
            guard length & 0xC0 == 0 else { throw Malformed(reason: "a name has an unknown kind of label") }
            index += 1
            if length == 0 { break }
            guard index + length <= bytes.count else { throw Malformed(reason: "a name is cut off") }
            let label = bytes[index..<(index + length)]
            index += length
            if !DNSName.isLabel(label) { isHostName = false }
            if !text.isEmpty { text.append(UInt8(ascii: ".")) }
            text += label
            guard text.count <= DNSName.maximumLength else { throw Malformed(reason: "a name is too long") }
        }
        position = end ?? index
        return isHostName ? DNSName.lowercased(String(decoding: text, as: UTF8.self)) : nil
    }
}
