import Network
import Primitives
import SIP
import STUN

/// What comes from the sockets.
extension SIPTransportSet {
    func receiveDatagram(_ bytes: [UInt8], from peer: TransportAddress) {
        let flow = SIPFlow(transport: .udp, remote: peer, connection: 0)
        // Keep-alives (RFC 5626, 3.5) and the like: nothing but white space.
        if Self.isBlank(bytes) { return }
        if STUNMessage.looksLikeSTUN(bytes) {
            receiveSTUN(bytes, from: peer)
        } else {
            deliver(bytes, from: flow)
        }
    }

    /// Answers a client's question for its address, and takes the answer to our own.
    private func receiveSTUN(_ bytes: [UInt8], from peer: TransportAddress) {
        guard let source = (try? SocketAddress(peer)).flatMap({ STUNAddress(bytes: $0.bytes, port: $0.port) }) else {
            return
        }
        if let response = BindingServer.response(to: bytes, from: source) {
            udp[peer.isIPv6]?.send(response, to: peer)
        } else if let message = try? STUNMessage.parse(bytes), [.success, .error].contains(message.messageClass) {
            let flow = SIPFlow(transport: .udp, remote: peer, connection: 0)
            handlers.onKeepAlive(.binding(message.transaction, message.mappedAddress), flow)
        }
    }

    /// Takes a connection over, one that is being made or one that was accepted.
    @discardableResult
    func adopt(
        _ layers: StreamLayers, transport: SIPTransport, remote: TransportAddress, anonymousHost: String?,
        completion: (@Sendable (Result<RegisteredFlow, NetworkError>) -> Void)?
    ) -> SIPFlow {
        let flow = SIPFlow(transport: transport, remote: remote, connection: nextConnection)
        nextConnection &+= 1
        let stream = SIPStream(
            flow: flow, layers: layers, limits: limits, anonymousHost: anonymousHost, completion: completion)
        streams[flow] = stream
        let connection = stream.connection
        stream.webSocket?.onPong = { [weak self] in self?.handlers.onKeepAlive(.pong, flow) }
        connection.onOpen = { [weak stream] in
            guard let stream else { return }
            stream.takeCompletion()?(.success(stream.registeredFlow))
        }
        connection.onData = { [weak self, weak stream] bytes in
            // A closed stream may still bring what was on its way.
            guard let self, let stream, self.streams[flow] === stream else { return }
            if stream.webSocket == nil {
                self.receive(bytes, on: stream)
            } else if !Self.isBlank(bytes) {
                self.deliver(bytes, from: flow)
            }
        }
        connection.onClose = { [weak self] error in
            guard let self, let stream = self.streams.removeValue(forKey: flow) else { return }
            stream.stopWatching()
            self.forgetDetour(flow)
            let cause = error ?? NetworkError(.closed, "the other side closed the connection")
            if let completion = stream.takeCompletion() {
                completion(.failure(cause))
            } else {
                self.handlers.onFlowFailed(flow, cause)
            }
        }
        return flow
    }

    private func deliver(_ bytes: [UInt8], from flow: SIPFlow) {
        do {
            let message = try SIPMessage.parse(bytes, limits: limits)
            counters.received &+= 1
            handlers.onMessage(message, flow)
        } catch {
            counters.malformed &+= 1
            handlers.onMalformed(bytes, error, flow)
        }
    }

    private func receive(_ bytes: [UInt8], on stream: SIPStream) {
        let flow = stream.flow
        stream.framer.receive(bytes)
        var isProgressing = false
        do {
            while streams[flow] === stream, let frame = try stream.framer.next() {
                isProgressing = true
                switch frame {
                case .message(let message): deliver(message, from: flow)
                case .keepAlivePing: stream.connection.send([0x0D, 0x0A])
                case .keepAlivePong: handlers.onKeepAlive(.pong, flow)
                }
            }
            if streams[flow] === stream {
                stream.watchPartialMessage(on: loop, within: partialMessageTimeout, isNew: isProgressing)
            }
        } catch {
            counters.malformed &+= 1
            handlers.onMalformed(bytes, error, flow)
            close(flow)
            handlers.onFlowFailed(
                flow, NetworkError(.closed, "what arrived is not SIP: \(error.reason)"))
        }
    }

    /// Whether there is nothing but line ends: a keep-alive (RFC 5626, section 3.5) or a probe.
    private static func isBlank(_ bytes: [UInt8]) -> Bool {
        bytes.allSatisfy { $0 == 0x0D || $0 == 0x0A || $0 == 0 }
    }
}
