import Primitives
import SIP
import SinchEnvironment

/// A user agent of its own transactions: enough of one to make, answer and end a call over a bad network.
struct SimulatedAgent {
    var client: Client
    var transactions: TransactionLayer
    /// How long it rings before it answers; nil never answers.
    var answersAfter: Duration?

    var registeredStatus: Int?
    /// Final responses to its INVITE, repetitions included.
    var answers: [Int] = []
    var invite: SIPMessage?
    var dialog: SIPDialog?
    var isAcknowledged = false
    var cancelledWith: String??
    var byeStatus: Int?
    var gotBye = false
    var faults: [String] = []

    private var answerAt: MonotonicTime?
    private var repeatAt: MonotonicTime?
    private var repeatInterval = Duration.milliseconds(500)
    private var repeatsLeft = 10
    private var pendingInvite: (request: SIPMessage, id: TransactionID)?
    private var byeAt: MonotonicTime?

    init(_ client: Client, answersAfter: Duration?, seed: UInt64) {
        self.client = client
        self.answersAfter = answersAfter
        transactions = TransactionLayer(random: .seeded(seed))
    }

    private var serverFlow: SIPFlow {
        SIPFlow(transport: .udp, remote: TransportAddress(host: "127.0.0.1", port: 5060), connection: 0)
    }

    private mutating func send(_ request: SIPMessage, at now: MonotonicTime) {
        var bare = request
        if bare.topVia != nil { bare.removeTopVia() }
        var via = SIPVia(transport: "UDP", host: client.flow.remote.host, port: client.flow.remote.port, branch: nil)
        via.parameters.setFlag("rport")
        transactions.send(bare, over: serverFlow, sentBy: via, at: now)
    }

    mutating func register(token: String, at now: MonotonicTime) {
        send(client.register(token: token), at: now)
    }

    mutating func call(_ user: String, at now: MonotonicTime) {
        let request = client.request(.invite, to: user)
        invite = request
        send(request, at: now)
    }

    mutating func receive(_ message: SIPMessage, at now: MonotonicTime) {
        transactions.receive(message, from: serverFlow, at: now)
    }

    var nextTimeout: MonotonicTime? {
        [transactions.nextTimeout, answerAt, repeatAt, byeAt].compactMap(\.self).min()
    }

    mutating func timeout(at now: MonotonicTime) {
        transactions.timeout(at: now)
        if let time = answerAt, time <= now {
            answerAt = nil
            answer(at: now)
        }
        if let time = repeatAt, time <= now {
            repeatAt = nil
            answer(at: now)
        }
        if let time = byeAt, time <= now, var dialog {
            byeAt = nil
            send(dialog.request(.bye, contact: nil), at: now)
            self.dialog = dialog
        }
    }

    private mutating func answer(at now: MonotonicTime) {
        guard let (request, id) = pendingInvite, !isAcknowledged else { return }
        transactions.respond(client.response(200, to: request), in: id, at: now)
        guard repeatsLeft > 0 else { return }
        repeatsLeft -= 1
        repeatAt = now + repeatInterval
        repeatInterval = min(repeatInterval * 2, .seconds(4))
    }

    /// Does what the transactions ask for; gives what to send.
    mutating func drain(at now: MonotonicTime) -> [SIPMessage] {
        var sent: [SIPMessage] = []
        while let action = transactions.nextAction() {
            switch action {
            case .transmit(let message, _): sent.append(message)
            case .response(let response, let id, _): receive(response, of: id.method, at: now)
            case .strayResponse(let response, _):
                if response.cseq?.method == .invite { receive(response, of: .invite, at: now) }
            case .request(let request, let id, _): serve(request, id, at: now)
            case .cancelled(let id, let cancel):
                cancelledWith = .some(cancel.headers["Reason"])
                answerAt = nil
                if let request = pendingInvite?.request {
                    transactions.respond(client.response(487, to: request), in: id, at: now)
                }
            case .ack:
                isAcknowledged = true
                repeatAt = nil
            case .failed(let id, _, let failure): faults.append("\(id.method.rawValue): \(failure)")
            case .terminated: break
            }
        }
        return sent
    }

    private mutating func receive(_ response: SIPMessage, of method: SIPMethod, at now: MonotonicTime) {
        guard let status = response.status, status >= 200 else { return }
        switch method {
        case .register: registeredStatus = status
        case .bye: byeStatus = status
        case .invite:
            answers.append(status)
            guard status < 300, let invite else { return }
            if dialog == nil {
                dialog = try? SIPDialog(asClientFor: invite, response: response)
                byeAt = now + .seconds(2)
            }
            if let dialog { send(dialog.ack(for: invite.cseq?.number ?? 1, contact: nil), at: now) }
        default: break
        }
    }

    private mutating func serve(_ request: SIPMessage, _ id: TransactionID, at now: MonotonicTime) {
        switch request.method {
        case .invite:
            if pendingInvite != nil { faults.append("a second INVITE") }
            pendingInvite = (request, id)
            transactions.respond(client.response(180, to: request), in: id, at: now)
            if let answersAfter { answerAt = now + answersAfter }
        case .bye:
            if gotBye { faults.append("a second BYE") }
            gotBye = true
            transactions.respond(client.response(200, to: request), in: id, at: now)
        default: faults.append("unexpected \(request.method?.rawValue ?? "")")
        }
    }
}

/// A network that loses, repeats, delays and so reorders datagrams, the same way for the same seed.
struct LossyNetwork {
    var world: World
    var agents: [SimulatedAgent]
    private var random: RandomSource
    private let loss: Double
    private var inFlight: [(time: MonotonicTime, message: SIPMessage, from: SIPFlow?, to: SIPFlow?)] = []

    init(_ world: World, _ agents: [SimulatedAgent], loss: Double, seed: UInt64) {
        self.world = world
        self.agents = agents
        self.loss = loss
        random = .seeded(seed)
    }

    private mutating func put(_ message: SIPMessage, from: SIPFlow?, to: SIPFlow?) {
        // A repetition is a copy that takes its own time.
        for _ in 0..<(random.unitInterval() < 0.1 ? 2 : 1) where random.unitInterval() >= loss {
            let delay = Duration.microseconds(Int(random.unitInterval() * 150_000))
            inFlight.append((world.now + delay, message, from, to))
        }
    }

    private mutating func exchange() {
        for index in agents.indices {
            for message in agents[index].drain(at: world.now) { put(message, from: agents[index].client.flow, to: nil) }
        }
        for (message, flow) in world.sent { put(message, from: nil, to: flow) }
        world.sent = []
    }

    /// Runs everything until `duration` from now.
    mutating func run(for duration: Duration) throws {
        let end = world.now + duration
        exchange()
        while true {
            let times = [inFlight.map(\.time).min(), world.core.nextTimeout] + agents.map(\.nextTimeout)
            guard let next = times.compactMap(\.self).min(), next <= end else { break }
            world.now = max(world.now, next)
            let due = inFlight.filter { $0.time <= world.now }
            inFlight.removeAll { $0.time <= world.now }
            for packet in due {
                if let from = packet.from {
                    try world.deliver(packet.message, from: from)
                } else if let index = agents.firstIndex(where: { $0.client.flow == packet.to }) {
                    let copy = try SIPMessage.parse(try packet.message.encoded())
                    agents[index].receive(copy, at: world.now)
                }
                exchange()
            }
            world.core.timeout(at: world.now)
            try world.collect()
            for index in agents.indices { agents[index].timeout(at: world.now) }
            exchange()
        }
        world.now = end
    }
}
