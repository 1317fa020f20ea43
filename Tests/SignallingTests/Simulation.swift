import Primitives
import SDP
import SIP
import STUN
import SinchEnvironment
import Testing
import Token

@testable import Signalling

/// What a network does to datagrams; streams only take its delay.
struct LinkConditions {
    var loss = 0.0
    var duplication = 0.0
    /// Each copy takes a random time out of the range, so that a wide range reorders.
    var delay: ClosedRange<Duration> = .milliseconds(5) ... .milliseconds(5)

    static let perfect = LinkConditions()
    static let bad = LinkConditions(loss: 0.2, duplication: 0.2, delay: .milliseconds(1) ... .milliseconds(300))
}

/// User agents, the real proxy core and a seeded network between them, in simulated time: the same seed, the same run.
final class Simulation {
    enum Direction {
        case toEnvironment(SimulatedDevice)
        case toDevice(SimulatedDevice)
    }

    private struct Event {
        var time: MonotonicTime
        var order: Int
        var work: () -> Void
    }

    static let realm = "sinchctl.localhost"
    static let application = "a32e5a8d-f7d8-411c-9645-9038e8dd051d"
    static let secretBytes = Array("0123456789abcdef0123456789abcdef".utf8)
    static let unixStart: Int64 = 1_700_000_000
    static let environment = TransportAddress(host: "127.0.0.1", port: 5060)

    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
    var core: EnvironmentCore
    /// Whether the environment's process runs: otherwise datagrams come back by ICMP and connections are refused.
    private(set) var isEnvironmentUp = true
    /// Whether keep-alives are answered; one that is not tells of a dead flow.
    var answersKeepAlive = true
    private(set) var devices: [SimulatedDevice] = []
    var conditions: LinkConditions
    /// Sees every message that goes into the network and says whether it is lost there.
    var loses: (SIPMessage, Direction) -> Bool = { _, _ in false }
    private(set) var messageCount = 0

    private let seed: UInt64
    private var random: RandomSource
    private var events: [Event] = []
    private var order = 0
    private var connections: UInt64 = 0
    private var lastArrival: [String: MonotonicTime] = [:]
    private let timers: SIPTimerSettings

    init(seed: UInt64 = 1, conditions: LinkConditions = .perfect) throws {
        self.seed = seed
        self.conditions = conditions
        timers = SIPTimerSettings()
        random = .seeded(seed)
        core = try Self.makeCore(seed: seed)
    }

    private static func makeCore(seed: UInt64) throws -> EnvironmentCore {
        let secret = try ApplicationSecret(bytes: secretBytes)
        return EnvironmentCore(
            configuration: EnvironmentConfiguration(
                applications: [.init(key: application, secret: secret)],
                listen: [.udp: environment, .tcp: environment]),
            random: .seeded(seed &+ 77))
    }

    var unixTime: Int64 { Self.unixStart + now.nanoseconds / 1_000_000_000 }

    // MARK: Devices

