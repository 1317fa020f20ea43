import Network
import Primitives
import SIP

/// A flow that is being opened.
public struct FlowAttempt: Sendable {
    /// Gives the attempt up: the connection is closed and the completion never called. Nothing when it was called already.
    /// On the loop only.
    public let cancel: @Sendable () -> Void
}

/// Opening flows.
extension SIPTransportSet {
    /// Opens a flow to a server; for UDP that is a matter of naming it.
    ///
    /// - Parameters:
    ///   - timeout: how long each step may take: TCP, the handshake of TLS and that of WebSocket.
    ///   - completion: called once, on the loop, after this method returned. Fails with `.tls` and the reason when the
    ///     server cannot be trusted, and with `.closed` when the set is closed meanwhile.
    @discardableResult
    public func connect(
        _ target: FlowTarget, timeout: Duration = .seconds(4),
        completion: @escaping @Sendable (Result<RegisteredFlow, NetworkError>) -> Void
    ) -> FlowAttempt {
        loop.checkIsolated()
        if let objection = objection?(target) { return answer(.failure(objection), completion) }
        guard target.transport != .udp else {
            return answer(Result { () throws(NetworkError) in try openUDP(toward: target.address) }, completion)
        }
        if target.transport.isSecure, tls == nil {
            do {
                tls = try TLSClientContext()
            } catch {
                return answer(.failure(error), completion)
            }
        }
        let tcp = TCPConnection.connect(loop: loop, to: target.address, timeout: timeout)
        let layers = StreamLayers(client: tcp, target: target, context: tls, timeout: timeout)
        let anonymousHost = target.transport.isWebSocket ? "\(random.hexadecimal(bits: 96)).invalid" : nil
        let flow = adopt(
            layers, transport: target.transport, remote: target.address, anonymousHost: anonymousHost,
            completion: completion)
        return FlowAttempt { [weak self] in
            guard let self, let stream = self.streams[flow], stream.takeCompletion() != nil else { return }
            self.close(flow)
        }
    }

    private func answer(
        _ result: Result<RegisteredFlow, NetworkError>,
        _ completion: @escaping @Sendable (Result<RegisteredFlow, NetworkError>) -> Void
    ) -> FlowAttempt {
        // Like all others it is answered later, and can be given up until then.
        let pending = loop.schedule(after: .zero) { completion(result) }
        return FlowAttempt { pending.cancel() }
    }

    private func openUDP(toward remote: TransportAddress) throws(NetworkError) -> RegisteredFlow {
        let local: TransportAddress
        if let udp = udp[remote.isIPv6] {
            local = udp.localAddress
        } else {
            // The address that the kernel would use toward the peer is the one that the peer can answer to.
            let source = try LocalAddresses.localAddress(toward: remote)
            local = try bindUDP(TransportAddress(host: source.host, port: 0))
        }
        return RegisteredFlow(flow: SIPFlow(transport: .udp, remote: remote, connection: 0), local: local)
    }
}
