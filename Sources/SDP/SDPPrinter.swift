/// Writes session descriptions in the line order of RFC 8866 section 5.
struct SDPPrinter {
    private(set) var bytes: [UInt8] = []

    mutating func write(_ session: SessionDescription) {
        let origin = session.origin
        line("v", "0")
        line(
            "o",
            "\(origin.username) \(origin.sessionID) \(origin.sessionVersion) "
                + "\(origin.networkType) \(origin.addressType) \(origin.address)")
        line("s", session.name.isEmpty ? "-" : session.name)
        // i=, u=, e= and p= stand before c=; what else there is stands before the attributes.
        for other in session.otherLines where "iuep".contains(other.type) {
            line(other.type, other.value)
        }
        if let connection = session.connection { write(connection) }
        write(session.bandwidth)
        for time in session.times {
            line("t", "\(time.start) \(time.stop)")
            for repetition in time.repeats { line("r", repetition) }
        }
        for other in session.otherLines where !"iuep".contains(other.type) {
            line(other.type, other.value)
        }
        write(session.attributes)
        for media in session.media { write(media) }
    }

    private mutating func write(_ media: MediaDescription) {
        let ports = media.portCount.map { "\(media.port)/\($0)" } ?? "\(media.port)"
        line("m", "\(media.media) \(ports) \(media.profile) \(media.formats.joined(separator: " "))")
        for other in media.otherLines where other.type == "i" { line("i", other.value) }
        for connection in media.connections { write(connection) }
        write(media.bandwidth)
        for other in media.otherLines where other.type != "i" { line(other.type, other.value) }
        write(media.attributes)
    }

    private mutating func write(_ connection: SDPConnection) {
        line("c", "\(connection.networkType) \(connection.addressType) \(connection.address)")
    }

    private mutating func write(_ bandwidth: [SDPBandwidth]) {
        for limit in bandwidth { line("b", "\(limit.type):\(limit.value)") }
    }

    private mutating func write(_ attributes: [SDPAttribute]) {
        for attribute in attributes {
            line("a", attribute.value.map { "\(attribute.name):\($0)" } ?? attribute.name)
        }
    }

    /// Line ends and NULs inside a value would start lines of their own: they are left out.
    private mutating func line(_ type: Character, _ value: String) {
        bytes.append(contentsOf: String(type).utf8)
        bytes.append(UInt8(ascii: "="))
        for byte in value.utf8 where byte != 0 && byte != 0x0A && byte != 0x0D {
            bytes.append(byte)
        }
        bytes.append(0x0D)
        bytes.append(0x0A)
    }
}
