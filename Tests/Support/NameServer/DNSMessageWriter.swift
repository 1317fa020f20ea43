/// Builds messages as a name server does, by hand and without any check, so that wrong ones can be built too.
package struct DNSMessageWriter: Sendable {
    package var id: UInt16 = 0
    /// Response, recursion desired and available.
    package var flags: UInt16 = 0x8180
    /// The error code of the header.
    package var code: UInt16 = 0
    package var isTruncated = false
    package var name: String
    package var type: UInt16
    package var answers: [ZoneRecord] = []
    package var authorities: [ZoneRecord] = []

    package init(_ name: String, type: UInt16, answers: [ZoneRecord] = [], authorities: [ZoneRecord] = []) {
        self.name = name
        self.type = type
        self.answers = answers
        self.authorities = authorities
    }

    package var bytes: [UInt8] {
        let header = [
            id, flags | code | (isTruncated ? 0x0200 : 0), 1, UInt16(answers.count), UInt16(authorities.count), 0,
        ]
        return header.flatMap { Self.bytes($0) } + Self.name(name) + Self.bytes(type) + Self.bytes(UInt16(1))
            + (answers + authorities).flatMap { Self.record($0) }
    }

    package static func record(_ record: ZoneRecord) -> [UInt8] {
        name(record.name) + bytes(record.type) + bytes(UInt16(1)) + bytes(record.lifetime)
            + bytes(UInt16(record.data.count)) + record.data
    }

    /// Labels with their lengths; the root for an empty text.
    package static func name(_ text: String) -> [UInt8] {
        text.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    package static func bytes(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

    package static func bytes(_ number: UInt32) -> [UInt8] {
        bytes(UInt16(number >> 16)) + bytes(UInt16(number & 0xFFFF))
    }
}
