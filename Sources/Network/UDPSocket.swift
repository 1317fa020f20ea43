import CSys
import Glibc
import Primitives

/// A bound UDP socket on an event loop, for signalling. Everything about it happens on the loop's thread.
///
/// ICMP errors arrive at once and with the address of the peer that they are about (IP_RECVERR), so a request to a port
/// where nobody listens fails in a round trip and not after the transaction's time-out.
public final class UDPSocket: @unchecked Sendable {
    /// How to open the socket.
    public struct Options: Sendable {
        /// SO_REUSEADDR and SO_REUSEPORT: several sockets share the port.
        public var sharesPort = false
        /// A longer datagram is dropped and counted.
        public var maximumDatagramBytes = 65_535
        /// How much may wait to be sent, in datagrams; what does not fit is dropped and counted.
        public var sendQueueLimit = 256
        /// IP_TOS or the IPv6 traffic class; nil leaves the system's default. CS3, RFC 4594's class for signalling, is
        /// 0x60.
        public var trafficClass: Int32?
        /// SO_RCVBUF in bytes; nil leaves the system's default.
        public var receiveBufferBytes: Int32?

        /// The defaults.
        public init() {}
    }

    /// What happened so far.
    public struct Statistics: Sendable, Equatable {
        /// Datagrams handed to `onDatagram`.
        public var received: UInt64 = 0
        /// Datagrams given to the system.
        public var sent: UInt64 = 0
        /// Datagrams dropped on receipt because they were longer than allowed.
        public var truncated: UInt64 = 0
        /// Datagrams not sent because the queue here or one of the system's was full.
        public var dropped: UInt64 = 0
        /// ICMP errors reported to `onError`.
        public var errors: UInt64 = 0
    }

    /// The address that the socket is bound to, read back from the system.
    public let localAddress: TransportAddress
    /// Called for each datagram, with its sender.
    public var onDatagram: (@Sendable ([UInt8], TransportAddress) -> Void)?
    /// Called when a datagram could not be delivered: `.connectionRefused` or `.unreachable` with the peer that the
    /// ICMP message names, or another error. The socket stays usable. ICMP messages can be forged by whoever guesses
    /// the ports, so a caller may try the next address but should not take it as proof.
    public var onError: (@Sendable (NetworkError, TransportAddress?) -> Void)?
    /// What happened so far.
    public private(set) var statistics = Statistics()
    /// Whether `close` was called.
    public private(set) var isClosed = false

    private let loop: EventLoop
    private let descriptor: FileDescriptor
    private let family: SocketAddress.Family
    private let options: Options
    private var watch: WatchHandle?
    private var stopHook: UInt64?
    private var queue: [(bytes: [UInt8], target: SocketAddress)] = []

    /// At most so many datagrams a wake-up, then others have their turn.
    private static let batch = 32

    /// Opens and binds a socket. On the loop only.
    ///
    /// Throws `.addressInUse`, `.notPermitted` (a privileged port) or `.invalidAddress`.
    public init(loop: EventLoop, bind address: TransportAddress, options: Options = Options()) throws(NetworkError) {
        loop.checkIsolated()
        let local = try SocketAddress(address)
        let isIPv6 = local.family == .ipv6
        let descriptor = try FileDescriptor(
            csys_socket(local.systemFamily, Int32(SOCK_DGRAM.rawValue), 0), "open a UDP socket")
        if isIPv6 {
            // Otherwise IPv4 peers would appear as ::ffff:a.b.c.d and compare unequal to themselves.
            try NetworkError.check(
                csys_set_int_option(descriptor.number, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1), "set IPV6_V6ONLY")
        }
        if options.sharesPort {
            for option in [SO_REUSEADDR, SO_REUSEPORT] {
                try NetworkError.check(
                    csys_set_int_option(descriptor.number, SOL_SOCKET, option, 1), "share the port \(address)")
            }
        }
        try NetworkError.check(
            csys_enable_error_queue(descriptor.number, isIPv6 ? 1 : 0), "ask for ICMP errors")
        // Both are wishes; the socket works without.
        if let trafficClass = options.trafficClass {
            _ = csys_set_traffic_class(descriptor.number, isIPv6 ? 1 : 0, trafficClass)
        }
        if let bytes = options.receiveBufferBytes {
            _ = csys_set_int_option(descriptor.number, SOL_SOCKET, SO_RCVBUF, bytes)
        }
        try NetworkError.check(
            local.withSystemAddress { Glibc.bind(descriptor.number, $0, $1) == 0 ? 0 : 0 &- errno },
            "bind UDP \(address)", hint: "choose another address or port")
        self.loop = loop
        self.descriptor = descriptor
        self.options = options
        family = local.family
        localAddress = try descriptor.localSocketAddress().transportAddress
        watch = try loop.watch(fd: descriptor.number, events: .read) { [self] in handle($0) }
        stopHook = loop.addStopHook { [self] in close() }
    }

    /// Sends a datagram. On the loop only.
    ///
    /// Never blocks and never throws: what the system does not take now is queued up to a limit; errors go to `onError`,
    /// never from within this call.
    public func send(_ bytes: [UInt8], to address: TransportAddress) {
        loop.checkIsolated()
        let target: SocketAddress
        do {
            target = try SocketAddress(address)
        } catch {
            report(error, address)
            return
        }
        send(bytes, to: target)
    }

