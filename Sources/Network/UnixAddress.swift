import Glibc

/// A path as the address of a Unix socket.
struct UnixAddress {
    let path: String

    /// sun_path holds 108 bytes, with the final NUL.
    static let longestPath = 107

    /// Throws `.invalidAddress` for paths that do not fit.
    init(path: String) throws(NetworkError) {
        let length = path.utf8.count
        guard length > 0, !path.utf8.contains(0) else {
            throw NetworkError(.invalidAddress, "the socket's path is empty or contains a NUL byte")
        }
        guard length <= Self.longestPath else {
            throw NetworkError(
                .invalidAddress,
                "the socket's path is \(length) bytes long and may be \(Self.longestPath): \(path); "
                    + "choose a shorter runtime directory (XDG_RUNTIME_DIR)")
        }
        self.path = path
    }

    func withSystemAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result) rethrows -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return try withUnsafePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
