import Primitives
import SIP

/// A transaction layer in simulated time, with a readable log of what it did and when.
struct LayerProbe {
    static let udp = SIPFlow(
        transport: .udp, remote: TransportAddress(host: "192.0.2.1", port: 5060), connection: 0)
    static let tcp = SIPFlow(
        transport: .tcp, remote: TransportAddress(host: "192.0.2.1", port: 40_000), connection: 7)

    var layer: TransactionLayer
    var now = MonotonicTime.zero
    /// `seconds what`, for example `0.5 > INVITE` (sent), `1.0 < 180` (a response for the user).
    var log: [String] = []
    var sent: [(message: SIPMessage, flow: SIPFlow)] = []
    var delivered: [(message: SIPMessage, id: TransactionID)] = []
    var lastCancelled: TransactionID?

    init(limits: TransactionLimits = .init(), seed: UInt64 = 1) {
        layer = TransactionLayer(random: .seeded(seed), limits: limits)
    }

    static func via(_ transport: String = "UDP", rport: Bool = true) -> SIPVia {
        var via = SIPVia(transport: transport, host: "198.51.100.7", port: 5060, branch: nil)
        if rport { via.parameters.setFlag("rport") }
        return via
    }

    static func request(
        _ method: SIPMethod, sequence: UInt32 = 1, callID: String = "call-1", fromTag: String = "alice-tag",
        toTag: String? = nil
    ) -> SIPMessage {
        let bob = SIPURI(user: "bob", host: "example.com")
        var request = SIPMessage(request: method, uri: bob)
        var from = SIPAddress(uri: SIPURI(user: "alice", host: "example.com"))
        from.tag = fromTag
        request.from = from
        var to = SIPAddress(uri: bob)
        to.tag = toTag
        request.to = to
        request.callID = callID
        request.cseq = SIPCSeq(number: sequence, method: method)
        request.maxForwards = 70
        if method == .invite {
            request.contacts = [SIPAddress(uri: SIPURI(user: "alice", host: "198.51.100.7"))]
        }
        return request
    }

    /// A request as it arrives at a server.
    static func received(
        _ method: SIPMethod, branch: String? = "z9hG4bKpeer1", callID: String = "call-1", sequence: UInt32 = 1,
        toTag: String? = nil, host: String = "192.0.2.1", rport: Bool = false
    ) -> SIPMessage {
        var request = Self.request(method, sequence: sequence, callID: callID, toTag: toTag)
        var via = SIPVia(transport: "UDP", host: host, port: 5060, branch: branch)
        if rport { via.parameters.setFlag("rport") }
        request.vias = [via]
        return request
    }

    mutating func send(_ request: SIPMessage, over flow: SIPFlow, timerC: Duration? = nil) -> TransactionID {
        let via = Self.via(flow.transport == .udp ? "UDP" : "TCP")
        let id = layer.send(request, over: flow, sentBy: via, timerC: timerC, at: now)
        drain()
        return id
    }

    /// The peer answers the last request of that method.
    mutating func answer(
        _ status: Int, to method: SIPMethod, tag: String? = "bob-tag", over flow: SIPFlow = Self.udp
    ) {
        guard let request = sent.last(where: { $0.message.method == method })?.message else { return }
        layer.receive(request.response(status: status, toTag: status > 100 ? tag : nil), from: flow, at: now)
        drain()
    }

    mutating func receive(_ message: SIPMessage, over flow: SIPFlow = Self.udp) {
        layer.receive(message, from: flow, at: now)
        drain()
    }

    mutating func respond(_ status: Int, tag: String? = "bob-tag", in id: TransactionID? = nil) {
        guard let last = delivered.last else { return }
        layer.respond(
            last.message.response(status: status, toTag: status > 100 ? tag : nil), in: id ?? last.id, at: now)
        drain()
    }

    /// Lets the time go by up to that many seconds after the start, waking the layer exactly when it asks.
    mutating func run(until seconds: Double) {
        let end = MonotonicTime.zero + .nanoseconds(Int64(seconds * 1e9))
        while let next = layer.nextTimeout, next <= end {
            now = max(now, next)
            layer.timeout(at: now)
            drain()
        }
        now = end
    }

    mutating func drain() {
        while let action = layer.nextAction() {
            log.append("\(Double((now - .zero).wholeNanoseconds / 1_000_000) / 1000) \(describe(action))")
        }
    }

    /// What happened since the last call.
    mutating func takeLog() -> [String] {
        defer { log = [] }
        return log
    }

    private mutating func describe(_ action: TransactionLayer.Action) -> String {
        switch action {
        case .transmit(let message, let flow):
            sent.append((message, flow))
            return "> " + Self.name(message)
        case .response(let message, _, _): return "< " + Self.name(message)
        case .request(let message, let id, _):
            delivered.append((message, id))
            return "< " + Self.name(message)
        case .cancelled(let invite, _):
            lastCancelled = invite
            return "cancelled"
        case .ack(_, let id, _): return id == nil ? "< ACK (alone)" : "< ACK"
        case .strayResponse(let message, _): return "stray " + Self.name(message)
        case .failed(let id, _, let failure): return "failed \(id.method.rawValue): \(failure)"
        case .terminated(let id): return "ended \(id.method.rawValue)"
        }
    }

    static func name(_ message: SIPMessage) -> String {
        message.method?.rawValue ?? message.status.map(String.init) ?? "?"
    }
}
