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
    /// The keys of `connections` in the order in which they came.
    private var order: [ObjectIdentifier] = []
    private static let maximumConnections = 64

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
        options.maximumConnections = Self.maximumConnections
        options.connection.sendQueueLimit = 4 << 20
        // Whoever is hung up on has this long to read why.
        options.connection.closeTimeout = .seconds(1)
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
        makeRoom()
        let connection = AgentConnection(stream: stream, service: service)
        let key = ObjectIdentifier(connection)
        connections[key] = connection
        order.append(key)
        connection.onEnd = { [weak self] in
            self?.assumeIsolated { server in
                server.connections[key] = nil
                server.order.removeAll { $0 == key }
            }
        }
    }

    /// Connections that nobody uses give way to new ones, the oldest first, so that `status` is always answered.
    private func makeRoom() {
        guard connections.count >= Self.maximumConnections - 8 else { return }
        guard let oldest = order.lazy.compactMap({ self.connections[$0] }).first(where: \.isIdle) else { return }
        oldest.drop()
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
    /// Requests that are not answered yet.
    private var inFlight = 0
    private static let maximumInFlight = 64
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
        var begin = pending.startIndex
        while let end = pending[begin...].firstIndex(of: 0x0A) {
            let line = pending[begin..<end]
            begin = end + 1
            if !line.allSatisfy({ $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }) { handle(Array(line)) }
            if isClosed { return }
        }
        pending.removeSubrange(..<begin)
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
        // Decoding costs more than linearly in depth, and it happens between calls' signalling: no request is deep.
        guard AgentProtocol.depth(of: line) <= AgentProtocol.greatestDepth else {
            respond(
                id: nil, code: -32_600, message: "the line is nested deeper than \(AgentProtocol.greatestDepth) levels")
            return
        }
        guard let request = try? JSONDecoder().decode(AgentRequest.self, from: Data(line)), request.isWellFormed else {
            let isJSON = (try? JSONDecoder().decode(JSONValue.self, from: Data(line))) != nil
            respond(
                id: nil, code: isJSON ? -32_600 : -32_700,
                message: isJSON ? "the line is no JSON-RPC 2.0 request" : "the line is no JSON")
            return
        }
        guard inFlight < Self.maximumInFlight else {
            respond(
                id: request.id, code: -32_000,
                message:
                    "\(Self.maximumInFlight) requests of this connection wait for their answers; send fewer at a time")
            return
        }
        inFlight += 1
        // The task inherits the service's isolation, so requests begin in the order in which they arrived.
        service.assumeIsolated { service in
            _ = Task {
                let outcome = await service.handle(request, on: self)
                self.finish(request, outcome)
            }
        }
    }

    /// Whether nothing would be lost by closing it.
    var isIdle: Bool { inFlight == 0 && listener == nil && followed.isEmpty }

    /// Closes it at once, to make room: it has nothing to be told.
    func drop() {
        stream.abort()
        closed()
    }

    private func finish(_ request: AgentRequest, _ outcome: Result<JSONValue, AgentErrorObject>) {
        inFlight -= 1
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
