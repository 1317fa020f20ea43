/// Names as text: what may stand in them and which of them have a fixed meaning.
public enum DNSName {
    /// The longest name in text form, without a dot at its end (RFC 1035, 2.3.4).
    public static let maximumLength = 253

    /// ASCII letters in lower case; every other byte as it is.
    public static func lowercased(_ name: String) -> String {
        String(decoding: name.utf8.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// Without the dot that marks a complete name.
    public static func withoutFinalDot(_ name: String) -> String {
        name.utf8.last == UInt8(ascii: ".") ? String(name.dropLast()) : name
    }

    /// Whether the bytes are what host and service names are made of: letters, digits, `-` and `_`. Others are legal on the
    /// wire, but no SIP server is called so, and they confuse whoever prints or compares them.
    public static func isLabel(_ bytes: some Collection<UInt8>) -> Bool {
        (1...63).contains(bytes.count)
            && bytes.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
                default: false
                }
            }
    }

    /// Whether a name can be asked for: labels of the allowed bytes between dots, not too long; one dot may end it.
    public static func isValid(_ name: String) -> Bool {
        let bare = withoutFinalDot(name).utf8
        guard bare.count <= maximumLength else { return false }
        return bare.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy(isLabel)
    }

    /// The host that a service name is about: `example.com` for `_sip._tcp.example.com`.
    public static func host(ofService name: String) -> String {
        var rest = withoutFinalDot(name)[...]
        while rest.utf8.first == UInt8(ascii: "_"), let dot = rest.firstIndex(of: ".") {
            rest = rest[rest.index(after: dot)...]
        }
        return String(rest)
    }

    /// Whether the name means this machine (RFC 6761, 6.3): `localhost` and everything below it.
    public static func isLocalhost(_ name: String) -> Bool { isTop(name, "localhost") }

    /// Whether the name exists nowhere by definition (RFC 6761, 6.4): `invalid` and everything below it.
    public static func isNeverFound(_ name: String) -> Bool { isTop(name, "invalid") }

    private static func isTop(_ name: String, _ top: String) -> Bool {
        let bare = withoutFinalDot(lowercased(name))
        return bare == top || bare.hasSuffix("." + top)
    }
}
