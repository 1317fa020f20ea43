import Glibc
import NameServerSupport
import Network
import Primitives
import SIP
import Synchronization
import TestCertificates
import Testing

@testable import Signalling

/// A connector with its name server and the listeners that it may find, on one loop.
final class Connecting: Sendable {
    /// Longer than any busy machine makes a test wait.
    static let nameServerTimeout: Duration = .seconds(30)

    let loop: EventLoop
    let nameServer: NameServer
    private let connector: FlowConnector
    private let transports: SIPTransportSet
    private let listeners = Mutex<[TCPListener]>([])

    /// On the loop.
    init(_ loop: EventLoop) throws {
        self.loop = loop
        nameServer = try NameServer(loop)
        var options = DNSClient.Options()
        options.servers = [nameServer.address]
        options.hostsFile = "/dev/null"
        options.tryTimeout = Self.nameServerTimeout
        options.timeLimit = Self.nameServerTimeout
        let transports = SIPTransportSet(
            loop: loop, handlers: SIPTransportSet.Handlers(onMessage: { _, _ in }, onFlowFailed: { _, _ in }))
        let real = FlowConnector(loop: loop, transports: transports, dns: DNSClient(loop: loop, options: options))
        let opened = Log()
        connector = FlowConnector(
            loop: loop, dns: real.dns, random: .seeded(1),
            open: { target, timeout, completion in
                opened.addresses.withLock { $0.append(target.address) }
                return real.open(target, timeout, completion)
            }, close: real.close)
        self.transports = transports
        log = opened
    }

    private final class Log: Sendable {
        let addresses = Mutex<[TransportAddress]>([])
    }

    private let log: Log

    /// The addresses that were tried, in their order.
    var tried: [TransportAddress] { log.addresses.withLock { $0 } }

    func zone(_ records: [ZoneRecord]) { nameServer.set(zone: records) }

    func connect(_ target: ServerTarget) async throws -> Result<RegisteredFlow, NetworkError> {
        try await withCheckedThrowingContinuation { continuation in
            loop.execute { [connector] in
                connector.connect(to: target) { continuation.resume(returning: $0) }
            }
        }
    }

    func error(_ target: ServerTarget) async throws -> NetworkError {
        switch try await connect(target) {
        case .success(let path): throw NetworkError(.closed, "a flow was opened to \(path.flow)")
        case .failure(let error): return error
        }
    }

    /// Trusts the authority of the test servers.
    func trust() async throws {
        let context = try TLSClientContext(caFile: LoopbackIdentity.files.get().authority)
        try await loop.call { [transports] in transports.tls = context }
    }

    /// A server that accepts connections and says nothing.
    func listen(_ host: String, port: UInt16 = 0) async throws -> TransportAddress {
        try await loop.call { [self] in
            let listener = try TCPListener(loop: loop, bind: TransportAddress(host: host, port: port))
            listener.onConnection = { $0.onData = { _ in } }
            listeners.withLock { $0.append(listener) }
            return listener.localAddress
        }
    }

    /// An address where nobody listens.
    func deadPort(_ host: String) async throws -> TransportAddress {
        try await loop.call { [loop] in
            let listener = try TCPListener(loop: loop, bind: TransportAddress(host: host, port: 0))
            defer { listener.close() }
            return listener.localAddress
        }
    }

    func report(_ failure: FlowConnector.ServerFailure, _ flow: SIPFlow) async throws {
        try await loop.call { [connector] in connector.reportFailure(failure, of: flow) }
    }

    func isAvoided(_ transport: SIPTransport, _ address: TransportAddress) async throws -> Bool {
        try await loop.call { [connector, loop] in
            connector.history.avoidedUntil(transport, address, at: loop.now) != nil
        }
    }

    /// On the loop.
    func close() {
        nameServer.close()
        transports.close()
        connector.dns.close()
        listeners.withLock { $0 }.forEach { $0.close() }
    }
}

/// Runs a test with a connector and ends it whatever happens.
func withConnecting(_ body: (Connecting) async throws -> Void) async throws {
    let loop = try EventLoop(name: "test")
    defer { loop.stop() }
    let connecting = try await loop.call { try Connecting(loop) }
    try await body(connecting)
    try await loop.call { connecting.close() }
}

/// A TCP port whose queue of connections is full, so that further ones get no answer at all.
final class StuckListener: Sendable {
    let address: TransportAddress
    private let descriptors: [Int32]

    init(host: String) throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        try #require(inet_pton(AF_INET, host, &address.sin_addr) == 1)
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(listener, generic, length) == 0 && listen(listener, 0) == 0
                    && getsockname(listener, generic, &length) == 0
            }
        }
        try #require(isListening)
        var descriptors = [listener]
        for _ in 0..<3 {
            let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = Glibc.connect(filler, $0, length) }
            }
            descriptors.append(filler)
        }
        self.descriptors = descriptors
        self.address = TransportAddress(host: host, port: UInt16(bigEndian: address.sin_port))
    }

    deinit {
        for descriptor in descriptors { Glibc.close(descriptor) }
    }
}
