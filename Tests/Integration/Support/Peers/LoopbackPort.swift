import Glibc
import Synchronization

/// Ports that `freePort` has given away.
private let portsGiven = Mutex<Set<UInt16>>([])

/// A port of loopback that nobody had a moment ago, neither by TCP nor by UDP, and that the system gives to no connection:
/// those of the ephemeral range may be taken before the program that is to have them has started.
func freePort() throws -> UInt16 {
    for _ in 0..<100 {
        let port = UInt16.random(in: 10_000..<20_000)
        guard portsGiven.withLock({ $0.insert(port).inserted }) else { continue }
        if isFree(port, SOCK_STREAM), isFree(port, SOCK_DGRAM) { return port }
    }
    throw TestFailure("no free port")
}

private func isFree(_ port: UInt16, _ type: __socket_type) -> Bool {
    let descriptor = socket(AF_INET, Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var address = loopback(port: port)
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
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
