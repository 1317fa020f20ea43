/// One resource record as a name server sends it (RFC 1035, 3.2.1).
package struct ZoneRecord: Sendable {
    package var name: String
    package var type: UInt16
    package var lifetime: UInt32
    package var data: [UInt8]

    package init(_ name: String, type: UInt16, lifetime: UInt32 = 300, data: [UInt8]) {
        self.name = name
        self.type = type
        self.lifetime = lifetime
        self.data = data
    }

    package static func a(_ name: String, _ address: String, lifetime: UInt32 = 300) -> ZoneRecord {
        ZoneRecord(name, type: 1, lifetime: lifetime, data: address.split(separator: ".").compactMap { UInt8($0) })
    }

    package static func aaaa(_ name: String, _ groups: [UInt16], lifetime: UInt32 = 300) -> ZoneRecord {
        ZoneRecord(name, type: 28, lifetime: lifetime, data: groups.flatMap { DNSMessageWriter.bytes($0) })
    }

    package static func alias(_ name: String, to target: String, lifetime: UInt32 = 300) -> ZoneRecord {
        ZoneRecord(name, type: 5, lifetime: lifetime, data: DNSMessageWriter.name(target))
    }

    package static func srv(
        _ name: String, _ priority: UInt16, _ weight: UInt16, _ port: UInt16, _ target: String, lifetime: UInt32 = 300
    ) -> ZoneRecord {
        let numbers = [priority, weight, port].flatMap { DNSMessageWriter.bytes($0) }
        return ZoneRecord(name, type: 33, lifetime: lifetime, data: numbers + DNSMessageWriter.name(target))
    }

    package static func naptr(
        _ name: String, _ order: UInt16, _ preference: UInt16, _ flags: String, _ service: String,
        _ replacement: String, regexp: String = "", lifetime: UInt32 = 300
    ) -> ZoneRecord {
        let strings = [flags, service, regexp].flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        let numbers = [order, preference].flatMap { DNSMessageWriter.bytes($0) }
        return ZoneRecord(
            name, type: 35, lifetime: lifetime, data: numbers + strings + DNSMessageWriter.name(replacement))
    }

    /// The start of authority; `minimum` is how long "there is none" holds (RFC 2308).
    package static func soa(_ name: String, minimum: UInt32, lifetime: UInt32 = 3_600) -> ZoneRecord {
        let numbers = [1, 7_200, 900, 86_400, minimum].flatMap { DNSMessageWriter.bytes($0) }
        return ZoneRecord(
            name, type: 6, lifetime: lifetime,
            data: DNSMessageWriter.name("ns." + name) + DNSMessageWriter.name("admin." + name) + numbers)
    }
}
