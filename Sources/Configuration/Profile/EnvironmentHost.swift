import Glibc

/// How SIP travels to a server.
public enum SignallingTransport: String, CaseIterable, Sendable {
    case udp, tcp, tls, ws, wss

    /// Whether TLS protects it.
    public var isSecure: Bool { self == .tls || self == .wss }
}

/// Where calls go: `HOST[:PORT][;transport=udp|tcp|tls|ws|wss]`.
public struct EnvironmentHost: Hashable, Sendable, CustomStringConvertible {
    /// The name in lower case, or a numeric address; IPv6 without brackets.
    public var host: String
    /// The port; nil leaves it to DNS or the transport's default.
    public var port: UInt16?
    /// The transport; nil leaves it to DNS or the default.
    public var transport: SignallingTransport?

    /// Creates a host from its parts, unchecked.
    public init(host: String, port: UInt16? = nil, transport: SignallingTransport? = nil) {
        self.host = host
        self.port = port
        self.transport = transport
    }

    /// Reads `HOST[:PORT][;transport=…]`; the host is a name, an IPv4 address, or an IPv6 address in brackets.
    /// - Throws: `invalidValue`, or `vendorHost` for a host of the vendor's private protocol, with the SIP host to use.
    public init(parsing text: String) throws(ConfigurationError) {
        let form = "write HOST[:PORT][;transport=udp|tcp|tls|ws|wss], for example sip.example.com;transport=tls"
        func invalid(_ reason: String, hint: String? = nil) -> ConfigurationError {
            ConfigurationError(.invalidValue, "'\(printable(text))' is no host: \(reason)", hint: hint ?? form)
        }
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        let address = parts.first.map(String.init) ?? ""
        for scheme in ["sip:", "sips:", "http://", "https://", "ws://", "wss://"]
        where address.lowercased().hasPrefix(scheme) {
            throw invalid("it begins with \(scheme)", hint: "leave out the scheme; " + form)
        }
        let (name, digits) = try Self.split(address, invalid: { invalid($0, hint: $1) })
        if let digits {
            guard digits.utf8.allSatisfy(isDigit), let number = UInt16(digits), number > 0 else {
                throw invalid("the port must be a number from 1 to 65535")
            }
            port = number
        } else {
            port = nil
        }
        var transport: SignallingTransport?
        for parameter in parts.dropFirst() {
            let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, pair[0].lowercased() == "transport" else {
                throw invalid("the parameter '\(printable(String(parameter)))' is unknown; only transport=… may follow")
            }
            guard transport == nil else { throw invalid("the transport occurs twice") }
            guard let value = SignallingTransport(rawValue: pair[1].lowercased()) else {
                throw invalid("the transport '\(printable(String(pair[1])))' is unknown")
            }
            transport = value
        }
        self.transport = transport
        host = name.lowercased()
        if let refusal = Self.vendorRefusal(host) { throw refusal }
    }

    /// Name and port digits, brackets removed.
    private static func split(
        _ address: String, invalid: (_ reason: String, _ hint: String?) -> ConfigurationError
    ) throws(ConfigurationError) -> (name: String, port: String?) {
        if address.hasPrefix("[") {
            guard let end = address.firstIndex(of: "]") else { throw invalid("a ] is missing", nil) }
            let inner = String(address[address.index(after: address.startIndex)..<end])
            let rest = address[address.index(after: end)...]
            guard isIPv6(inner) else { throw invalid("no IPv6 address stands in the brackets", nil) }
            guard rest.isEmpty || rest.hasPrefix(":") else { throw invalid("something follows the ]", nil) }
            return (inner, rest.isEmpty ? nil : String(rest.dropFirst()))
        }
        if isIPv6(address) {
            throw invalid("an IPv6 address needs brackets", "write [\(address)]")
        }
        let pieces = address.split(separator: ":", omittingEmptySubsequences: false)
        guard let name = pieces.first, !name.isEmpty else { throw invalid("it is empty", nil) }
        guard pieces.count <= 2 else { throw invalid("it has several colons", nil) }
        guard name.utf8.count <= 253, name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy(isLabel)
        else { throw invalid("a name has letters, digits, hyphens and dots", nil) }
        return (String(name), pieces.count == 2 ? String(pieces[1]) : nil)
    }

    /// A label of a host name (RFC 1123, section 2.1); underscores occur in private networks.
    private static func isLabel(_ label: Substring) -> Bool {
        let bytes = label.utf8
        guard let first = bytes.first, let last = bytes.last, bytes.count <= 63 else { return false }
        return first != UInt8(ascii: "-") && last != UInt8(ascii: "-")
            && bytes.allSatisfy { byte in
                let lower = byte | 0x20
                return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lower) || isDigit(byte)
                    || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
            }
    }

    private static func isIPv6(_ text: String) -> Bool {
        guard text.contains(":") else { return false }
        var address = in6_addr()
        return inet_pton(AF_INET6, text, &address) == 1
    }

    /// The vendor's client hosts speak a private protocol. The same regions have SIP hosts.
    private static func vendorRefusal(_ host: String) -> ConfigurationError? {
        let label = host.prefix { $0 != "." }
        guard label == "ocra" || (label.hasPrefix("ocra-") && host.hasSuffix(".sinch.com")) else { return nil }
        let regions = ["euc1", "use1", "sae1", "apse1", "apse2"]
        let region = label.dropFirst("ocra-".count)
        let sipHost = regions.contains(String(region)) ? "\(region).sip.sinch.com" : "{region}.sip.sinch.com"
        let choice = sipHost.hasPrefix("{") ? " (region: \(regions.joined(separator: ", ")))" : ""
        return ConfigurationError(
            .vendorHost,
            "\(host) speaks the vendor's private signalling protocol, which this program does not",
            hint:
                "use the vendor's SIP interface: environmentHost \"\(sipHost)\"\(choice) with authentication \"digest\""
        )
    }

    /// The host as it stands in a URI: IPv6 in brackets.
    public var uriHost: String { host.contains(":") ? "[\(host)]" : host }

    /// Whether the host is this machine: `localhost`, a name under it (RFC 6761), 127.0.0.0/8 or ::1.
    public var isLoopback: Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "::1" { return true }
        var address = in_addr()
        return inet_pton(AF_INET, host, &address) == 1 && host.hasPrefix("127.")
    }

    /// `HOST[:PORT][;transport=…]`, as it is read.
    public var description: String {
        uriHost + (port.map { ":\($0)" } ?? "") + (transport.map { ";transport=\($0.rawValue)" } ?? "")
    }
}

/// Text from a file or a flag, fit for a message: cut to 80 characters, without control characters.
func printable(_ text: String) -> String {
    var result = ""
    for (count, scalar) in text.unicodeScalars.enumerated() {
        guard count < 80 else { return result + "…" }
        if scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format {
            result += "\\u{" + String(scalar.value, radix: 16) + "}"
        } else {
            result.unicodeScalars.append(scalar)
        }
    }
    return result
}
