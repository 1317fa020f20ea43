import Configuration
import FoundationEssentials
import Glibc
import Network
import Primitives
import SIP
import Signalling
import SinchRTC
import Synchronization
import Token

/// The embedded environment as a running server: sockets around `EnvironmentCore`, and the users that it brings.
///
/// An actor on the signalling loop of this process. It listens for SIP on UDP and TCP at one port.
public actor EnvironmentServer {
    /// How a server is set up.
    public struct Options: Sendable {
        /// The numeric address to listen on; anything but loopback is somebody's decision.
        public var host = "127.0.0.1"
        /// The port; 0 takes the one of the last run where it is free, else any.
        public var port: UInt16 = 0
        /// The port of the last run.
        public var preferredPort: UInt16 = 0
        /// The domain of the users.
        public var realm = "sinchctl.localhost"
        /// With a certificate there is TLS, WebSocket and secure WebSocket beside UDP and TCP, each at a free port.
        public var certificate: TLSServerContext?
        /// The applications whose tokens are accepted; each has the service users.
        public var applications: [EnvironmentConfiguration.Application] = []
        /// What `announcement` plays; nil: nobody of that name is there.
        public var announcementPath: String?
        /// Gets a line for each thing worth a log.
        public var log: @Sendable (EnvironmentEvent) -> Void = { _ in }

        /// The documented defaults.
        public init() {}
    }

    private let options: Options
    private let loop: EventLoop
    private var core: EnvironmentCore?
    private var transports: SIPTransportSet?
    private var throttle = EventThrottle()
    private var timer: TimerHandle?
    private var timerDeadline: MonotonicTime?
    private var services: [ServiceUser] = []
    private var signalWatcher: SignalWatcher?
    /// The address that is listened on; nil before `start`.
    public private(set) var address: TransportAddress?
    /// Where each transport is listened for; empty before `start`.
    public private(set) var addresses: [SIPTransport: TransportAddress] = [:]

    /// The signalling loop of this process.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Creates a server that does nothing until `start`.
    public init(options: Options) throws(NetworkError) {
        self.options = options
        loop = try signallingLoop.get()
    }

    /// Binds the sockets and brings the service users up.
    ///
    /// - Returns: the address that was got.
    public func start() async throws(NetworkError) -> TransportAddress {
        let transports = SIPTransportSet(
            loop: loop,
            handlers: SIPTransportSet.Handlers(
                onMessage: { [weak self] message, flow in
                    self?.assumeIsolated { $0.receive(message, from: flow) }
                },
                onMalformed: { [weak self] bytes, error, flow in
                    self?.assumeIsolated { $0.receiveMalformed(bytes, error, from: flow) }
                },
                onFlowFailed: { [weak self] flow, error in
                    self?.assumeIsolated { $0.flowFailed(flow, error) }
                }))
        let bound = try bind(transports)
        addresses = [.udp: bound, .tcp: bound]
        if let certificate = options.certificate {
            for transport in [SIPTransport.tls, .ws, .wss] {
                addresses[transport] = try transports.listen(
                    transport, TransportAddress(host: options.host, port: 0), certificate: certificate)
            }
        }
        var configuration = EnvironmentConfiguration(applications: options.applications, listen: addresses)
        configuration.realm = options.realm
        core = EnvironmentCore(configuration: configuration)
        self.transports = transports
        address = bound
        await startServices(at: bound)
        return bound
    }

    /// Ends the service users and closes the sockets.
    public func stop() async {
        for service in services { await service.stop() }
        services = []
        timer?.cancel()
        transports?.close()
        transports = nil
        core = nil
    }

    /// Devices registered now.
    public var registrations: Int { core?.registrationCount ?? 0 }

    // MARK: Sockets

    /// UDP and TCP at the same port: a few tries where the system picks it.
    private func bind(_ transports: SIPTransportSet) throws(NetworkError) -> TransportAddress {
        let wanted = options.port != 0 ? [options.port] : [options.preferredPort, 0, 0, 0, 0]
        var lastError = NetworkError(.addressInUse, "no port is free on \(options.host)")
        for port in wanted where port != 0 || options.port == 0 {
            do {
                let udp = try transports.bindUDP(TransportAddress(host: options.host, port: port))
                _ = try transports.listenTCP(udp)
                return udp
            } catch {
                lastError = error
                transports.close()
            }
        }
        throw lastError
    }

    private func receive(_ message: SIPMessage, from flow: SIPFlow) {
        core?.receive(message, from: flow, at: loop.now, unixTime: Self.unixTime())
        drain()
    }

    private func receiveMalformed(_ bytes: [UInt8], _ error: SIPParseError, from flow: SIPFlow) {
        core?.receiveMalformed(bytes, error: error, from: flow, at: loop.now)
        drain()
    }

    private func flowFailed(_ flow: SIPFlow, _ error: NetworkError) {
        core?.flowFailed(flow, reason: error.message, at: loop.now)
        drain()
    }

    private func drain() {
        while let action = core?.nextAction() {
            switch action {
            case .send(let message, let flow): transports?.send(message, over: flow)
            case .log(let event): throttle.pass(event, at: loop.now).forEach(options.log)
            }
        }
        let next = core?.nextTimeout
        guard next != timerDeadline else { return }
        timer?.cancel()
        timer = nil
        timerDeadline = next
        guard let next else { return }
        timer = loop.schedule(at: next) { [weak self] in
            self?.assumeIsolated { server in
                server.timerDeadline = nil
                server.core?.timeout(at: server.loop.now)
                server.drain()
            }
        }
    }

    private static func unixTime() -> Int64 {
        Int64(Date().timeIntervalSince1970)
    }

    // MARK: Service users

    private func startServices(at address: TransportAddress) async {
        var users = [ServiceUser.Behaviour.echo]
        if let path = options.announcementPath { users.append(.announcement(path: path)) }
        // Each application is a name space of its own, and each has these users.
        for application in options.applications {
            for behaviour in users {
                let service = ServiceUser(
                    behaviour: behaviour, application: application, realm: options.realm, address: address)
                services.append(service)
                await service.start()
            }
        }
    }
}

extension EnvironmentServer {
    /// Waits for SIGINT or SIGTERM, which must be blocked in all threads.
    public func awaitSignal() async -> ExitCode {
        await withCheckedContinuation { continuation in
            let once = Mutex<CheckedContinuation<ExitCode, Never>?>(continuation)
            signalWatcher = try? SignalWatcher(loop: loop, signals: [SIGINT, SIGTERM, SIGHUP]) { signal in
                let waiting = once.withLock { waiting in
                    defer { waiting = nil }
                    return waiting
                }
                // The second signal ends at once.
                guard let waiting else { _exit(signal == SIGINT ? 130 : 143) }
                waiting.resume(returning: .ok)
            }
        }
    }
}
