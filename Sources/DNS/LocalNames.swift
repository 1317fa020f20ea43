/// What this machine knows without asking a name server: itself, and the hosts file.
public enum LocalNames {
    /// The answer to a question about a name that this machine knows; nil when a name server must be asked.
    ///
    /// Such a name has addresses only. Where its services are is answered with "no data" and not asked of a name server: the
    /// machine's owner has said where the host is.
    public static func answer(to question: DNSQuestion, hosts: HostsTable) -> DNSAnswer? {
        let host = DNSName.host(ofService: question.name)
        if DNSName.isNeverFound(host) { return .noSuchName }
        // RFC 6761, 6.3: never something else, whatever the hosts file says.
        guard let addresses = DNSName.isLocalhost(host) ? ["127.0.0.1", "::1"] : hosts.addresses(of: host) else {
            return nil
        }
        let isIPv6 = question.type == .aaaa
        guard question.type == .a || isIPv6 else { return .noData }
        let matching = addresses.filter { $0.utf8.contains(UInt8(ascii: ":")) == isIPv6 }
        return matching.isEmpty ? .noData : .records(matching.map { .address($0) })
    }
}
