import CSys
import Glibc
import Primitives

/// Accepts connections of trusted users on a Unix stream socket that only its owner may open (mode 0600).
///
/// The directory must belong to this user (or root) and be writable by nobody else: then nobody can put another socket
/// or a symbolic link into its place. Two processes that start at the same moment are kept apart by a `FileLock` that
/// the caller takes first; the check for a stale socket alone cannot do that.
public final class UnixListener: StreamListener, @unchecked Sendable {
    /// Where the socket is.
    public let path: String
    /// Called with each new connection of a trusted user: set its handlers now. `onOpen` and then `onData` follow after
    /// this returned. `credentials` is set.
    public var onConnection: (@Sendable (UnixConnection) -> Void)?

    private let trustedUserIDs: Set<UInt32>
    private let identity: FileIdentity

    /// Creates the socket and listens. On the loop only; set `onConnection` before returning to the loop. A socket that
    /// nobody serves any more is replaced.
    ///
    /// Throws `.addressInUse` when another process serves the path, `.notPermitted` when the directory is not private or
    /// something else is in the way, `.invalidAddress` when the path is longer than 107 bytes.
    ///
    /// - Parameter trustedUserIDs: whose processes may connect; others are closed at once and counted.
    public init(
        loop: EventLoop, path: String, options: Options = Options(), trustedUserIDs: Set<UInt32> = [geteuid()]
    ) throws(NetworkError) {
        let address = try UnixAddress(path: path)
        try Self.checkDirectory(of: path)
        try Self.removeStale(path, address)
        let descriptor = try FileDescriptor(
            csys_socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), "open a Unix socket")
        // On Linux bind gives the file the socket's own mode: no moment with a wider one, and the umask, which all
        // threads share, stays as it is.
        try NetworkError.check(fchmod(descriptor.number, 0o600) == 0 ? 0 : 0 &- errno, "set the mode of \(path)")
        try NetworkError.check(
            address.withSystemAddress { Glibc.bind(descriptor.number, $0, $1) == 0 ? 0 : 0 &- errno },
            "create the socket \(path)")
        guard let identity = FileIdentity(path: path), identity.isSocket, identity.permissions & 0o177 == 0 else {
            _ = unlink(path)
            throw NetworkError(
                .notPermitted, "the file system does not keep the mode 0600 of \(path); choose another directory")
        }
        self.path = path
        self.identity = identity
        self.trustedUserIDs = trustedUserIDs
        try super.init(loop: loop, descriptor: descriptor, name: path, options: options)
    }

    /// Removes the socket's file, unless another process has put its own there.
    override func willClose() {
        onConnection = nil
        if let now = FileIdentity(path: path), now.isSameFile(as: identity) { _ = unlink(path) }
    }

    override func admit(_ socket: FileDescriptor, _ storage: sockaddr_storage) -> Admission {
        guard let peer = try? PeerCredentials(of: socket), trustedUserIDs.contains(peer.userID) else {
            return .untrusted
        }
        let connection = UnixConnection(
            loop: loop, descriptor: socket, path: path, options: options.connection, trusted: trustedUserIDs,
            timeout: nil, credentials: peer)
        return .admitted(connection) { [self] in
            if let onConnection { onConnection(connection) } else { connection.abort() }
        }
    }

    private static func checkDirectory(of path: String) throws(NetworkError) {
        let directory = parentDirectory(of: path)
        guard let found = FileIdentity(path: directory) else {
            throw NetworkError(errno: errno, "use the directory \(directory) for a socket", hint: "create it")
        }
        guard found.isDirectory else {
            throw NetworkError(
                .notPermitted, "\(directory) is not a directory (symbolic links are refused); name the real one")
        }
        guard found.owner == geteuid() || found.owner == 0 else {
            throw NetworkError(
                .notPermitted, "the directory \(directory) belongs to user \(found.owner); use one of your own")
        }
        guard found.permissions & 0o022 == 0 else {
            throw NetworkError(
                .notPermitted, "others may write to the directory \(directory); run: chmod 700 \(directory)")
        }
    }

    private static func parentDirectory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Makes way for bind: a socket that refuses connections is nobody's any more.
    private static func removeStale(_ path: String, _ address: UnixAddress) throws(NetworkError) {
        guard let found = FileIdentity(path: path) else { return }
        guard found.isSocket, found.owner == geteuid() else {
            throw NetworkError(
                .notPermitted,
                "\(path) is \(found.isSocket ? "another user's socket" : "no socket"); remove it by hand")
        }
        let probe = try FileDescriptor(csys_socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), "open a Unix socket")
        let result = address.withSystemAddress { csys_connect(probe.number, $0, $1) }
        // Anything but a refusal (a full backlog, for one) means that somebody listens.
        guard result < 0, NetworkError.errorNumber(result) == ECONNREFUSED else {
            throw NetworkError(.addressInUse, "another process serves \(path); end it first")
        }
        try NetworkError.check(unlink(path) == 0 ? 0 : 0 &- errno, "remove the stale socket \(path)")
    }
}

/// What lstat says about a path: symbolic links are not followed.
struct FileIdentity {
    let device: UInt64
    let inode: UInt64
    let owner: UInt32
    let permissions: UInt32
    private let kind: UInt32

    /// nil when there is no such file, with the reason in errno.
    init?(path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        owner = status.st_uid
        permissions = UInt32(status.st_mode) & 0o7777
        kind = UInt32(status.st_mode) & UInt32(S_IFMT)
    }

    var isSocket: Bool { kind == UInt32(S_IFSOCK) }
    var isDirectory: Bool { kind == UInt32(S_IFDIR) }

    func isSameFile(as other: FileIdentity) -> Bool { device == other.device && inode == other.inode }
}
