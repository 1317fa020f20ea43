import Network
import Primitives
import SIP

/// Waiting for others.
extension SIPTransportSet {
    /// Binds the UDP socket of the address's family; port 0 takes a free one.
    ///
    /// - Returns: the address that was got.
    public func bindUDP(_ address: TransportAddress) throws(NetworkError) -> TransportAddress {
        let socket = try UDPSocket(loop: loop, bind: address)
        socket.onDatagram = { [weak self] bytes, peer in
            self?.receiveDatagram(bytes, from: peer)
        }
        socket.onError = { [weak self] error, peer in
            guard let peer else { return }
            self?.handlers.onFlowFailed(SIPFlow(transport: .udp, remote: peer, connection: 0), error)
        }
        udp[address.isIPv6]?.close()
        udp[address.isIPv6] = socket
        return socket.localAddress
    }

    /// Listens for TCP connections; port 0 takes a free one.
    ///
    /// - Returns: the address that was got.
    public func listenTCP(_ address: TransportAddress, maximumConnections: Int = 1_024) throws(NetworkError)
        -> TransportAddress
    {
        try listen(.tcp, address, certificate: nil, maximumConnections: maximumConnections)
    }

    /// Listens for connections of a stream transport; port 0 takes a free one. Listening anew replaces the listener of
    /// the same transport.
    ///
    /// - Parameter certificate: what TLS and secure WebSocket show; the other transports need none.
    /// - Returns: the address that was got.
    public func listen(
        _ transport: SIPTransport, _ address: TransportAddress, certificate: TLSServerContext?,
        maximumConnections: Int = 1_024
    ) throws(NetworkError) -> TransportAddress {
        guard transport != .udp, !transport.isSecure || certificate != nil else {
            throw NetworkError(
                .invalidAddress,
                transport == .udp
                    ? "UDP has no connections to listen for; bind it"
                    : "listening for \(transport.viaName) needs a certificate")
        }
        var options = TCPListener.Options()
        options.maximumConnections = maximumConnections
        options.maximumConnectionsPerHost = maximumConnections
        // RFC 5626 clients ping every two minutes; who is silent for an hour is gone.
        options.connection.idleTimeout = .seconds(3_600)
        let listener = try TCPListener(loop: loop, bind: address, options: options)
        listener.onConnection = { [weak self] connection in
            guard let self else { return }
            let remote = connection.remoteAddress ?? TransportAddress(host: "0.0.0.0", port: 0)
            let layers = StreamLayers(server: connection, transport: transport, context: certificate)
            self.adopt(layers, transport: transport, remote: remote, anonymousHost: nil, completion: nil)
        }
        listeners[transport]?.close()
        listeners[transport] = listener
        return listener.localAddress
    }
}
