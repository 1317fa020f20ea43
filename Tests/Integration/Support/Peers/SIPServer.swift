import Configuration
import Glibc

/// A SIP server of the tests, as phones and our clients need to know it.
protocol SIPServer: Sendable {
    /// Where it listens.
    var host: String { get }
    /// The domain of its users.
    var domain: String { get }
    /// The port of `udp`, `tcp`, `tls`, `ws` or `wss`.
    func port(_ transport: String) -> UInt16
    /// The digest password of a phone's user.
    func password(of user: String) -> String
    /// The configuration file of a client of ours that reaches it over this transport.
    func configuration(transport: String) -> String
}

/// A TCP port of loopback that nobody had a moment ago.
func freePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw TestFailure("no socket") }
    defer { close(descriptor) }
    var address = loopback(port: 0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
        }
    }
    guard isBound else { throw TestFailure("no free port") }
    return UInt16(bigEndian: address.sin_port)
}

/// Connects to a port of loopback that a program is about to open.
func connectToLoopback(_ port: UInt16, within limit: Duration) throws -> Int32 {
    let end = ContinuousClock.now + limit
    while ContinuousClock.now < end {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = loopback(port: port)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        if isConnected { return descriptor }
        close(descriptor)
        // Nothing tells when another program listens.
        usleep(20_000)
    }
    throw TestFailure("nobody listens on port \(port)")
}

private func loopback(port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    return address
}
