import Primitives
import SIP

/// Keeps the environment in the path of a dialog (RFC 3261 section 16.6 step 4) and finds the dialog's token again.
struct RecordRoute: Sendable {
    private let listen: [SIPTransport: TransportAddress]
    private let domain: Domain
    let sealer: DialogTokenSealer

    init(_ configuration: EnvironmentConfiguration, sealer: DialogTokenSealer) {
        listen = configuration.listen
        domain = Domain(configuration)
        self.sealer = sealer
    }

    /// Adds the Record-Route of a dialog to the request that begins it.
    ///
    /// When the sides speak over different transports there are two (RFC 5658 section 3.2): each side then finds, as its
    /// first hop, an address that it can reach.
    func add(_ token: DialogToken, to request: inout SIPMessage) {
        let user = sealer.seal(token)
        var headers: [String] = []
        if token.caller.flow.transport != token.callee.flow.transport,
            let uri = routeURI(user: user, transport: token.caller.flow.transport)
        {
            headers.append(SIPAddress(uri: uri).description)
        }
        if let uri = routeURI(user: user, transport: token.callee.flow.transport) {
            headers.append(SIPAddress(uri: uri).description)
        }
        for header in headers { request.headers.prepend("Record-Route", header) }
    }

    /// The token in the response's Record-Route, of a dialog that this environment proxies.
    func token(in response: SIPMessage) -> DialogToken? {
        response.recordRoutes.lazy.filter { domain.owns($0.uri) }.compactMap { open($0.uri) }.first
    }

    /// What the Route header fields of a request say about its way through this environment.
    enum Way: Sendable, Equatable {
        /// No route through here: a request outside of a dialog, or one whose sender lost its route set.
        case none
        /// Along a dialog that this environment proxies.
        case dialog(DialogToken)
        /// A token that is not one of ours, or no longer: made up, or from before the environment started.
        case unknownToken
    }

    /// Takes this environment's own entries off the front of the Route, undoing strict routing (RFC 3261 section 16.4).
    func takeWay(from request: inout SIPMessage) -> Way {
        var tokens: [SIPURI] = []
        var routes = request.routes
        // A strict router before us put our URI into the request line and the target last.
        if let uri = request.requestURI, uri.isLooseRouter, domain.owns(uri), uri.user != nil, let target = routes.last
        {
            tokens.append(uri)
            request.requestURI = target.uri
            routes.removeLast()
        }
        // Two entries at most are ours (RFC 5658); more would be a loop that Max-Forwards ends.
        while tokens.count < 3, let first = routes.first, domain.owns(first.uri) {
            tokens.append(first.uri)
            routes.removeFirst()
        }
        guard !tokens.isEmpty else { return .none }
        request.routes = routes
        if let token = tokens.lazy.compactMap({ open($0) }).first { return .dialog(token) }
        return tokens.contains { $0.user != nil } ? .unknownToken : .none
    }

    /// Prepares a request for a next hop that is a strict router (section 16.6 step 6).
    static func respectStrictRouter(in request: inout SIPMessage) {
        guard let first = request.routes.first, !first.uri.isLooseRouter, let target = request.requestURI else {
            return
        }
        var routes = request.routes
        routes.removeFirst()
        routes.append(SIPAddress(uri: target))
        request.requestURI = first.uri
        request.routes = routes
    }

    /// The Via of a request that leaves over `transport`, without a branch; nil when nothing listens there.
    func via(for transport: SIPTransport, branch: String = "") -> SIPVia? {
        guard let address = listen[transport] else { return nil }
        var via = SIPVia(
            transport: transport.viaName, host: Domain.withBrackets(address), port: address.port, branch: branch)
        // Ask for the port that the peer sees (RFC 3581): nothing is lost, and a NAT in between is told.
        if !transport.isReliable { via.parameters.setFlag("rport") }
        return via
    }

    private func open(_ uri: SIPURI) -> DialogToken? {
        uri.user.flatMap { sealer.open($0) }
    }

    private func routeURI(user: String, transport: SIPTransport) -> SIPURI? {
        guard let address = listen[transport] else { return nil }
        var uri = SIPURI(user: user, host: Domain.withBrackets(address), port: address.port)
        uri.parameters["transport"] = transport.rawValue
        uri.parameters.setFlag("lr")
        return uri
    }
}
