import Glibc

/// A name that a certificate is for: one entry of its subject alternative names (RFC 5280, section 4.2.1.6).
struct CertificateName: Hashable {
    /// The kinds that identify a server.
    enum Kind: Hashable {
        case domain, uri, address
    }

    /// The kind of entry.
    var kind: Kind
    /// What the entry holds: text for domains and URIs, 4 or 16 bytes for addresses. Whatever the certificate says, so
    /// it may contain anything.
    var value: [UInt8]

    /// The entry for people: `sip:example.com`, `192.0.2.1`. Nil when it is not fit to print.
    var printable: String? {
        switch kind {
        case .domain, .uri:
            guard !value.isEmpty, value.count <= 255, value.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                return nil
            }
            return String(decoding: value, as: UTF8.self)
        case .address:
            guard value.count == 4 || value.count == 16 else { return nil }
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            guard inet_ntop(value.count == 4 ? AF_INET : AF_INET6, value, &text, socklen_t(text.count)) != nil else {
                return nil
            }
            return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}

/// The name that a server must have, and the comparison with what its certificate says.
struct ExpectedServerName {
    /// As configured.
    let text: String
    /// What goes into the Server Name Indication: the domain, without a dot at its end; nil for an address, which must
    /// not go there (RFC 6066, section 3).
    let domain: String?
    /// The bytes to find in the certificate, domains in lower case.
    private let wanted: [UInt8]
    private let rule: TLSNameRule

    init(_ text: String, rule: TLSNameRule) {
        self.text = text
        self.rule = rule
        if let address = Self.address(text) {
            wanted = address
            domain = nil
        } else {
            let name = text.hasSuffix(".") ? String(text.dropLast()) : text
            wanted = Self.lowercased(Array(name.utf8))
            domain = name
        }
    }

    /// Whether the certificate with these names is for this server.
    func matches(_ names: [CertificateName]) -> Bool {
        guard !wanted.isEmpty else { return false }
        guard domain != nil else {
            return names.contains { $0.kind == .address && $0.value == wanted }
        }
        let domains = names.lazy.filter { $0.kind == .domain }.map { Self.lowercased($0.value) }
        switch rule {
        case .sip:
            // Section 7.1: where a certificate has SIP URIs, its DNS names say nothing about SIP.
            let identities = names.compactMap(Self.sipIdentity)
            return identities.isEmpty ? domains.contains(wanted) : identities.contains(wanted)
        case .web:
            return domains.contains { $0 == wanted || matchesWildcard($0) }
        }
    }

    /// RFC 9525, section 6.3: the leftmost label is `*` and nothing else, and stands for exactly one label. Two labels
    /// must follow it, so that nobody holds a certificate for all of `*.com`.
    private func matchesWildcard(_ pattern: [UInt8]) -> Bool {
        guard pattern.starts(with: Array("*.".utf8)), let dot = wanted.firstIndex(of: UInt8(ascii: ".")), dot > 0
        else { return false }
        let rest = pattern.dropFirst()
        return rest.dropFirst().contains(UInt8(ascii: ".")) && rest == wanted[dot...]
    }

    /// The domain of a `sip:` URI that names a domain and not a user in it (RFC 5922, section 7.1).
    private static func sipIdentity(_ name: CertificateName) -> [UInt8]? {
        let scheme = Array("sip:".utf8)
        guard name.kind == .uri else { return nil }
        let value = lowercased(name.value)
        guard value.starts(with: scheme), !value.contains(UInt8(ascii: "@")) else { return nil }
        return Array(value.dropFirst(scheme.count))
    }

    /// The bytes of an IPv4 or IPv6 literal, with or without brackets.
    private static func address(_ text: String) -> [UInt8]? {
        let inner = text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, inner, &bytes) == 1 { return Array(bytes.prefix(4)) }
        if inet_pton(AF_INET6, inner, &bytes) == 1 { return bytes }
        return nil
    }

    /// ASCII only, as names in certificates are compared (RFC 4343).
    private static func lowercased(_ bytes: [UInt8]) -> [UInt8] {
        bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
    }
}
