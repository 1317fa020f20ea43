import Network
import Primitives
import SIP
import Signalling

/// A server that did not serve.
struct FailedServer: Hashable {
    var transport: SIPTransport
    var address: TransportAddress

    init(_ flow: SIPFlow) {
        transport = flow.transport
        address = flow.remote
    }
}

/// The flow to the platform: where it goes, what may be sent over it, and what happens when it is lost.
extension ClientCore {
    /// Opens a flow to the platform for the agent.
    func openFlow() {
        connect {
            $0.agent.flowOpened($1, at: $0.loop.now)
        } failed: { core, error in
            core.flowNotOpened(error)
        }
    }

    /// Opens a TCP flow to the server that is spoken to in datagrams, because the registration is too long for those.
    func openStream(insteadOf flow: SIPFlow) {
        let target = FlowTarget(transport: .tcp, address: flow.remote, domain: serverTarget.domain)
        connections().transports.connect(target) { [weak self] result in
            self?.assumeIsolated { core in
                guard !core.isTerminated else { return }
                switch result {
                case .success(let path):
                    core.agent.flowOpened(path, at: core.loop.now)
                    core.drain()
                case .failure(let error):
                    core.flowNotOpened(
                        NetworkError(
                            error.code,
                            "the registration is too long for a datagram, and TCP cannot be had: \(error.message); use "
                                + "transport=tcp or tls, or a shorter token"))
                }
            }
        }
    }

    /// Goes to another server when this one did not serve a registration: it says 503, or does not answer.
    ///
    /// - Returns: whether another server is being looked for; if there is none, `registrationFailed` is told.
    func changesServer(after failure: RegistrationFailure, retryAt: MonotonicTime?) -> Bool {
        // A connection that broke under a registration is made again by the agent. Under the first attempt it is the server
        // that does not serve.
        guard let flow = agent.path?.flow ?? (hasBeenRegistered ? nil : brokenFlow), let retryAt, !isTerminating,
            failure.status == 503 || failure.kind == .timeout || failure.kind == .unreachable
        else { return false }
        failedServers.insert(FailedServer(flow))
        let retryAfter = failure.status == 503 ? retryAt - loop.now : nil
        connections().connector.reportFailure(
            failure.status == 503 ? .unavailable(retryAfter: retryAfter) : .transport, of: flow)
        connect { core, path in
            guard core.agent.nextRegistrationAttempt == retryAt else {
                // The agent has tried again meanwhile; what came of it counts.
                if path.flow != core.agent.path?.flow { core.transports?.close(path.flow) }
                return
            }
            if core.failedServers.contains(FailedServer(path.flow)) {
                // All have failed: the agent stays with what it has and waits.
                if path.flow != core.agent.path?.flow { core.transports?.close(path.flow) }
                core.registrationFailed(failure, retryAt: retryAt)
            } else {
                log(.info, "network", "changes to \(path.flow): \(failure)")
                core.agent.flowReplaced(by: path, at: core.loop.now)
            }
        } failed: { core, _ in
            guard core.agent.nextRegistrationAttempt == retryAt else { return }
            core.registrationFailed(failure, retryAt: retryAt)
            core.drain()
        }
        return true
    }

    /// Closes every flow and lets go of what opens them.
    func closeFlows() {
        establishment?.cancel()
        establishment = nil
        transports?.close()
        transports = nil
        connector = nil
        dns?.close()
        dns = nil
    }

    private func connect(
        opened: @escaping @Sendable (isolated ClientCore, RegisteredFlow) -> Void,
        failed: @escaping @Sendable (isolated ClientCore, NetworkError) -> Void
    ) {
        establishment?.cancel()
        establishment = connections().connector.connect(to: serverTarget) { [weak self] result in
            self?.assumeIsolated { core in
                core.establishment = nil
                guard !core.isTerminated else { return }
                switch result {
                case .success(let path):
                    opened(core, path)
                    core.drain()
                case .failure(let error):
                    failed(core, error)
                }
            }
        }
    }

    /// Where the platform is. Without a word about the transport it is what DNS says, and only what has TLS, since a token
    /// goes there; on this machine it is UDP.
    private var serverTarget: ServerTarget {
        let isLocal = endpoint.isLocal
        // The user's own words are what a certificate is checked against: the proxy's name, or else the domain's.
        return ServerTarget(
            host: endpoint.host, port: endpoint.port, transport: endpoint.transport,
            isSecure: endpoint.transport == nil && !isLocal, transports: isLocal ? [.udp] : [.tls, .wss],
            domain: endpoint.isNumeric ? domain : endpoint.host)
    }

    private func connections() -> (transports: SIPTransportSet, connector: FlowConnector) {
        if let transports, let connector { return (transports, connector) }
        let transports = makeTransports()
        let dns = DNSClient(loop: loop, servers: nil)
        let connector = FlowConnector(loop: loop, transports: transports, dns: dns)
        self.dns = dns
        self.transports = transports
        self.connector = connector
        return (transports, connector)
    }

    private func makeTransports() -> SIPTransportSet {
        let made = SIPTransportSet(
            loop: loop,
            handlers: SIPTransportSet.Handlers(
                onMessage: { [weak self] message, flow in
                    self?.assumeIsolated { core in
                        core.agent.receive(message, from: flow, at: core.loop.now)
                        core.drain()
                    }
                },
                onFlowFailed: { [weak self] flow, error in
                    self?.assumeIsolated { $0.flowFailed(flow, error) }
                },
                onRequestFailed: { [weak self] request, _, error in
                    self?.assumeIsolated { core in
                        log(.warning, "network", error.message)
                        core.agent.requestNotSent(request, reason: error.message, at: core.loop.now)
                        core.drain()
                    }
                },
                onKeepAlive: { [weak self] answer, flow in
                    self?.assumeIsolated { core in
                        core.agent.receiveKeepAlive(answer, from: flow, at: core.loop.now)
                        core.drain()
                    }
                }))
        made.tls = tls
        made.maximumDatagramRequest = SIPTransportSet.maximumDatagramRequest
        if configuration.authentication == .token { made.objection = { Self.objection(to: $0) } }
        return made
    }

    /// From the opening of a flow on the token goes wherever the flow goes: so this is decided before.
    private static func objection(to target: FlowTarget) -> NetworkError? {
        guard !target.transport.isSecure, !target.address.isLoopback else { return nil }
        return NetworkError(
            .insecureTransport,
            "a token would go to \(target.address) over \(target.transport.rawValue), which anyone on the way can read")
    }

    private func flowFailed(_ flow: SIPFlow, _ error: NetworkError) {
        guard flow == agent.path?.flow else { return }
        log(.warning, "network", error.message)
        lastNetworkError = error
        brokenFlow = flow
        // A connection that broke is made again, best to another server; over UDP the registration's failure decides.
        if flow.transport.isReliable { connector?.reportFailure(.transport, of: flow) }
        agent.flowFailed(reason: error.message, at: loop.now)
        drain()
    }

    private func flowNotOpened(_ error: NetworkError) {
        log(.warning, "network", error.message)
        lastNetworkError = error
        if error.code == .insecureTransport {
            refuse(
                SinchError(
                    .tls, error.message,
                    hint: "use transport tls or wss; without TLS, a token stays on this machine",
                    step: "registering"))
        } else {
            agent.flowNotOpened(reason: error.message, at: loop.now)
        }
        drain()
    }
}
