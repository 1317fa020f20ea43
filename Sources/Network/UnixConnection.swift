import CSys
import Glibc
import Primitives

/// The process at the other end of a Unix socket, as the kernel vouches for it.
public struct PeerCredentials: Sendable, Hashable {
    /// The process that connected (or, seen from a client, that listened).
    public var processID: Int32
    /// Its effective user.
    public var userID: UInt32
    /// Its effective group.
    public var groupID: UInt32

    init(of descriptor: FileDescriptor) throws(NetworkError) {
        var (pid, uid, gid) = (pid_t(), uid_t(), gid_t())
        try NetworkError.check(
            csys_peer_credentials(descriptor.number, &pid, &uid, &gid), "read the peer's credentials")
        (processID, userID, groupID) = (pid, uid, gid)
    }
}

/// One connection over a Unix stream socket on an event loop.
public final class UnixConnection: StreamConnection, @unchecked Sendable {
    /// The peer; nil before the connection is open.
    public private(set) var credentials: PeerCredentials?

    private let trustedUserIDs: Set<UInt32>

    /// Starts connecting. On the loop only. Returns at once; set the handlers then: `onOpen` or `onClose` follows.
    ///
    /// - Parameters:
    ///   - timeout: how long connecting may take.
    ///   - trustedUserIDs: whose server may be at the path; another's gets no byte, and the error is `.notPermitted`.
    public static func connect(
        loop: EventLoop, path: String, timeout: Duration = .seconds(5), options: Options = Options(),
        trustedUserIDs: Set<UInt32> = [geteuid()]
    ) -> UnixConnection {
        let connection: UnixConnection
        do {
            let address = try UnixAddress(path: path)
            let descriptor = try FileDescriptor(
                csys_socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), "open a Unix socket")
            connection = UnixConnection(
                loop: loop, descriptor: descriptor, path: path, options: options, trusted: trustedUserIDs,
                timeout: timeout)
            connection.beginConnecting(address.withSystemAddress { csys_connect(descriptor.number, $0, $1) })
        } catch {
            connection = UnixConnection(
                loop: loop, descriptor: FileDescriptor(owning: -1), path: path, options: options,
                trusted: trustedUserIDs, timeout: nil)
            connection.finish(error)
        }
        return connection
    }

    /// Takes a socket over; from a listener, which has checked the peer, with its credentials.
    init(
        loop: EventLoop, descriptor: FileDescriptor, path: String, options: Options, trusted: Set<UInt32>,
        timeout: Duration?, credentials: PeerCredentials? = nil
    ) {
        self.credentials = credentials
        trustedUserIDs = trusted
        super.init(
            loop: loop, descriptor: descriptor, peerName: path, remoteAddress: nil, options: options,
            connectTimeout: timeout)
    }

    override func verifyPeer() throws(NetworkError) {
        let peer = try PeerCredentials(of: descriptor)
        credentials = peer
        guard trustedUserIDs.contains(peer.userID) else {
            throw NetworkError(
                .notPermitted,
                "refused the peer at \(peerName): it runs as user \(peer.userID); check who made the socket")
        }
    }
}
