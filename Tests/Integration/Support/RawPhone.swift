import Glibc
import Network
import Primitives
import SIP
import Synchronization

/// A SIP client that does what the test says, right or wrong, and shows every message as it came.
final class RawPhone: Sendable {
    let user: String
    let transport: String
    let local: TransportAddress
    private let loop: EventLoop
    private let inbox = MessageQueue()
    private let write: @Sendable ([UInt8]) -> Void

    /// Opens a UDP socket or a TCP connection to a server on loopback.
    init(_ user: String, over transport: String = "udp", to server: TransportAddress) async throws {
        self.user = user
        self.transport = transport
        let loop = try EventLoop(name: "raw phone")
        self.loop = loop
        let inbox = inbox
        if transport == "udp" {
            let socket = try await loop.call {
                let socket = try UDPSocket(loop: loop, bind: TransportAddress(host: "127.0.0.1", port: 0))
                socket.onDatagram = { bytes, _ in inbox.put(bytes) }
                return socket
            }
            local = socket.localAddress
            write = { bytes in loop.execute { socket.send(bytes, to: server) } }
        } else {
            // The handlers are set in the turn that begins the connection: it may be open in the next one.
            let opening = Opening()
            let stream = try await loop.call {
                let stream = TCPConnection.connect(loop: loop, to: server)
                let cutter = StreamCutter(inbox)
                stream.onOpen = { opening.end(stream.localAddress) }
                stream.onData = { cutter.receive($0) }
                stream.onClose = { _ in
                    opening.end(nil)
                    inbox.close()
                }
                return stream
            }
            guard let address = await opening.result() else { throw TestFailure("\(user) cannot connect to \(server)") }
            local = address
            write = { bytes in loop.execute { stream.send(bytes) } }
        }
    }

    /// A phone at a node.
    convenience init(_ user: String, over transport: String = "udp", at node: KamailioNode) async throws {
        let port = KamailioNode.ports[transport] ?? 5_060
        try await self.init(user, over: transport, to: TransportAddress(host: node.address, port: port))
    }

    deinit { loop.stop() }

    /// Its contact.
    var contact: String { "<sip:\(user)@\(local.host):\(local.port);transport=\(transport)>" }

    // MARK: Messages

    /// What makes a request's dialog, or the beginning of one.
    struct Dialog: Sendable {
        var callID = RawPhone.random()
        var localTag = RawPhone.random()
        var remoteTag: String?
        var sequence: UInt32 = 1
        var routes: [String] = []
    }

    static func random() -> String { String(UInt64.random(in: 0 ... .max), radix: 36) }

    /// A request of this phone with everything that it must have.
    func request(
        _ method: SIPMethod, _ uri: String, to: String? = nil, _ dialog: Dialog = Dialog(),
        from: String? = nil, contact: String? = nil, headers: [(String, String)] = [], body: String = "",
        domain: String = KamailioNode.domain
    ) throws -> SIPMessage {
        var request = SIPMessage(request: method, uri: try SIPURI(parsing: uri))
        request.headers.append(
            "Via", "SIP/2.0/\(transport.uppercased()) \(local.host):\(local.port);branch=z9hG4bK\(Self.random());rport")
        request.headers.append("Max-Forwards", "70")
        for route in dialog.routes { request.headers.append("Route", route) }
        request.headers.append("From", "<sip:\(from ?? user)@\(domain)>;tag=\(dialog.localTag)")
        request.headers.append("To", "<\(to ?? uri)>" + (dialog.remoteTag.map { ";tag=" + $0 } ?? ""))
        request.headers.append("Call-ID", dialog.callID)
        request.headers.append("CSeq", "\(dialog.sequence) \(method.rawValue)")
        request.headers.append("Contact", contact ?? self.contact)
        for (name, value) in headers { request.headers.append(name, value) }
        if !body.isEmpty { request.headers.append("Content-Type", "application/sdp") }
        request.body = Array(body.utf8)
        return request
    }

    func send(_ message: SIPMessage) throws { write(try message.encoded()) }

    /// Sends bytes that are no SIP.
    func send(_ bytes: [UInt8]) { write(bytes) }

    /// The next message or datagram as it came.
    func nextBytes(within limit: Duration = .seconds(5)) async -> [UInt8]? { await inbox.next(within: limit) }

    /// The next message, without 100s.
    func next(within limit: Duration = .seconds(5)) async throws -> SIPMessage {
        while true {
            guard let bytes = await inbox.next(within: limit) else { throw TestFailure("\(user) got no message") }
            let message = try SIPMessage.parse(bytes)
            if message.status != 100 { return message }
        }
    }

    /// The next request with this method; any other message is an error.
    func expect(_ method: SIPMethod) async throws -> SIPMessage {
        let message = try await next()
        guard message.method == method else {
            throw TestFailure("\(user) expected \(method.rawValue), got \(message.startLine)")
        }
        return message
    }

