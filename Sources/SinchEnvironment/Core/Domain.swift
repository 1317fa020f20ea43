import Primitives
import SIP

/// Which URIs mean this environment: its realm, its aliases, and the addresses it listens on.
struct Domain: Sendable {
    private let names: Set<String>
    private let addresses: Set<TransportAddress>
    private let hosts: Set<String>

    init(_ configuration: EnvironmentConfiguration) {
        names = Set(([configuration.realm] + configuration.domainAliases).map { $0.lowercased() })
        addresses = Set(configuration.listen.values)
        hosts = Set(configuration.listen.values.map(\.host))
    }

    /// Whether `uri` names this environment or a user of it.
    ///
    /// A name counts whatever the port. A numeric address counts with a port only if this environment listens there:
    /// other ports of the same machine belong to its clients.
    func owns(_ uri: SIPURI) -> Bool {
        guard uri.isSIP else { return false }
        if names.contains(uri.host) { return true }
        let host = Self.withoutBrackets(uri.host)
        guard let port = uri.port else { return hosts.contains(host) }
        return addresses.contains(TransportAddress(host: host, port: port))
    }

    /// Whether `via` is a Via that this environment added.
    func owns(_ via: SIPVia) -> Bool {
        let host = Self.withoutBrackets(via.host)
        return addresses.contains(TransportAddress(host: host, port: via.port ?? 5_060))
    }

    /// A URI's host writes IPv6 in brackets, a transport address without.
    static func withoutBrackets(_ host: String) -> String {
        guard host.hasPrefix("["), host.hasSuffix("]") else { return host }
        return String(host.dropFirst().dropLast())
    }

    /// A transport address's host as a URI or Via writes it.
    static func withBrackets(_ address: TransportAddress) -> String {
        address.isIPv6 ? "[\(address.host)]" : address.host
    }
}
