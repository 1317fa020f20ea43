import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// What one call's owner was told, in order, with the invariants that every call keeps.
final class CallRecord {
    let handle: CallHandle
    var events: [String] = []
    var incoming: IncomingCall?
    var media: [NegotiatedAudio] = []
    var termination: CallTermination?
    var endedAt: MonotonicTime?

    init(_ handle: CallHandle) {
        self.handle = handle
    }

    func note(_ event: CallEvent, at now: MonotonicTime) {
        if let termination { Issue.record("\(event) after the end (\(termination))") }
        switch event {
        case .incoming(let incoming):
            self.incoming = incoming
            events.append("incoming")
        case .progressed: events.append("progressed")
        case .rang: events.append("rang")
        case .answered(let audio):
            if events.contains("answered") { Issue.record("answered twice") }
            media.append(audio)
            events.append("answered")
        case .mediaChanged(let audio):
            media.append(audio)
            events.append("mediaChanged")
        case .ended(let termination):
            self.termination = termination
            endedAt = now
            events.append("ended")
        }
    }

    var reason: CallEndReason? { termination?.reason }
    var isAnswered: Bool { events.contains("answered") }
}

/// One device in a simulation: a user agent, its place in the network, and what it was told.
final class SimulatedDevice {
    let user: String
    let transport: SIPTransport
    let address: TransportAddress
    var agent: UserAgent
    /// The number of its stream connection, while it has one.
    var connection: UInt64?
    var records: [CallRecord] = []
    var registrations: [RegistrationEvent] = []
    /// Registration events in short, such as `registered`, `refreshed`, `failed 401`.
    var registrationLog: [String] = []
    var tokenRequests = 0
    /// Gives the token that the agent asks for; nil gives none.
    var makeToken: (Simulation) -> String?
    /// What to do with an incoming call.
    var onIncoming: (Simulation, SimulatedDevice, CallHandle) -> Void = { _, _, _ in }
    /// The keep-alives that it sent.
    var probes: [KeepAliveProbe] = []
    /// The port of its datagrams behind the NAT.
    var mappedPort: UInt16 = 40_000
    /// Everything it sent.
    var sent: [SIPMessage] = []

    init(
        user: String, transport: SIPTransport, address: TransportAddress, agent: UserAgent,
        makeToken: @escaping (Simulation) -> String?
    ) {
        self.user = user
        self.transport = transport
        self.address = address
        self.agent = agent
        self.makeToken = makeToken
    }

    var media: LocalMedia { LocalMedia(address: "127.0.0.1", rtpPort: address.port &+ 1_000, rtcpPort: address.port) }

    func record(_ handle: CallHandle) -> CallRecord {
        if let known = records.first(where: { $0.handle == handle }) { return known }
        let record = CallRecord(handle)
        records.append(record)
        return record
    }

    func sent(_ method: SIPMethod) -> [SIPMessage] { sent.filter { $0.method == method } }

    /// Whether nothing of any call is left.
    var isClean: Bool {
        agent.calls.isEmpty && agent.legs.isEmpty && agent.answeredInvites.isEmpty
            && agent.transactions.clientTransactionCount == 0 && agent.transactions.serverTransactionCount == 0
    }

    var leftovers: String {
        "\(user): calls \(agent.calls.values.map { "\($0.direction) \($0.phase)" }), legs \(agent.legs.keys), "
            + "answered \(agent.answeredInvites.count), transactions \(agent.transactions.clientTransactionCount)/"
            + "\(agent.transactions.serverTransactionCount)"
    }
}
