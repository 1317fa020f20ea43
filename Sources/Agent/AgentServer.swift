import Configuration
import FoundationEssentials
import Network
import Primitives

/// The control socket of one agent: accepts connections, frames lines, and hands requests to the service.
///
/// An actor on the signalling loop, like the service it speaks for.
public actor AgentServer {
    private let service: AgentService
    private nonisolated let loop: EventLoop
    private var listener: UnixListener?
    private var connections: [ObjectIdentifier: AgentConnection] = [:]

    /// The signalling loop of this process.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Creates a server for a service.
    public init(service: AgentService) {
        self.service = service
        loop = service.loop
    }

    /// Listens on the socket; only processes of the same user are let in.
    public func listen(path: String) throws(NetworkError) {
        var options = UnixListener.Options()
        options.maximumConnections = 64
        options.connection.sendQueueLimit = 4 << 20
        let listener = try UnixListener(loop: loop, path: path, options: options)
        listener.onConnection = { [weak self] connection in
            self?.assumeIsolated { $0.accept(connection) }
        }
        self.listener = listener
    }

    /// Stops listening and removes the socket.
    public func close() {
        listener?.close()
        listener = nil
    }

    private func accept(_ stream: UnixConnection) {
        let connection = AgentConnection(stream: stream, service: service)
        let key = ObjectIdentifier(connection)
        connections[key] = connection
        connection.onEnd = { [weak self] in
            self?.assumeIsolated { $0.connections[key] = nil }
        }
    }
}

/// One client of the control socket. Lives on the loop.
final class AgentConnection: @unchecked Sendable {
    // @unchecked: every method and handler runs on the loop.
    private let stream: UnixConnection
    private let service: AgentService
    private var pending: [UInt8] = []
    private var listener: UInt64?
    /// Calls that this connection's command placed and stays with.
    private var followed: [String] = []
    private(set) var isClosed = false
    var onEnd: (@Sendable () -> Void)?

    init(stream: UnixConnection, service: AgentService) {
        self.stream = stream
        self.service = service
        stream.onData = { [self] bytes in receive(bytes) }
        stream.onClose = { [self] _ in closed() }
    }

    private func receive(_ bytes: [UInt8]) {
        pending += bytes
        while let end = pending.firstIndex(of: 0x0A) {
            let line = Array(pending[..<end])
            pending.removeSubrange(...end)
            if !line.allSatisfy({ $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }) { handle(line) }
            if isClosed { return }
        }
        if pending.count > AgentProtocol.longestLine {
            pending = []
            respond(id: nil, code: -32_600, message: "a line is longer than \(AgentProtocol.longestLine) bytes")
            stream.close()
        }
    }

    private func handle(_ line: [UInt8]) {
        guard line.count <= AgentProtocol.longestLine else {
            respond(id: nil, code: -32_600, message: "a line is longer than \(AgentProtocol.longestLine) bytes")
            stream.close()
            return
        }
        guard let request = try? JSONDecoder().decode(AgentRequest.self, from: Data(line)) else {
            let isJSON = (try? JSONDecoder().decode(JSONValue.self, from: Data(line))) != nil
            respond(
                id: nil, code: isJSON ? -32_600 : -32_700,
                message: isJSON ? "the line is no JSON-RPC 2.0 request" : "the line is no JSON")
            return
        }
        Task { [service] in
            let outcome = await service.handle(request, on: self)
            await service.onLoop { self.finish(request, outcome) }
        }
    }

    private func finish(_ request: AgentRequest, _ outcome: Result<JSONValue, AgentErrorObject>) {
        guard let id = request.id else { return }
        switch outcome {
        case .success(let result): send(AgentResponse(id: id, result: result))
        case .failure(let error): send(AgentResponse(id: id, error: error))
        }
    }

    private func respond(id: JSONValue?, code: Int, message: String) {
        send(AgentResponse(id: id ?? .null, error: AgentErrorObject(code: code, message: message)))
    }

    private func send(_ message: some Encodable) {
        guard !isClosed else { return }
        _ = stream.send(AgentProtocol.encode(message) + [0x0A])
    }

    func send(_ event: AgentEvent) {
        send(AgentNotification(params: event))
    }

    /// Makes the call end with this connection.
    func follow(_ callId: String) {
        followed.append(callId)
    }

    func listens(as number: UInt64) {
        listener = number
    }

    var isListening: Bool { listener != nil }

    private func closed() {
        guard !isClosed else { return }
        isClosed = true
        onEnd?()
        onEnd = nil
        let (listener, followed) = (listener, followed)
        service.perform { service in
            if let listener { service.events.stopListening(listener) }
            service.abandonWaiters(of: self)
            for id in followed { service.calls.first { $0.callId == id }?.hangup() }
        }
    }
}

extension AgentErrorObject: Error {}
