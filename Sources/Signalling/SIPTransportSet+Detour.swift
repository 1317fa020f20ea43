import Network
import Primitives
import SIP

/// A TCP connection to a server that is otherwise spoken to in datagrams, for what is too long for those.
struct DatagramDetour {
    /// The transactions that go this way, the latest last: their CANCEL and ACK must follow them (RFC 3261, 9.1 and
    /// 17.1.1.3), and what a transaction over datagrams repeats needs no repetition here.
    private(set) var transactions: [String] = []
    /// Requests that wait for the connection.
    var waiting: [SIPMessage] = []
    /// The connection once it is open.
    var flow: SIPFlow?

    /// What was sent this way, by branch and method.
    private var sent: [String] = []
    private static let capacity = 256

    /// Takes a request; false when it was taken before.
    mutating func take(_ request: SIPMessage) -> Bool {
        let branch = request.topVia?.branch ?? ""
        let key = "\(branch) \(request.method?.rawValue ?? "")"
        guard request.method == .ack || !sent.contains(key) else { return false }
        if !transactions.contains(branch) { transactions.append(branch) }
        sent.append(key)
        transactions.removeFirst(max(0, transactions.count - Self.capacity))
        sent.removeFirst(max(0, sent.count - Self.capacity))
        return true
    }
}

/// Requests that are too long for a datagram (RFC 3261, section 18.1.1).
extension SIPTransportSet {
    /// Whether a message to a server must go over TCP.
    func needsDetour(_ message: SIPMessage, bytes: Int, to remote: TransportAddress) -> Bool {
        guard let maximumDatagramRequest, message.isRequest else { return false }
        if bytes > maximumDatagramRequest { return true }
        guard let detour = detours[remote], let branch = message.topVia?.branch else { return false }
        return detour.transactions.contains(branch)
    }

    /// Sends a request over TCP, opening a connection when there is none.
    func sendByDetour(_ message: SIPMessage, insteadOf flow: SIPFlow) {
        let remote = flow.remote
        var detour = detours[remote] ?? DatagramDetour()
        let isNew = detours[remote] == nil
        guard detour.take(message) else { return }
        var request = message
        if var via = request.vias.first {
            via.transport = SIPTransport.tcp.viaName
            request.vias[0] = via
        }
        if let open = detour.flow {
            detours[remote] = detour
            send(request, over: open)
            return
        }
        detour.waiting.append(request)
        detours[remote] = detour
        guard isNew else { return }
        connect(FlowTarget(transport: .tcp, address: remote, domain: remote.host)) { [weak self] result in
            self?.detourOpened(result, insteadOf: flow)
        }
    }

    private func detourOpened(_ result: Result<RegisteredFlow, NetworkError>, insteadOf flow: SIPFlow) {
        guard var detour = detours[flow.remote] else { return }
        let waiting = detour.waiting
        switch result {
        case .success(let opened):
            detour.flow = opened.flow
            detour.waiting = []
            detours[flow.remote] = detour
            for request in waiting { send(request, over: opened.flow) }
        case .failure(let cause):
            detours[flow.remote] = nil
            for request in waiting {
                let bytes = (try? request.encoded().count) ?? 0
                let error = NetworkError(
                    .tooLarge,
                    "the \(request.method?.rawValue ?? "request") has \(bytes) bytes, too many for a datagram (at most "
                        + "\(maximumDatagramRequest ?? 0)), and TCP cannot be had: \(cause.message); use "
                        + "transport=tcp or tls, or send fewer and shorter headers")
                handlers.onRequestFailed(request, flow, error)
            }
        }
    }

    /// A connection is gone: the next long request opens another.
    func forgetDetour(_ flow: SIPFlow) {
        guard detours[flow.remote]?.flow == flow else { return }
        detours[flow.remote] = nil
    }
}
