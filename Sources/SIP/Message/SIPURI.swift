/// A URI as SIP uses it (RFC 3261 section 19.1): `sip` and `sips` taken apart, every other scheme (`tel`, `urn`,
/// `http`) kept as it is in `opaque`.
public struct SIPURI: Hashable, Sendable, CustomStringConvertible {
    /// One header of a URI, `?name=value`, in plain text.
    public struct Header: Hashable, Sendable {
        /// The header's name.
        public var name: String
        /// Its value.
        public var value: String

        /// Creates a URI header.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The scheme in lower case.
    public private(set) var scheme: String
    /// What follows the scheme's colon when it is neither `sip` nor `sips`.
    public private(set) var opaque: String?
    /// The host in lower case: a name, an IPv4 address, or an IPv6 address in brackets. Empty for other schemes.
    public var host: String {
        get { storedHost }
        set { storedHost = Host.normalized(newValue) }
    }
    /// The port, if one is named. A URI with the default port is not equivalent to one without.
    public var port: UInt16?

    private var storedHost: String
    // In escaped normal form.
    var escapedUser: String?
    var escapedPassword: String?
    private var storedParameters = SIPParameters(context: .uri)
    var escapedHeaders: [Header] = []

    /// Creates a `sip` or `sips` URI. An IPv6 host may come with or without brackets.
    public init(user: String?, host: String, port: UInt16? = nil, secure: Bool = false) {
        self.scheme = secure ? "sips" : "sip"
        self.storedHost = Host.normalized(host)
        self.port = port
        self.escapedUser = user.map { Escaping.escaped($0, allowed: .user) }
    }

    /// A URI of another scheme, or text that could not be read as a URI (then the scheme is empty).
    init(scheme: String, opaque: String) {
        self.scheme = scheme
        self.opaque = opaque
        self.storedHost = ""
    }

    /// What the parser read: a host already in lower case, the rest in escaped normal form.
    init(
        isSecure: Bool, user: String?, password: String?, parsedHost: String, port: UInt16?,
        parameters: SIPParameters, headers: [Header]
    ) {
        self.scheme = isSecure ? "sips" : "sip"
        self.storedHost = parsedHost
        self.port = port
        self.escapedUser = user
        self.escapedPassword = password
        self.storedParameters = parameters
        self.escapedHeaders = headers
    }

    /// The user in plain text, without escapes; nil when the URI names a host only.
    public var user: String? {
        get { escapedUser.map(Escaping.unescaped) }
        set { escapedUser = newValue.map { Escaping.escaped($0, allowed: .user) } }
    }

    /// The password in plain text. Its use is discouraged (RFC 3261 section 19.1.1); it is kept, never needed.
    public var password: String? {
        get { escapedPassword.map(Escaping.unescaped) }
        set { escapedPassword = newValue.map { Escaping.escaped($0, allowed: .password) } }
    }

    /// The URI's parameters, values in plain text.
    public var parameters: SIPParameters {
        get { storedParameters }
        set { storedParameters = newValue.converted(to: .uri) }
    }

    /// The URI's headers, in plain text.
    public var headers: [Header] {
        get {
            escapedHeaders.map {
                Header(name: Escaping.unescaped($0.name), value: Escaping.unescaped($0.value))
            }
        }
        set {
            escapedHeaders = newValue.map {
                Header(
                    name: Escaping.escaped($0.name, allowed: .uriHeader),
                    value: Escaping.escaped($0.value, allowed: .uriHeader))
            }
        }
    }

    /// Whether the scheme is `sip` or `sips`.
    public var isSIP: Bool { scheme == "sip" || scheme == "sips" }

    /// Whether the scheme is `sips`.
    public var isSecure: Bool { scheme == "sips" }

    /// The `transport` parameter in lower case.
    public var transport: String? { parameters["transport"]?.asciiLowercased }

    /// Whether the URI names a loose router, by the `lr` parameter (RFC 3261 section 19.1.1).
    public var isLooseRouter: Bool { storedParameters.contains("lr") }

    /// The URI with everything escaped that must be.
    public var description: String {
        var output: [UInt8] = []
        write(into: &output)
        return String(decoding: output, as: UTF8.self)
    }

    func write(into output: inout [UInt8]) {
        output.append(contentsOf: scheme.utf8)
        output.append(UInt8(ascii: ":"))
        if let opaque {
            output.append(contentsOf: opaque.utf8)
            return
        }
        if let escapedUser {
            output.append(contentsOf: escapedUser.utf8)
            if let escapedPassword {
                output.append(UInt8(ascii: ":"))
                output.append(contentsOf: escapedPassword.utf8)
            }
            output.append(UInt8(ascii: "@"))
        }
        output.append(contentsOf: host.utf8)
        if let port {
            output.append(UInt8(ascii: ":"))
            output.append(contentsOf: String(port).utf8)
        }
        storedParameters.write(into: &output)
        var separator = UInt8(ascii: "?")
        for header in escapedHeaders {
            output.append(separator)
            output.append(contentsOf: header.name.utf8)
            output.append(UInt8(ascii: "="))
            output.append(contentsOf: header.value.utf8)
            separator = UInt8(ascii: "&")
        }
    }

    /// What would break the message if the URI were printed into it, or nil.
    public var printFault: SIPPrintError? {
        if opaque != nil {
            return scheme.isEmpty || description.utf8.contains { $0 <= 0x20 || $0 == 0x7F }
                ? SIPPrintError(field: "URI", reason: "is not a URI") : nil
        }
        if host.isEmpty || !Host.isValid(host) {
            return SIPPrintError(field: "host", reason: "is neither a name nor an address")
        }
        if let escapedUser, escapedUser.isEmpty || escapedUser.utf8.contains(where: \.endsLine) {
            return SIPPrintError(field: "user", reason: "is empty or holds CR, LF or NUL")
        }
        if let escapedPassword, escapedPassword.utf8.contains(where: \.endsLine) {
            return SIPPrintError(field: "password", reason: "holds CR, LF or NUL")
        }
        for entry in storedParameters.entries
        where entry.name.isEmpty || (entry.name + (entry.value ?? "")).utf8.contains(where: \.endsLine) {
            return SIPPrintError(field: "URI parameter", reason: "has no name or holds CR, LF or NUL")
        }
        for header in escapedHeaders
        where header.name.isEmpty || (header.name + header.value).utf8.contains(where: \.endsLine) {
            return SIPPrintError(field: "URI header", reason: "has no name or holds CR, LF or NUL")
        }
        return nil
    }
}
