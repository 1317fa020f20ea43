import CSys
import Glibc
import Primitives

/// One TCP connection on an event loop. TCP_NODELAY and keep-alive are on.
public final class TCPConnection: StreamConnection, @unchecked Sendable {
    /// Starts connecting. On the loop only. Returns at once; set the handlers then: `onOpen` or `onClose` follows, also
    /// when the address is not valid.
    ///
    /// - Parameters:
    ///   - address: numeric; names are DNSClient's work.
    ///   - timeout: how long connecting may take.
    ///   - source: the local address to connect from; nil leaves it to the system.
    public static func connect(
        loop: EventLoop, to address: TransportAddress, timeout: Duration = .seconds(10),
        from source: TransportAddress? = nil, options: Options = Options()
    ) -> TCPConnection {
        let connection: TCPConnection
        do {
            let target = try SocketAddress(address)
            let descriptor = try FileDescriptor(
                csys_socket(target.systemFamily, Int32(SOCK_STREAM.rawValue), 0), "open a TCP socket")
            connection = TCPConnection(
                loop: loop, descriptor: descriptor, peerName: address.description, remoteAddress: address,
                options: options, connectTimeout: timeout)
            connection.tune(options)
            if let source {
                let local = try SocketAddress(source)
                try NetworkError.check(
                    local.withSystemAddress { Glibc.bind(descriptor.number, $0, $1) == 0 ? 0 : 0 &- errno },
                    "connect from \(source)")
            }
            connection.beginConnecting(target.withSystemAddress { csys_connect(descriptor.number, $0, $1) })
        } catch {
            let failed = TCPConnection(
                loop: loop, descriptor: FileDescriptor(owning: -1), peerName: address.description,
                remoteAddress: address, options: options, connectTimeout: nil)
            failed.finish(error)
            return failed
        }
        return connection
    }

    /// Takes over a socket that a listener accepted.
    convenience init(
        loop: EventLoop, accepted descriptor: FileDescriptor, remote: TransportAddress, options: Options
    ) {
        self.init(
            loop: loop, descriptor: descriptor, peerName: remote.description, remoteAddress: remote, options: options,
            connectTimeout: nil)
        tune(options)
    }

    override func resetOnClose() {
        _ = csys_set_abortive_close(descriptor.number)
    }

    private func tune(_ options: Options) {
        // Wishes: a connection without them still works.
        let limit = Int32(clamping: options.unacknowledgedLimit.wholeNanoseconds / 1_000_000)
        _ = csys_tcp_tune(descriptor.number, options.keepAliveIdleSeconds, 10, 3, limit)
    }
}
