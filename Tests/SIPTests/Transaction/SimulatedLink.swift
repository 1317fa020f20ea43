import Primitives
import SIP

/// What a network does to datagrams.
struct LinkConditions {
    var loss = 0.0
    var duplication = 0.0
    /// Each copy takes a random time out of the range, so that a wide range reorders.
    var delay: ClosedRange<Duration> = .milliseconds(1) ... .milliseconds(1)
}

/// Two transaction layers with a bad network in between, in simulated time; the same seed gives the same run.
struct SimulatedLink {
    enum Side: Int {
        case client, server
        var other: Side { self == .client ? .server : .client }
    }

    private struct Datagram {
        var at: MonotonicTime
        var order: Int
        var to: Side
        var message: SIPMessage
    }

    var client: TransactionLayer
    var server: TransactionLayer
    var now = MonotonicTime.zero
    /// Called with everything that the transaction users of both sides get.
    var user: (Side, TransactionLayer.Action, inout SimulatedLink) -> Void = { _, _, _ in }
    private(set) var sentCount = 0

    private let conditions: LinkConditions
    private let isReliable: Bool
    private var random: RandomSource
    private var datagrams: [Datagram] = []
    private var order = 0
    private var wakeUps: [(at: MonotonicTime, work: (inout SimulatedLink) -> Void)] = []

    init(seed: UInt64, conditions: LinkConditions, isReliable: Bool = false) {
        self.conditions = conditions
        self.isReliable = isReliable
        random = .seeded(seed)
        client = TransactionLayer(random: .seeded(seed &+ 1))
        server = TransactionLayer(random: .seeded(seed &+ 2))
    }

    /// The flow from that side to the other.
    func flow(from side: Side) -> SIPFlow {
        let host = side == .client ? "192.0.2.2" : "192.0.2.1"
        return SIPFlow(
            transport: isReliable ? .tcp : .udp, remote: TransportAddress(host: host, port: 5060),
            connection: isReliable ? 1 : 0)
    }

    mutating func send(_ request: SIPMessage) -> TransactionID {
        let via = SIPVia(transport: isReliable ? "TCP" : "UDP", host: "192.0.2.1", port: 5060, branch: nil)
        let id = client.send(request, over: flow(from: .client), sentBy: via, at: now)
        drain()
        return id
    }

    mutating func respond(_ response: SIPMessage, in id: TransactionID) {
        server.respond(response, in: id, at: now)
        drain()
    }

    mutating func cancel(_ invite: TransactionID) {
        client.cancel(invite, at: now)
        drain()
    }

    /// Runs the work that much later.
    mutating func after(_ delay: Duration, _ work: @escaping (inout SimulatedLink) -> Void) {
        wakeUps.append((now + delay, work))
    }

    /// Runs until nothing is left to happen; false when that takes more simulated time than the limit.
    mutating func run(limit: Duration = .seconds(600)) -> Bool {
        while let next = nextTime {
            guard next <= .zero + limit else { return false }
            now = max(now, next)
            if let index = datagrams.indices.min(by: {
                (datagrams[$0].at, datagrams[$0].order) < (datagrams[$1].at, datagrams[$1].order)
            }), datagrams[index].at <= now {
                let datagram = datagrams.remove(at: index)
                let source = flow(from: datagram.to)  // the receiver's flow back
                if datagram.to == .client {
                    client.receive(datagram.message, from: source, at: now)
                } else {
                    server.receive(datagram.message, from: source, at: now)
                }
            } else if let index = wakeUps.firstIndex(where: { $0.at <= now }) {
                wakeUps.remove(at: index).work(&self)
            } else {
                client.timeout(at: now)
                server.timeout(at: now)
            }
            drain()
        }
        return true
    }

    private var nextTime: MonotonicTime? {
        [
            datagrams.map(\.at).min(), wakeUps.map(\.at).min(), client.nextTimeout, server.nextTimeout,
        ].compactMap(\.self).min()
    }

    private mutating func drain() {
        while let action = client.nextAction() { handle(action, on: .client) }
        while let action = server.nextAction() { handle(action, on: .server) }
    }

    private mutating func handle(_ action: TransactionLayer.Action, on side: Side) {
        if case .transmit(let message, _) = action {
            transmit(message, from: side)
        } else {
            let user = user
            user(side, action, &self)
        }
    }

    private mutating func transmit(_ message: SIPMessage, from side: Side) {
        sentCount += 1
        let isLost = !isReliable && random.unitInterval() < conditions.loss
        let copies = isLost ? 0 : (!isReliable && random.unitInterval() < conditions.duplication ? 2 : 1)
        for _ in 0..<copies {
            let spread = conditions.delay.upperBound - conditions.delay.lowerBound
            let delay = conditions.delay.lowerBound + spread * (isReliable ? 0 : random.unitInterval())
            order += 1
            datagrams.append(Datagram(at: now + delay, order: order, to: side.other, message: message))
        }
    }
}