    /// Sends a datagram to an address that is parsed already. On the loop only.
    public func send(_ bytes: [UInt8], to target: SocketAddress) {
        loop.checkIsolated()
        guard !isClosed else { return }
        guard target.family == family else {
            report(
                NetworkError(
                    .invalidAddress,
                    "cannot send to \(target): the socket at \(localAddress) is of the other address family"),
                target.transportAddress)
            return
        }
        guard queue.isEmpty else { return enqueue(bytes, target) }
        if !transmit(bytes, target) {
            enqueue(bytes, target)
            watch?.update(events: [.read, .write])
        }
    }

    /// Closes the socket and lets go of the handlers. On the loop only; a second call does nothing.
    public func close() {
        loop.checkIsolated()
        guard !isClosed else { return }
        isClosed = true
        watch?.cancel()
        watch = nil
        if let stopHook { loop.removeStopHook(stopHook) }
        descriptor.close()
        queue = []
        onDatagram = nil
        onError = nil
    }

    private func enqueue(_ bytes: [UInt8], _ target: SocketAddress) {
        if queue.count < options.sendQueueLimit {
            queue.append((bytes, target))
        } else {
            statistics.dropped &+= 1
        }
    }

    /// False when the system's buffer is full.
    private func transmit(_ bytes: [UInt8], _ target: SocketAddress) -> Bool {
        // An ICMP error about an earlier datagram makes the next call fail once, in this one's stead: try again.
        for _ in 0..<4 {
            let result = bytes.withUnsafeBytes { buffer in
                target.withSystemAddress {
                    csys_sendto(descriptor.number, buffer.baseAddress, buffer.count, $0, $1)
                }
            }
            if result >= 0 {
                statistics.sent &+= 1
                return true
            }
            let number = NetworkError.errorNumber(result)
            switch number {
            case EAGAIN:
                return false
            case ENOBUFS:
                // A queue on the way to the wire dropped it, which the system tells those who ask for errors.
                statistics.dropped &+= 1
                return true
            case EINTR:
                continue
            case ECONNREFUSED, EHOSTUNREACH, ENETUNREACH:
                // Ours only if the queue does not say whose it is.
                if readErrorQueue(later: true) > 0 { continue }
                report(NetworkError(errno: number, "send to \(target)"), target.transportAddress)
                return true
            default:
                report(NetworkError(errno: number, "send to \(target)"), target.transportAddress)
                return true
            }
        }
        statistics.dropped &+= 1
        return true
    }

    private func handle(_ events: IOEvents) {
        // Each handler may close the socket.
        if events.contains(.error) { readErrorQueue(later: false) }
        if events.contains(.read), !isClosed { receive() }
        if events.contains(.write), !isClosed { flush() }
    }

    private func flush() {
        var done = 0
        while done < queue.count, transmit(queue[done].bytes, queue[done].target) { done += 1 }
        queue.removeFirst(done)
        if queue.isEmpty { watch?.update(events: .read) }
    }

    private func receive() {
        var storage = sockaddr_storage()
        var length = socklen_t(0)
        var truncated: Int32 = 0
        let room = min(max(options.maximumDatagramBytes, 1), loop.scratch.count)
        for _ in 0..<Self.batch {
            let count = csys_recvfrom(
                descriptor.number, loop.scratch.baseAddress, room, &storage, &length, &truncated)
            if count < 0 {
                // A pending ICMP error fails one receive too; it stands in the error queue, which is read on its own.
                if NetworkError.errorNumber(count) == EAGAIN { return }
                continue
            }
            if truncated != 0 {
                statistics.truncated &+= 1
                continue
            }
            guard let peer = SocketAddress(storage) else { continue }
            statistics.received &+= 1
            onDatagram?([UInt8](UnsafeRawBufferPointer(rebasing: loop.scratch[..<count])), peer.transportAddress)
            if isClosed { return }
        }
    }

    /// Reports what is in the queue: at once, or after the current call (a caller's `send`) returned.
    @discardableResult
    private func readErrorQueue(later: Bool) -> Int {
        var found = 0
        var queued = csys_queued_error()
        while !isClosed, found < Self.batch, csys_read_error_queue(descriptor.number, &queued) == 1 {
            found += 1
            // A router's "fragmentation needed" is no failure: the system lowers the path MTU and fragments.
            guard queued.error != 0, queued.error != EMSGSIZE else { continue }
            let peer = SocketAddress(queued.peer)?.transportAddress
            let from = queued.origin == CSYS_ORIGIN_LOCAL ? "" : " (ICMP)"
            let error = NetworkError(errno: queued.error, "reach \(peer?.description ?? "the peer") over UDP\(from)")
            if later { report(error, peer) } else { deliver(error, peer) }
        }
        return found
    }

    private func report(_ error: NetworkError, _ peer: TransportAddress?) {
        loop.execute { [self] in deliver(error, peer) }
    }

    private func deliver(_ error: NetworkError, _ peer: TransportAddress?) {
        guard !isClosed else { return }
        statistics.errors &+= 1
        onError?(error, peer)
    }
}
