import CSys
import Glibc

/// Owns a file descriptor and closes it exactly once: with `close()`, or when the last reference goes.
final class FileDescriptor: @unchecked Sendable {
    /// The descriptor, -1 once closed.
    private(set) var number: Int32

    /// Takes over a result of the C layer: a descriptor, or -errno, which is thrown.
    init(_ result: Int32, _ action: @autoclosure () -> String, hint: String? = nil) throws(NetworkError) {
        number = try NetworkError.check(result, action(), hint: hint)
    }

    /// Takes over an open descriptor.
    init(owning number: Int32) {
        self.number = number
    }

    deinit {
        close()
    }

    /// Closes the descriptor; a second call does nothing.
    func close() {
        guard number >= 0 else { return }
        // On Linux the descriptor is gone even when close reports an error; repeating it could close another's.
        _ = Glibc.close(number)
        number = -1
    }

    /// The descriptor, now the caller's to close.
    func release() -> Int32 {
        defer { number = -1 }
        return number
    }

    /// The socket's own address.
    func localSocketAddress() throws(NetworkError) -> SocketAddress {
        try socketAddress("read the socket's own address", getsockname)
    }

    /// The connected peer's address.
    func remoteSocketAddress() throws(NetworkError) -> SocketAddress {
        try socketAddress("read the peer's address", getpeername)
    }

    private func socketAddress(
        _ action: String, _ call: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) throws(NetworkError) -> SocketAddress {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let failure = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call(number, $0, &length) < 0 ? errno : 0 }
        }
        guard failure == 0 else { throw NetworkError(errno: failure, action) }
        guard let address = SocketAddress(storage) else {
            throw NetworkError(.invalidAddress, "cannot \(action): it is neither IPv4 nor IPv6")
        }
        return address
    }
}
