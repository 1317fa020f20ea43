import Agent
import CSys
import Configuration
import FoundationEssentials
import Glibc
import Network

/// The command line's end of an agent's control socket: requests, answers, and events that come in between.
///
/// It blocks and uses no event loop, so that `sinchctl status` costs a few milliseconds.
final class AgentChannel {
    /// Whose agent this is.
    private(set) var user: String
    /// Whether it did not answer at once.
    private(set) var isStuck = false
    private let client: UnixLineClient
    private var nextId: Int64 = 1
    private var events: [AgentEvent] = []

    private init(user: String, client: UnixLineClient) {
        self.user = user
        self.client = client
    }

    /// Connects to a user's agent; without a user to the only one that runs.
    static func connect(user: String?, paths: Paths) throws(CommandFailure) -> AgentChannel {
        if let user {
            guard let channel = try open(AgentPlaces.socket(user: user, paths: paths), user: user) else {
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

    /// Every agent that serves its socket, also one that is stuck.
    static func all(_ paths: Paths) -> [AgentChannel] {
        AgentPlaces.sockets(in: paths).compactMap { socket -> AgentChannel? in
            // The file's name is cut for long users: the agent itself says whose it is.
            guard let channel = try? open(socket, user: nil) else { return nil }
            do {
                channel.user = try channel.request("hello", timeout: .seconds(2))["user"]?.string ?? channel.user
            } catch {
                guard (error as? CommandFailure)?.exit == .timeout else { return nil }
                channel.isStuck = true
            }
            return channel
        }
    }

    /// Connects; nil when nobody serves the socket.
    private static func open(_ socket: String, user: String?) throws(CommandFailure) -> AgentChannel? {
        let user = user ?? AgentPlaces.user(ofSocket: socket)
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

    /// Ends the agent and returns when its process is gone; by force when the time runs out.
    ///
    /// - Throws: `timeout` when it had to be killed.
    func terminate(within limit: Duration) throws(CommandFailure) {
        let deadline = ContinuousClock.now + limit
        // The kernel says who listens, also when that process says nothing any more.
        let pid = client.credentials.processID
        // A descriptor of the process, taken while it lives: its number may pass to another one afterwards.
        let process = csys_pidfd_open(pid)
        defer { if process >= 0 { close(process) } }
        do {
            _ = try request("terminate", timeout: max(.zero, deadline - .now))
        } catch {
            guard error.exit == .timeout else { throw error }
        }
        guard process >= 0 else { return }
        var polled = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
        let left = max(.zero, deadline - .now)
        if poll(&polled, 1, Int32(clamping: left.components.seconds * 1_000) &+ 500) > 0 { return }
        kill(pid, SIGKILL)
        throw CommandFailure(
            exit: .timeout, message: "the client for \(user) did not end in time and was killed",
            hint: "its registration ends by itself")
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
