import Network
import Primitives
import Synchronization

/// A small name server on loopback, UDP and TCP, for tests: it has a zone, and behaves as badly as a test wants.
package final class NameServer: Sendable {
    /// What a question gets.
    package enum Behaviour: Sendable {
        /// What the zone says.
        case honest
        /// Nothing, never.
        case silent
        /// An error code: 2 SERVFAIL, 5 REFUSED.
        case failing(UInt16)
        /// Over UDP only that there is more; all of it over TCP.
        case truncating
        /// What somebody else would send to be believed, then the honest answer.
        case spoofed
        /// These bytes after the id.
        case bytes([UInt8])
        /// FORMERR for whoever uses EDNS (RFC 6891), as very old servers do; the honest answer for others.
        case withoutExtensions
        /// An empty datagram, then the honest answer.
        case empty
        /// The honest answer, but not before `release` is called.
        case held
    }

    /// A question that arrived.
    package struct Arrival: Hashable, Sendable {
        package var name: String
        package var type: UInt16
        package var isTCP: Bool
    }

    private struct State {
        var zone: [ZoneRecord] = []
        var negativeLifetime: UInt32?
        var behaviour: [UInt16: Behaviour] = [:]
        var otherwise = Behaviour.honest
        var arrivals: [Arrival] = []
        var identifiers: [UInt16] = []
        var held: [(bytes: [UInt8], peer: TransportAddress)] = []
        var onArrival: (@Sendable (Arrival) -> Void)?
    }

    package let address: TransportAddress
    private let loop: EventLoop
    private let socket: UDPSocket
    /// Sends what does not come from the server's address.
    private let stranger: UDPSocket
    private let listener: TCPListener
    private let state: Mutex<State>

    /// On the loop.
    package init(
        _ loop: EventLoop, at any: TransportAddress = TransportAddress(host: "127.0.0.1", port: 0),
        zone: [ZoneRecord] = [], negativeLifetime: UInt32? = nil
    ) throws {
        // The port must be free for both; another process may have it for TCP.
        var pair: (UDPSocket, TCPListener)?
        for _ in 0..<16 where pair == nil {
            let socket = try UDPSocket(loop: loop, bind: any)
            if let listener = try? TCPListener(loop: loop, bind: socket.localAddress) {
                pair = (socket, listener)
            } else {
                socket.close()
            }
        }
        guard let pair else { throw NetworkError(.addressInUse, "no port is free for both UDP and TCP") }
        (socket, listener) = pair
        stranger = try UDPSocket(loop: loop, bind: TransportAddress(host: any.host, port: 0))
        self.loop = loop
        address = socket.localAddress
        state = Mutex(State(zone: zone, negativeLifetime: negativeLifetime))
        socket.onDatagram = { [weak self] bytes, peer in self?.received(bytes, from: peer) }
        listener.onConnection = { [weak self] connection in self?.accepted(connection) }
    }

    /// On the loop.
    package func close() {
        socket.close()
        stranger.close()
        listener.close()
    }

    package func set(zone: [ZoneRecord]) { state.withLock { $0.zone = zone } }

    /// What questions of one type get, or all others.
    package func behave(_ behaviour: Behaviour, for type: UInt16? = nil) {
        state.withLock { state in
            if let type { state.behaviour[type] = behaviour } else { state.otherwise = behaviour }
        }
    }

    /// Called on the loop for each question.
    package func onArrival(_ handler: @escaping @Sendable (Arrival) -> Void) {
        state.withLock { $0.onArrival = handler }
    }

    /// What arrived so far.
    package var arrivals: [Arrival] { state.withLock { $0.arrivals } }

    /// Sends the answers that were held back. On the loop.
    package func release() {
        let held = state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
        for answer in held { socket.send(answer.bytes, to: answer.peer) }
    }

    /// The questions' ids in the order of arrival.
    package var identifiers: [UInt16] { state.withLock { $0.identifiers } }

    // MARK: Inside

    private func received(_ bytes: [UInt8], from peer: TransportAddress) {
        guard let question = Question(bytes) else { return }
        let behaviour = note(question, isTCP: false)
        let honest = answer(question)
        switch behaviour {
        case .honest: socket.send(honest.bytes, to: peer)
        case .silent: break
        case .failing(let code): socket.send(failure(question, code).bytes, to: peer)
        case .withoutExtensions:
            let answer = question.hasExtensions ? failure(question, 1) : honest
            socket.send(answer.bytes, to: peer)
        case .truncating:
            var part = honest
            part.isTruncated = true
            part.answers = []
            socket.send(part.bytes, to: peer)
        case .spoofed:
            var forged = DNSMessageWriter(
                question.name, type: question.type, answers: [.a(question.name, "192.0.2.66")])
            forged.id = question.id &+ 1
            socket.send(forged.bytes, to: peer)
            forged.id = question.id
            stranger.send(forged.bytes, to: peer)
            forged.name = "other.example"
            socket.send(forged.bytes, to: peer)
            // Later, so that the forged ones were looked at on their own.
            loop.schedule(after: .milliseconds(20)) { [weak self] in self?.socket.send(honest.bytes, to: peer) }
        case .bytes(let rest): socket.send(DNSMessageWriter.bytes(question.id) + rest, to: peer)
        case .empty:
            socket.send([], to: peer)
            loop.schedule(after: .milliseconds(20)) { [weak self] in self?.socket.send(honest.bytes, to: peer) }
        case .held: state.withLock { $0.held.append((honest.bytes, peer)) }
        }
    }

    private func failure(_ question: Question, _ code: UInt16) -> DNSMessageWriter {
        var failure = DNSMessageWriter(question.name, type: question.type)
        failure.id = question.id
        failure.code = code
        return failure
    }

    private func accepted(_ connection: TCPConnection) {
        let buffer = Mutex<[UInt8]>([])
        connection.onData = { [weak self, weak connection] bytes in
            guard let self, let connection else { return }
            let message = buffer.withLock { buffer -> [UInt8]? in
                buffer += bytes
                guard buffer.count >= 2, buffer.count >= 2 + Int(buffer[0]) << 8 + Int(buffer[1]) else { return nil }
                return Array(buffer.dropFirst(2))
            }
            guard let message, let question = Question(message) else { return }
            _ = self.note(question, isTCP: true)
            let answer = self.answer(question).bytes
            connection.send(DNSMessageWriter.bytes(UInt16(answer.count)) + answer)
        }
    }

    private func note(_ question: Question, isTCP: Bool) -> Behaviour {
        let arrival = Arrival(name: question.name, type: question.type, isTCP: isTCP)
        let (behaviour, handler) = state.withLock { state in
            state.arrivals.append(arrival)
            state.identifiers.append(question.id)
            return (state.behaviour[question.type] ?? state.otherwise, state.onArrival)
        }
        handler?(arrival)
        return behaviour
    }

    /// What the zone says, aliases followed.
    private func answer(_ question: Question) -> DNSMessageWriter {
        let (zone, negative) = state.withLock { ($0.zone, $0.negativeLifetime) }
        var message = DNSMessageWriter(question.name, type: question.type)
        message.id = question.id
        var name = question.name
        for _ in 0..<4 {
            let here = zone.filter { $0.name.lowercased() == name.lowercased() }
            message.answers += here.filter { $0.type == question.type }
            guard message.answers.allSatisfy({ $0.type == 5 }), let alias = here.first(where: { $0.type == 5 }) else {
                break
            }
            message.answers.append(alias)
            name = Question.name(in: alias.data, at: 0)?.text ?? ""
        }
        if message.answers.isEmpty {
            if !zone.contains(where: { $0.name.lowercased() == name.lowercased() }) { message.code = 3 }
            if let negative { message.authorities = [.soa("example.org", minimum: negative)] }
        }
        return message
    }
}

/// A question as it arrives.
private struct Question {
    var id: UInt16
    var name: String
    var type: UInt16
    /// There is an additional record, which in a question can only be the one of EDNS.
    var hasExtensions: Bool

    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 12, let name = Self.name(in: bytes, at: 12), name.end + 4 <= bytes.count else {
            return nil
        }
        id = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
        hasExtensions = bytes[11] != 0
        self.name = name.text
        type = UInt16(bytes[name.end]) << 8 | UInt16(bytes[name.end + 1])
    }

    /// A name without pointers, and where it ends.
    static func name(in bytes: [UInt8], at start: Int) -> (text: String, end: Int)? {
        var labels: [String] = []
        var index = start
        while index < bytes.count, bytes[index] != 0 {
            let end = index + 1 + Int(bytes[index])
            guard end < bytes.count else { return nil }
            labels.append(String(decoding: bytes[(index + 1)..<end], as: UTF8.self))
            index = end
        }
        return (labels.joined(separator: "."), index + 1)
    }
}
