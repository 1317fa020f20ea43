import Primitives

extension SIPVia {
    /// Records where the request came from: `received` when the Via does not say so itself (RFC 3261 section
    /// 18.2.1), and the value of `rport` when the sender asked for it (RFC 3581 section 4).
    mutating func stamp(source: TransportAddress) {
        var plainHost = host.lowercased()
        if plainHost.hasPrefix("["), plainHost.hasSuffix("]") { plainHost = String(plainHost.dropFirst().dropLast()) }
        if hasRport {
            received = source.host
            parameters["rport"] = String(source.port)
        } else if plainHost != source.host.lowercased() {
            received = source.host
        } else {
            received = nil  // a value from the network is never believed
        }
    }
}

extension SIPFlow {
    /// Where the response to a request from this flow goes: the same connection, or the source of a datagram,
    /// with the Via's port unless the sender asked for symmetric responses (RFC 3261 section 18.2.2, RFC 3581).
    ///
    /// `maddr` is ignored: it would let anybody send our responses to anybody.
    func responseFlow(for via: SIPVia?) -> SIPFlow {
        guard transport == .udp, let via, !via.hasRport else { return self }
        var flow = self
        flow.remote.port = via.port ?? 5060
        return flow
    }
}
