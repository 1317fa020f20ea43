import CSys
import Glibc
import Primitives

/// Accepts TCP connections on an event loop.
public final class TCPListener: StreamListener, @unchecked Sendable {
    /// The address that the socket is bound to, read back from the system.
    public let localAddress: TransportAddress
    /// Called with each new connection: set its handlers now. `onOpen` and then `onData` follow after this returned.
    public var onConnection: (@Sendable (TCPConnection) -> Void)?

    private var hosts: [String: Int] = [:]

    /// Binds and listens. On the loop only; set `onConnection` before returning to the loop.
    ///
    /// Throws `.addressInUse`, `.notPermitted` (a privileged port) or `.invalidAddress`.
    public init(
        loop: EventLoop, bind address: TransportAddress, options: Options = Options()
    ) throws(NetworkError) {
        let local = try SocketAddress(address)
        let descriptor = try FileDescriptor(
            csys_socket(local.systemFamily, Int32(SOCK_STREAM.rawValue), 0), "open a TCP socket")
        // A restarted server must not wait for its predecessor's connections to leave TIME_WAIT.
        try NetworkError.check(
            csys_set_int_option(descriptor.number, SOL_SOCKET, SO_REUSEADDR, 1), "set SO_REUSEADDR")
        if local.family == .ipv6 {
            try NetworkError.check(
                csys_set_int_option(descriptor.number, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1), "set IPV6_V6ONLY")
        }
        try NetworkError.check(
            local.withSystemAddress { Glibc.bind(descriptor.number, $0, $1) == 0 ? 0 : 0 &- errno },
            "bind TCP \(address)", hint: "choose another address or port")
        localAddress = try descriptor.localSocketAddress().transportAddress
        try super.init(loop: loop, descriptor: descriptor, name: "TCP \(address)", options: options)
    }

    override func willClose() {
        onConnection = nil
    }

    override func admit(_ socket: FileDescriptor, _ storage: sockaddr_storage) -> Admission {
        guard let remote = SocketAddress(storage)?.transportAddress,
            hosts[remote.host, default: 0] < options.maximumConnectionsPerHost
        else { return .overLimit }
        hosts[remote.host, default: 0] += 1
        let connection = TCPConnection(loop: loop, accepted: socket, remote: remote, options: options.connection)
        return .admitted(connection) { [self] in announce(connection) }
    }

    private func announce(_ connection: TCPConnection) {
        if let onConnection { onConnection(connection) } else { connection.abort() }
    }

    override func released(_ connection: StreamConnection) {
        guard let host = connection.remoteAddress?.host, let count = hosts[host] else { return }
        hosts[host] = count > 1 ? count - 1 : nil
    }
}
