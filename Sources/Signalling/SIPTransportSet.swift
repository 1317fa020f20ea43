import Network
import Primitives
import SIP
import STUN

/// The sockets of one SIP element: UDP, TCP, TLS, WebSocket and secure WebSocket, listening and connecting, messages in
/// and out.
///
/// The one place where SIP messages meet sockets. A transport is a way to make a `ByteStream` (`StreamLayers`); framing,
/// limits and flow identity stay here. Confined to its event loop: every method must be called on it, and every handler
/// is called on it.
public final class SIPTransportSet: @unchecked Sendable {
    // @unchecked: all state is touched on `loop` only, which each entry point checks.

    /// What happens on the sockets.
    public struct Handlers: Sendable {
        /// A whole, well-formed message arrived.
        public var onMessage: @Sendable (SIPMessage, SIPFlow) -> Void
        /// Bytes arrived that are no SIP message. A stream that cannot be cut into messages any more is closed after this
        /// handler returned, so that an answer to them still goes out.
        public var onMalformed: @Sendable ([UInt8], SIPParseError, SIPFlow) -> Void
        /// A flow broke, or a datagram was answered by ICMP.
        public var onFlowFailed: @Sendable (SIPFlow, NetworkError) -> Void
        /// A request was not sent, while its flow goes on: it is too long for a datagram and TCP cannot be had.
        public var onRequestFailed: @Sendable (SIPMessage, SIPFlow, NetworkError) -> Void
        /// An answer to a keep-alive arrived.
        public var onKeepAlive: @Sendable (KeepAliveAnswer, SIPFlow) -> Void

        /// Creates the handlers.
        public init(
            onMessage: @escaping @Sendable (SIPMessage, SIPFlow) -> Void,
            onMalformed: @escaping @Sendable ([UInt8], SIPParseError, SIPFlow) -> Void = { _, _, _ in },
            onFlowFailed: @escaping @Sendable (SIPFlow, NetworkError) -> Void,
            onRequestFailed: @escaping @Sendable (SIPMessage, SIPFlow, NetworkError) -> Void = { _, _, _ in },
            onKeepAlive: @escaping @Sendable (KeepAliveAnswer, SIPFlow) -> Void = { _, _ in }
        ) {
            self.onMessage = onMessage
            self.onMalformed = onMalformed
            self.onFlowFailed = onFlowFailed
            self.onRequestFailed = onRequestFailed
            self.onKeepAlive = onKeepAlive
        }
    }

    /// What passed through the sockets.
    public struct Counters: Sendable {
        /// Messages received.
        public var received: UInt64 = 0
        /// Messages sent.
        public var sent: UInt64 = 0
        /// Datagrams and streams that were not SIP.
        public var malformed: UInt64 = 0
        /// Messages of our own that the printer refused (a header with CR or LF, say).
        public var unprintable: UInt64 = 0
    }

    /// A message that has begun must be whole within this time: one byte a second is no way to talk.
    public static let partialMessageTimeout: Duration = .seconds(10)

    /// A request that is longer than this many bytes does not go out in a datagram (RFC 3261, 18.1.1).
    public static let maximumDatagramRequest = 1_300

    /// What is longer goes over TCP to the same server; nil lets everything go out in datagrams, as a server does whose
    /// network is known.
    public var maximumDatagramRequest: Int?
    /// Says why a flow must not be opened, nil when it may; asked before anything is sent.
    public var objection: (@Sendable (FlowTarget) -> NetworkError?)?
    /// Whom to trust when a flow with TLS is opened; set it before the first one.
    public var tls: TLSClientContext?

    let loop: EventLoop
    let limits: SIPLimits
    let partialMessageTimeout: Duration
    let handlers: Handlers
    /// One socket for each family of addresses, by whether that is IPv6.
    var udp: [Bool: UDPSocket] = [:]
    var listeners: [SIPTransport: TCPListener] = [:]
    var streams: [SIPFlow: SIPStream] = [:]
    /// The connections that carry what is too long for datagrams, by server.
    var detours: [TransportAddress: DatagramDetour] = [:]
    var nextConnection: UInt64 = 1
    var random = RandomSource.system
    /// Messages sent and received and bytes dropped, for status reports.
    public internal(set) var counters = Counters()

    /// Creates a set without sockets.
    public init(
        loop: EventLoop, limits: SIPLimits = .default,
        partialMessageTimeout: Duration = SIPTransportSet.partialMessageTimeout, handlers: Handlers
    ) {
        self.loop = loop
        self.limits = limits
        self.partialMessageTimeout = partialMessageTimeout
        self.handlers = handlers
    }

    /// Sends a message over a flow; a flow that is gone is reported by `onFlowFailed`, after this method returns.
    public func send(_ message: SIPMessage, over flow: SIPFlow) {
        loop.checkIsolated()
        let bytes: [UInt8]
        do {
            bytes = try message.encoded()
        } catch {
            // Every field that a user can set is checked before it comes here; what is left is a fault of ours.
            counters.unprintable &+= 1
            return
        }
        if flow.transport == .udp, needsDetour(message, bytes: bytes.count, to: flow.remote) {
            sendByDetour(message, insteadOf: flow)
            return
        }
        counters.sent &+= 1
        if flow.transport == .udp, let udp = udp[flow.remote.isIPv6] {
            udp.send(bytes, to: flow.remote)
        } else if let stream = streams[flow] {
            stream.connection.send(bytes)
        } else {
            let handlers = handlers
            loop.execute {
                handlers.onFlowFailed(flow, NetworkError(.closed, "the connection is closed"))
            }
        }
    }

    /// Sends a keep-alive over a flow; a flow that is gone is silent.
    public func send(_ probe: KeepAliveProbe, over flow: SIPFlow) {
        loop.checkIsolated()
        switch probe {
        case .ping:
            if flow.transport == .udp {
                udp[flow.remote.isIPv6]?.send([0x0D, 0x0A, 0x0D, 0x0A], to: flow.remote)
            } else {
                streams[flow]?.ping()
            }
        case .binding(let transaction):
            let request = STUNMessage(.request, transaction: transaction)
            udp[flow.remote.isIPv6]?.send(request.encoded(), to: flow.remote)
        }
    }

    /// Closes one stream flow without reporting it.
    public func close(_ flow: SIPFlow) {
        loop.checkIsolated()
        guard let stream = streams.removeValue(forKey: flow) else { return }
        forgetDetour(flow)
        discard(stream)
    }

    /// Closes every socket without reporting it.
    public func close() {
        loop.checkIsolated()
        udp.values.forEach { $0.close() }
        udp = [:]
        listeners.values.forEach { $0.close() }
        listeners = [:]
        detours = [:]
        let all = streams.values
        streams = [:]
        all.forEach(discard)
    }

    private func discard(_ stream: SIPStream) {
        stream.stopWatching()
        stream.connection.close()
        if let completion = stream.takeCompletion() {
            loop.execute { completion(.failure(NetworkError(.closed, "the transports were closed"))) }
        }
    }
}
