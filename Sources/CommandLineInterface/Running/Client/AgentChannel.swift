import Agent
import Configuration
import FoundationEssentials
import Glibc
import Network

/// The command line's end of an agent's control socket: requests, answers, and events that come in between.
///
/// It blocks and uses no event loop, so that `sinchctl status` costs a few milliseconds.
final class AgentChannel {
    /// Whose agent this is.
    let user: String
    private let client: UnixLineClient
    private var nextId: Int64 = 1
    private var events: [AgentEvent] = []

    private init(user: String, client: UnixLineClient) {
        self.user = user
        self.client = client
    }

    /// Users whose agents have a socket in the runtime directory; whether they answer is another matter.
    static func users(_ paths: Paths) -> [String] {
        guard let directory = opendir(paths.runtimeDirectory) else { return [] }
        defer { closedir(directory) }
        var users: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasSuffix(".sock") { users.append(String(name.dropLast(5))) }
        }
        return users.sorted()
    }

    /// Connects to a user's agent; without a user to the only one that runs.
    static func connect(user: String?, paths: Paths) throws(CommandFailure) -> AgentChannel {
        if let user {
            guard let channel = try open(user: user, paths: paths) else {
                throw CommandFailure(
                    exit: .unreachable, message: "no client for \(user) is running",
                    hint: "start one: sinchctl start --user \(user)")
            }
            return channel
        }
        let running = all(paths)
        guard let first = running.first else {
            throw CommandFailure(
                exit: .unreachable, message: "no client is running", hint: "start one: sinchctl start --user NAME")
        }
        guard running.count == 1 else {
            throw CommandFailure(
                exit: .usage, message: "several clients are running: \(running.map(\.user).joined(separator: ", "))",
                hint: "choose one with --as")
        }
        return first
    }

    /// Every agent that answers.
    static func all(_ paths: Paths) -> [AgentChannel] {
        users(paths).compactMap { try? open(user: $0, paths: paths) }
    }

    /// Connects; nil when nobody serves the socket.
    private static func open(user: String, paths: Paths) throws(CommandFailure) -> AgentChannel? {
        let socket = try AgentPlaces.socket(user: user, paths: paths)
        do {
            return AgentChannel(user: user, client: try UnixLineClient(path: socket, timeout: .seconds(2)))
        } catch {
            switch error.code {
            case .connectionRefused, .other(ENOENT): return nil
            default:
                throw CommandFailure(
                    exit: .unreachable, message: "the client for \(user) cannot be reached: \(error.message)")
            }
        }
    }

    /// The descriptor to wait on, beside others.
    var descriptor: Int32 { client.fileDescriptor }

    /// Sends a request and waits for its answer; events that come first are kept for `nextEvent`.
    ///
    /// - Parameter timeout: for the answer; nil waits for ever.
    func request(
        _ method: String, _ parameters: AgentValue = .object([:]), timeout: Duration? = .seconds(5)
    ) throws(CommandFailure) -> AgentValue {
        let id = nextId
        nextId += 1
        let deadline = timeout.map { ContinuousClock.now + $0 }
        do {
            try client.send(AgentProtocol.encode(AgentRequest(id: id, method: method, params: parameters)))
        } catch {
            throw lost(error)
        }
        while true {
            let left = deadline.map { max(.zero, $0 - .now) }
            switch try receive(timeout: left) {
            case .response(let response) where response.id == .integer(id):
                if let error = response.error {
                    throw error.data ?? CommandFailure(exit: .internalError, message: error.message)
                }
                return response.result ?? .null
            case .response: continue
            case .event(let event): events.append(event)
            case .nothing:
                throw CommandFailure(
                    exit: .timeout, message: "the client for \(user) did not answer '\(method)' in time",
                    hint: "see: sinchctl status")
            case .end:
                // An agent that was asked to end has nothing more to say.
                if method == "terminate" { return .null }
                throw gone
            }
        }
    }

    /// What `nextEvent` found.
    enum Event {
        /// This happened.
        case happened(AgentEvent)
        /// Nothing yet.
        case nothing
        /// The agent has ended.
        case end
    }

    /// The next event.
    func nextEvent(timeout: Duration?) throws(CommandFailure) -> Event {
        if !events.isEmpty { return .happened(events.removeFirst()) }
        while true {
            switch try receive(timeout: timeout) {
            case .event(let event): return .happened(event)
            case .response: continue
            case .nothing: return .nothing
            case .end: return .end
            }
        }
    }

    private enum Line {
        case response(AgentResponse)
        case event(AgentEvent)
        case nothing
        case end
    }

    private func receive(timeout: Duration?) throws(CommandFailure) -> Line {
        let line: [UInt8]
        do {
            guard let received = try client.receiveLine(timeout: timeout) else { return .end }
            line = received
        } catch {
            if error.code == .timedOut { return .nothing }
            if error.code == .reset || error.code == .closed { return .end }
            throw lost(error)
        }
        let decoder = JSONDecoder()
        if let notification = try? decoder.decode(AgentNotification.self, from: Data(line)) {
            return .event(notification.params)
        }
        guard let response = try? decoder.decode(AgentResponse.self, from: Data(line)) else {
            throw CommandFailure(
                exit: .internalError, message: "the client for \(user) said something that is not its protocol",
                hint: "is it of the same version? end it and start it again")
        }
        return .response(response)
    }

    private func lost(_ error: NetworkError) -> CommandFailure {
        CommandFailure(exit: .unreachable, message: "the client for \(user) was lost: \(error.message)")
    }

    /// The failure of a command whose agent has ended meanwhile.
    var gone: CommandFailure {
        CommandFailure(
            exit: .unreachable, message: "the client for \(user) ended",
            hint: "start it again: sinchctl start --user \(user)")
    }
}