    func device(
        _ user: String, _ transport: SIPTransport = .udp, configure: (inout UserAgentConfiguration) -> Void = { _ in }
    ) -> SimulatedDevice {
        let number = devices.count + 1
        let digits = String(number)
        var configuration = UserAgentConfiguration(
            user: user, domain: Self.realm,
            instanceID: "urn:uuid:00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits)
        configure(&configuration)
        let device = SimulatedDevice(
            user: user, transport: transport,
            address: TransportAddress(host: "127.0.0.1", port: UInt16(20_000 + number * 2)),
            agent: UserAgent(configuration: configuration, random: .seeded(seed &* 1_000 &+ UInt64(number))),
            makeToken: { $0.token(for: user) })
        devices.append(device)
        return device
    }

    /// A device that is registered already, on whatever network there is.
    func registered(
        _ user: String, _ transport: SIPTransport = .udp, configure: (inout UserAgentConfiguration) -> Void = { _ in }
    ) throws -> SimulatedDevice {
        let device = device(user, transport, configure: configure)
        device.agent.start(at: now)
        drain(device)
        for _ in 0..<600 where device.agent.registrationState != .registered { run(for: .milliseconds(100)) }
        try #require(device.agent.registrationState == .registered, "\(user) could not register")
        return device
    }

    func token(for user: String, lifetime: Int64 = 3_600, age: Int64 = 0) -> String {
        (try? RegistrationToken.sign(
            applicationKey: Self.application, applicationSecret: ApplicationSecret(bytes: Self.secretBytes),
            userID: user, issuedAt: unixTime - age, lifetime: lifetime, nonce: "n-\(now.nanoseconds)")) ?? "unsigned"
    }

    // MARK: Orders

    /// Does something to a device's agent and carries out what follows.
    func act<Result>(_ device: SimulatedDevice, _ work: (inout UserAgent, MonotonicTime) -> Result) -> Result {
        let result = work(&device.agent, now)
        drain(device)
        return result
    }

    func call(
        _ device: SimulatedDevice, _ user: String, headers: [(name: String, value: String)] = []
    ) -> CallRecord {
        let target = SIPURI(user: user, host: Self.realm)
        let handle = act(device) { $0.call(target, headers: headers, media: device.media, at: $1) }
        return device.record(handle)
    }

    func answer(_ device: SimulatedDevice, _ handle: CallHandle) {
        act(device) { $0.answer(handle, media: device.media, at: $1) }
    }

    func hangUp(_ device: SimulatedDevice, _ record: CallRecord, status: Int = 603) {
        act(device) { $0.hangUp(record.handle, status: status, at: $1) }
    }

    /// The device answers what comes, after a time.
    func answers(_ device: SimulatedDevice, after delay: Duration) {
        device.onIncoming = { simulation, device, handle in
            simulation.after(delay) { simulation.answer(device, handle) }
        }
    }

    func refuses(_ device: SimulatedDevice, with status: Int) {
        device.onIncoming = { simulation, device, handle in
            simulation.after(.milliseconds(100)) {
                simulation.act(device) { $0.hangUp(handle, status: status, at: $1) }
            }
        }
    }

    // MARK: Faults

    /// The environment's process dies: its connections break.
    func stopEnvironment() {
        isEnvironmentUp = false
        for device in devices where device.connection != nil {
            device.connection = nil
            after(.milliseconds(1)) { self.act(device) { $0.flowFailed(reason: "connection reset", at: $1) } }
        }
    }

    /// A new environment without any memory takes the old one's place.
    func startEnvironment() throws {
        core = try Self.makeCore(seed: seed &+ 4_711)
        isEnvironmentUp = true
    }

    /// The device's connection breaks, and both ends notice.
    func breakConnection(of device: SimulatedDevice) {
        guard device.connection != nil else { return }
        let flow = environmentFlow(to: device)
        device.connection = nil
        core.flowFailed(flow, reason: "connection reset", at: now)
        drainCore()
        act(device) { $0.flowFailed(reason: "connection reset", at: $1) }
    }

    // MARK: Time

    func after(_ delay: Duration, _ work: @escaping () -> Void) {
        order += 1
        events.append(Event(time: now + delay, order: order, work: work))
    }

    /// Runs for a time.
    func run(for duration: Duration) {
        let end = now + duration
        var steps = 0
        while let next = nextTime, next <= end {
            steps += 1
            guard steps < 200_000 else {
                Issue.record("the simulation does not come to rest")
                return
            }
            now = max(now, next)
            let due = events.indices.filter { events[$0].time <= now }
                .min { (events[$0].time, events[$0].order) < (events[$1].time, events[$1].order) }
            if let due {
                events.remove(at: due).work()
                continue
            }
            if isEnvironmentUp, let time = core.nextTimeout, time <= now {
                core.timeout(at: now)
                drainCore()
            }
            for device in devices where device.agent.nextTimeout ?? .distantFuture <= now {
                act(device) { $0.timeout(at: $1) }
            }
        }
        now = end
    }

    /// Runs until all transactions are over and checks that nothing of any call is left.
    func expectClean(
        within limit: Duration = .seconds(34), sourceLocation: SourceLocation = #_sourceLocation
    ) {
        run(for: limit)
        for device in devices {
            // A refresh may be under way just now.
            for _ in 0..<100 where !device.isClean && device.agent.calls.isEmpty && device.agent.legs.isEmpty {
                run(for: .seconds(1))
            }
            #expect(device.isClean, "\(device.leftovers)", sourceLocation: sourceLocation)
        }
    }

    private var nextTime: MonotonicTime? {
        ([events.map(\.time).min(), isEnvironmentUp ? core.nextTimeout : nil] + devices.map(\.agent.nextTimeout))
            .compactMap(\.self).min()
    }

    // MARK: Network

    private func deviceFlow(of device: SimulatedDevice) -> SIPFlow {
        SIPFlow(transport: device.transport, remote: Self.environment, connection: device.connection ?? 0)
    }

    func environmentFlow(to device: SimulatedDevice) -> SIPFlow {
        SIPFlow(transport: device.transport, remote: localAddress(of: device), connection: device.connection ?? 0)
    }

    /// Each connection has a port of its own, as the system gives it.
    private func localAddress(of device: SimulatedDevice) -> TransportAddress {
        guard let connection = device.connection else { return device.address }
        return TransportAddress(host: device.address.host, port: 40_000 &+ UInt16(truncatingIfNeeded: connection))
    }

    private func drain(_ device: SimulatedDevice) {
        while let action = device.agent.nextAction() {
            switch action {
            case .transmit(let message, let flow):
                device.sent.append(message)
                send(message, over: flow, from: device)
            case .openFlow: open(device)
            case .openStream:
                after(.milliseconds(5)) { self.act(device) { $0.flowNotOpened(reason: "datagrams only", at: $1) } }
            case .keepAlive(let probe, let flow): send(probe, over: flow, from: device)
            case .closeFlow(let flow):
                guard flow == deviceFlow(of: device), device.connection != nil else { continue }
                let lost = environmentFlow(to: device)
                device.connection = nil
                after(.milliseconds(5)) {
                    self.core.flowFailed(lost, reason: "closed", at: self.now)
                    self.drainCore()
                }
            case .needsCredentials:
                device.tokenRequests += 1
                if let token = device.makeToken(self) {
                    after(.milliseconds(20)) {
                        self.act(device) { $0.credentialsChanged([.bearer(token: token)], at: $1) }
                    }
                }
            case .registration(let event): note(event, of: device)
            case .call(let handle, let event):
                device.record(handle).note(event, at: now)
                if case .incoming = event { device.onIncoming(self, device, handle) }
            }
        }
    }

    private func note(_ event: RegistrationEvent, of device: SimulatedDevice) {
        device.registrations.append(event)
        switch event {
        case .registered(_, let isRefresh): device.registrationLog.append(isRefresh ? "refreshed" : "registered")
        case .failed(let failure, _): device.registrationLog.append("failed \(failure.status ?? 0)")
        case .unregistered: device.registrationLog.append("unregistered")
        }
    }

    private func open(_ device: SimulatedDevice) {
        after(.milliseconds(5)) {
            guard self.isEnvironmentUp || device.transport == .udp else {
                self.act(device) { $0.flowNotOpened(reason: "connection refused", at: $1) }
                return
            }
            if device.transport.isReliable {
                self.connections += 1
                device.connection = self.connections
            }
            let path = RegisteredFlow(flow: self.deviceFlow(of: device), local: self.localAddress(of: device))
            self.act(device) { $0.flowOpened(path, at: $1) }
        }
    }

    private func drainCore() {
        while let action = core.nextAction() {
            guard case .send(let message, let flow) = action else { continue }
            guard let device = devices.first(where: { environmentFlow(to: $0) == flow }) else { continue }
            transmit(message, .toDevice(device)) { copy in
                guard self.environmentFlow(to: device) == flow else { return }
                let source = self.deviceFlow(of: device)
                self.act(device) { $0.receive(copy, from: source, at: $1) }
            }
        }
    }

    /// The transports answer keep-alives, the proxy core never sees them.
    private func send(_ probe: KeepAliveProbe, over flow: SIPFlow, from device: SimulatedDevice) {
        device.probes.append(probe)
        guard isEnvironmentUp, answersKeepAlive, flow == deviceFlow(of: device) else { return }
        after(.milliseconds(10)) {
            guard flow == self.deviceFlow(of: device) else { return }
            let answer: KeepAliveAnswer
            switch probe {
            case .ping where device.transport == .udp: return
            case .ping: answer = .pong
            case .binding(let transaction):
                answer = .binding(transaction, STUNAddress(bytes: [127, 0, 0, 1], port: device.mappedPort))
            }
            self.act(device) { $0.receiveKeepAlive(answer, from: flow, at: $1) }
        }
    }

    private func send(_ message: SIPMessage, over flow: SIPFlow, from device: SimulatedDevice) {
        guard flow == deviceFlow(of: device) else {
            Issue.record("\(device.user) sends over a flow that is gone: \(flow)")
            return
        }
        let source = environmentFlow(to: device)
        transmit(message, .toEnvironment(device)) { copy in
            guard self.environmentFlow(to: device) == source else { return }
            guard self.isEnvironmentUp else {
                // What was sent over a connection is lost with it.
                if !flow.transport.isReliable {
                    self.after(.milliseconds(1)) {
                        self.act(device) { $0.flowFailed(reason: "connection refused (ICMP)", at: $1) }
                    }
                }
                return
            }
            self.core.receive(copy, from: source, at: self.now, unixTime: self.unixTime)
            self.drainCore()
        }
    }

    /// Prints a message, sends it through the network and hands over what was parsed at the other end.
    private func transmit(_ message: SIPMessage, _ direction: Direction, _ deliver: @escaping (SIPMessage) -> Void) {
        messageCount += 1
        let (device, way): (SimulatedDevice, String) =
            switch direction {
            case .toEnvironment(let device): (device, "up")
            case .toDevice(let device): (device, "down")
            }
        guard let bytes = try? message.encoded(), let copy = try? SIPMessage.parse(bytes) else {
            Issue.record("a message that cannot be printed and read: \(message.startLine)")
            return
        }
        let isReliable = device.transport.isReliable
        let isLost = loses(copy, direction) || (!isReliable && random.unitInterval() < conditions.loss)
        guard !isLost else { return }
        let copies = !isReliable && random.unitInterval() < conditions.duplication ? 2 : 1
        for _ in 0..<copies {
            let spread = conditions.delay.upperBound - conditions.delay.lowerBound
            var arrival = now + conditions.delay.lowerBound + spread * random.unitInterval()
            if isReliable {
                let key = "\(device.address) \(device.connection ?? 0) \(way)"
                arrival = max(arrival, lastArrival[key] ?? .zero)
                lastArrival[key] = arrival
            }
            after(arrival - now) { deliver(copy) }
        }
    }
}