    /// Whether nothing comes for so long.
    func isLeftAlone(for time: Duration = .milliseconds(300)) async -> Bool { await inbox.next(within: time) == nil }

    /// Sends a request and gives its final response.
    func ask(_ request: SIPMessage) async throws -> SIPMessage {
        try send(request)
        while true {
            let message = try await next()
            guard let status = message.status else { throw TestFailure("\(user) got \(message.startLine)") }
            if status >= 200 { return message }
        }
    }

    /// Registers with whatever proof the headers carry.
    func register(
        _ headers: [(String, String)] = [], as name: String? = nil, expires: Int = 600, dialog: Dialog = Dialog(),
        contact: String? = nil, domain: String = KamailioNode.domain
    ) async throws -> SIPMessage {
        let aor = "sip:\(name ?? user)@\(domain)"
        return try await ask(
            request(
                .register, "sip:\(domain)", to: aor, dialog, from: name, contact: contact,
                headers: [("Expires", String(expires))] + headers, domain: domain))
    }

    /// Registers with a token; throws when that is refused.
    func signIn(
        _ forge: TokenForge? = nil, contact: String? = nil, expires: Int = 600, headers: [(String, String)] = []
    ) async throws {
        let token = (forge ?? TokenForge(user: user)).token()
        let answer = try await register(
            [("Authorization", "Bearer " + token)] + headers, expires: expires, contact: contact)
        guard answer.status == 200 else { throw TestFailure("\(user) is not registered: \(answer.startLine)") }
    }

    /// A response with this phone's contact.
    func answer(_ request: SIPMessage, _ status: Int, headers: [(String, String)] = [], body: String = "") throws {
        var response = request.response(status: status, toTag: "tag-" + user + "-\(local.port)")
        response.headers.append("Contact", contact)
        for (name, value) in headers { response.headers.append(name, value) }
        response.body = Array(body.utf8)
        try send(response)
    }

    /// The caller's side of a dialog after its 2xx, with the address of the other side.
    func dialog(_ invite: SIPMessage, _ answer: SIPMessage) throws -> (dialog: Dialog, target: String) {
        guard let callID = invite.callID, let from = invite.from?.tag, let to = answer.to?.tag,
            let target = answer.contacts.first?.uri
        else { throw TestFailure("no dialog: \(answer.startLine)") }
        return (
            Dialog(
                callID: callID, localTag: from, remoteTag: to, sequence: 2,
                routes: answer.headers.values("Record-Route").reversed()), target.description
        )
    }
}

/// Cuts what a connection brings into messages; used on the loop's thread only.
private final class StreamCutter: @unchecked Sendable {
    private var framer = SIPStreamFramer()
    private let inbox: MessageQueue

    init(_ inbox: MessageQueue) { self.inbox = inbox }

    func receive(_ bytes: [UInt8]) {
        framer.receive(bytes)
        while let frame = try? framer.next() {
            if case .message(let bytes) = frame { inbox.put(bytes) }
        }
    }
}

/// How a connection's opening ended: the local address, or nil.
private final class Opening: Sendable {
    private let state = Mutex<(result: TransportAddress??, waiting: CheckedContinuation<TransportAddress?, Never>?)>(
        (nil, nil))

    func end(_ address: TransportAddress?) {
        state.withLock { state in
            guard state.result == nil else { return }
            state.result = .some(address)
            state.waiting?.resume(returning: address)
        }
    }

    func result() async -> TransportAddress? {
        await withCheckedContinuation { continuation in
            state.withLock { state in
                if let result = state.result {
                    continuation.resume(returning: result)
                } else {
                    state.waiting = continuation
                }
            }
        }
    }
}

/// Messages on their way from the loop to the test.
private final class MessageQueue: Sendable {
    private struct State {
        var messages: [[UInt8]] = []
        var waiting: (number: UInt64, continuation: CheckedContinuation<[UInt8]?, Never>)?
        var counter: UInt64 = 0
    }

    private let state = Mutex(State())

    func put(_ message: [UInt8]) {
        state.withLock { state in
            if let waiting = state.waiting {
                state.waiting = nil
                waiting.continuation.resume(returning: message)
            } else {
                state.messages.append(message)
            }
        }
    }

    func close() { stopWaiting(nil) }

    func next(within limit: Duration) async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            let number = state.withLock { state -> UInt64? in
                guard state.messages.isEmpty else {
                    continuation.resume(returning: state.messages.removeFirst())
                    return nil
                }
                state.counter += 1
                state.waiting = (state.counter, continuation)
                return state.counter
            }
            guard let number else { return }
            Task {
                try? await Task.sleep(for: limit)
                stopWaiting(number)
            }
        }
    }

    private func stopWaiting(_ number: UInt64?) {
        state.withLock { state in
            guard let waiting = state.waiting, number == nil || waiting.number == number else { return }
            state.waiting = nil
            waiting.continuation.resume(returning: nil)
        }
    }
}
