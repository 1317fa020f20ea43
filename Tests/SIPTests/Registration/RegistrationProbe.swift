import Primitives
import SIP

/// A registration machine in simulated time, with a scripted registrar and a readable log.
struct RegistrationProbe {
    var machine: RegistrationMachine
    var now = MonotonicTime.zero
    var log: [String] = []
    var sent: [SIPMessage] = []
    var failures: [RegistrationFailure] = []
    var retryAt: MonotonicTime?
    var challenge: Challenge?

    static func configuration() -> RegistrationConfiguration {
        var contact = SIPURI(user: "alice", host: "198.51.100.7", port: 5070)
        contact.parameters["transport"] = "tcp"
        return RegistrationConfiguration(
            registrar: SIPURI(user: nil, host: "example.com"),
            addressOfRecord: SIPAddress(uri: SIPURI(user: "alice", host: "example.com")),
            contact: SIPAddress(uri: contact), instanceID: "f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
    }

    init(
        seed: UInt64 = 1, _ change: (inout RegistrationConfiguration) -> Void = { _ in }
    ) {
        var configuration = Self.configuration()
        change(&configuration)
        machine = RegistrationMachine(configuration: configuration, random: .seeded(seed))
    }

    /// A probe that has been registered for that many seconds.
    static func registered(seed: UInt64 = 1, expires: Int = 600) -> RegistrationProbe {
        var probe = RegistrationProbe(seed: seed)
        probe.start()
        probe.answer(200) { $0.headers["Expires"] = String(expires) }
        _ = probe.takeLog()
        return probe
    }

    mutating func start() {
        machine.start(at: now)
        drain()
    }

    mutating func credentials(_ credentials: Credential...) {
        machine.credentialsChanged(credentials, at: now)
        drain()
    }

    /// The registrar's answer to the last REGISTER.
    mutating func answer(_ status: Int, _ change: (inout SIPMessage) -> Void = { _ in }) {
        guard let request = sent.last else { return }
        var response = request.response(status: status, toTag: "registrar")
        change(&response)
        machine.receive(response, at: now)
        drain()
    }

    mutating func requestFails(_ failure: TransactionFailure) {
        machine.requestFailed(failure, at: now)
        drain()
    }

    mutating func flowFails() {
        machine.flowFailed(at: now)
        drain()
    }

    mutating func unregister() {
        machine.unregister(at: now)
        drain()
    }

    /// Runs to the machine's next time-out, at which something must happen.
    mutating func runToTimeout() {
        guard let next = machine.nextTimeout else { return }
        now = next
        machine.timeout(at: now)
        drain()
    }

    mutating func run(until seconds: Double) {
        let end = MonotonicTime.zero + .nanoseconds(Int64(seconds * 1e9))
        while let next = machine.nextTimeout, next <= end {
            now = max(now, next)
            machine.timeout(at: now)
            drain()
        }
        now = end
    }

    mutating func drain() {
        while let action = machine.nextAction() {
            switch action {
            case .send(let request):
                sent.append(request)
                log.append("send \(request.expires ?? -1)")
            case .needsCredentials(let challenge):
                self.challenge = challenge
                log.append("needs credentials")
            case .registered(let expires, let isRefresh):
                log.append("\(isRefresh ? "refreshed" : "registered") \(expires.components.seconds)")
            case .failed(let failure, let retryAt):
                failures.append(failure)
                self.retryAt = retryAt
                let fate = retryAt == nil ? "for good" : "retry"
                log.append("failed \(failure.kind) \(failure.isBindingAlive ? "alive" : "dead") \(fate)")
            case .unregistered:
                log.append("unregistered")
            }
        }
    }

    mutating func takeLog() -> [String] {
        defer { log = [] }
        return log
    }

    var seconds: Double { (now - .zero).seconds }
}
