import DNS
import Primitives

/// Finds the servers of a target by the rules of RFC 3263: which questions to ask, and what follows from the answers.
///
/// A value without I/O or clock. Take actions until there is none, pass answers in as they come, take actions again. The
/// questions of one step may be asked side by side.
public struct ServerLocator: Sendable {
    /// What is to be done.
    public enum Action: Hashable, Sendable {
        /// Ask this question and pass the answer to `receive`.
        case ask(DNSQuestion)
        /// Try these, in this order. The last action.
        case found([ServerCandidate])
        /// There is no server to try. The last action.
        case failed(ServerLocationFailure)
    }

    /// Candidates that are tried at most; a domain with more than that is beyond help.
    public static let maximumCandidates = 32
    /// Servers whose addresses are asked for.
    static let maximumServers = 12

    /// A name that may be followed to servers: an SRV name, or a host with the transport's own port.
    enum Route: Hashable, Sendable {
        case service(SIPTransport, name: String)
        case host(SIPTransport, name: String, port: UInt16)
    }

    /// A server whose addresses are wanted.
    struct Server: Hashable, Sendable {
        var transport: SIPTransport
        var name: String
        var port: UInt16
    }

    private enum Step: Sendable {
        case services
        case routes([Route])
        case addresses([Server])
        case done
    }

    private let target: ServerTarget
    /// The target's host without the brackets of IPv6.
    private let host: String
    private let transports: [SIPTransport]
    private let history: ServerHistory
    private let now: MonotonicTime
    private var random: RandomSource
    private var step = Step.services
    private var answers: [DNSQuestion: DNSAnswer] = [:]
    private var asked: Set<DNSQuestion> = []
    /// Questions of the present step that have no answer yet.
    private var pending: Set<DNSQuestion> = []
    private var actions: [Action] = []

    /// Starts to locate a target.
    ///
    /// - Parameters:
    ///   - target: what is to be reached.
    ///   - random: decides among servers by their weights.
    ///   - history: servers that failed lately.
    ///   - now: the present time, for the history.
    public init(target: ServerTarget, random: RandomSource, history: ServerHistory, at now: MonotonicTime) {
        self.target = target
        host = Host.withoutBrackets(target.host)
        self.random = random
        self.history = history
        self.now = now
        transports = target.usableTransports
        start()
    }

    /// The next thing to do; nil when answers are waited for or all is done.
    public mutating func nextAction() -> Action? {
        actions.isEmpty ? nil : actions.removeFirst()
    }

    /// Takes an answer. Answers that are not waited for do nothing.
    public mutating func receive(_ answer: DNSAnswer, to question: DNSQuestion) {
        guard pending.remove(question) != nil else { return }
        answers[question] = answer
        if pending.isEmpty { advance() }
    }

    /// For how long the missing answers are worth waiting for, when there is enough to go on without them; nil while they
    /// are needed. Looked at after every answer; call `proceed` when the time has passed.
    ///
    /// Some name servers never answer NAPTR or AAAA; nobody should wait for their time-outs.
    public var patience: Duration? {
        guard !pending.isEmpty else { return nil }
        switch step {
        case .services:
            let hasServices = transports.contains { !services(at: serviceName($0)).isEmpty }
            return hasServices && pending == [naptrQuestion] ? .seconds(1) : nil
        case .addresses(let servers):
            // RFC 8305, section 3 waits 50 ms, for a web page; a server that is not asked for here is no alternative later.
            return servers.first.map { !addresses(of: $0.name).isEmpty } == true ? .milliseconds(200) : nil
        case .routes, .done:
            return nil
        }
    }

    /// Goes on without the answers that are missing. Does nothing while they are needed.
    public mutating func proceed() {
        guard patience != nil else { return }
        pending = []
        advance()
    }

    // MARK: Steps

    private mutating func start() {
        guard let first = transports.first else {
            fail(
                .invalidTarget,
                target.isSecure
                    ? "\(target.host) may be reached over TLS only, but not with the given transport; use tls or wss"
                    : "no transport is allowed toward \(target.host); allow at least one, such as tls")
            return
        }
        let port = target.port ?? first.defaultPort
        if Host.isNumeric(host) {
            let address = TransportAddress(host: host, port: port)
            finish([ServerCandidate(transport: first, address: address, server: host, domain: target.domain)])
            return
        }
        guard DNSName.isValid(host) else {
            fail(.invalidTarget, "\"\(host.prefix(64))\" is not a host name; \(DNSFailure.invalidName)")
            return
        }
        // RFC 3263, 4.1 and 4.2: a port settles that there is nothing to look up but the addresses.
        if target.port != nil {
            askForAddresses([Server(transport: first, name: host, port: port)])
            return
        }
        // The SRV names follow from the domain, so they are asked for side by side with NAPTR and not after it.
        let questions = transports.map { DNSQuestion(serviceName($0), .srv) }
        ask((target.transport == nil ? [naptrQuestion] : []) + questions)
    }

    private mutating func advance() {
        switch step {
        case .services: followServices()
        case .routes(let routes): followRoutes(routes)
        case .addresses(let servers): collect(servers)
        case .done: break
        }
    }

    /// NAPTR and the usual SRV names are answered: what leads on?
    private mutating func followServices() {
        if answers.values.allSatisfy({ $0 == .failed(.timedOut) }) {
            fail(
                .nameServerFailed,
                "cannot look up \(target.host): \(DNSFailure.timedOut); check the network, or give a port, as then only the address is asked for"
            )
            return
        }
        let rules = rulesInOrder()
        let routes =
            rules.isEmpty ? transports.map { Route.service($0, name: serviceName($0)) } : rules
        step = .routes(routes)
        let questions = routes.compactMap { route in
            if case .service(_, let name) = route { DNSQuestion(name, .srv) } else { nil }
        }
        ask(questions)
    }

    /// What the NAPTR records offer of what may be used, by order and preference (RFC 3263, 4.1). A record of a transport
    /// that may not be used is as if it were not there, so nothing in DNS leads from TLS to anything less.
    private func rulesInOrder() -> [Route] {
        guard case .records(let records) = answers[naptrQuestion] else { return [] }
        let rules = records.compactMap { if case .rule(let rule) = $0 { rule } else { nil } }
        var routes: [Route] = []
        for rule in rules.sorted(by: { ($0.order, $0.preference) < ($1.order, $1.preference) }) {
            guard let transport = SIPTransport(naptrService: rule.service), transports.contains(transport),
                rule.regexp.isEmpty, !rule.replacement.isEmpty, routes.count < Self.maximumServers
            else { continue }
            switch rule.flags {
            case "s": routes.append(.service(transport, name: rule.replacement + "."))
            case "a": routes.append(.host(transport, name: rule.replacement + ".", port: transport.defaultPort))
            default: continue
            }
        }
        return routes
    }

    private mutating func followRoutes(_ routes: [Route]) {
        var servers: [Server] = []
        var isRefused = false
        for route in routes {
            switch route {
            case .host(let transport, let name, let port):
                servers.append(Server(transport: transport, name: name, port: port))
            case .service(let transport, let name):
                let records = services(at: name)
                // RFC 2782: "." says that the service is decidedly not there.
                let offered = records.filter { !$0.target.isEmpty }
                if offered.isEmpty, !records.isEmpty { isRefused = true }
                servers += ServiceOrder.sorted(offered, using: &random).map {
                    Server(transport: transport, name: $0.target + ".", port: $0.port)
                }
            }
        }
        if servers.isEmpty {
            guard !isRefused else {
                fail(
                    .serviceNotOffered,
                    "\(target.host) says in DNS (SRV) that it offers no SIP over \(transportNames); check the domain")
                return
            }
            // RFC 3263, 4.2: without SRV records the host itself is the server.
            servers = transports.prefix(1).map {
                Server(transport: $0, name: host, port: $0.defaultPort)
            }
        }
        var seen: Set<Server> = []
        askForAddresses(Array(servers.filter { seen.insert($0).inserted }.prefix(Self.maximumServers)))
    }

    private mutating func askForAddresses(_ servers: [Server]) {
        step = .addresses(servers)
        ask(
            servers.filter { !Host.isNumeric(DNSName.withoutFinalDot($0.name)) }
                .flatMap { [DNSQuestion($0.name, .aaaa), DNSQuestion($0.name, .a)] })
    }

    private mutating func collect(_ servers: [Server]) {
        var candidates: [ServerCandidate] = []
        for server in servers {
            let name = DNSName.withoutFinalDot(server.name)
            candidates += AddressOrder.sorted(addresses(of: server.name)).map { address in
                ServerCandidate(
                    transport: server.transport, address: TransportAddress(host: address, port: server.port),
                    server: name, domain: target.domain)
            }
        }
        if candidates.isEmpty { failWithoutAddresses(servers) } else { finish(candidates) }
    }

    private mutating func failWithoutAddresses(_ servers: [Server]) {
        let names = servers.map { DNSName.withoutFinalDot($0.name) }
        let list = Set(names).sorted().prefix(4).joined(separator: ", ")
        let failures = servers.flatMap { [answers[DNSQuestion($0.name, .aaaa)], answers[DNSQuestion($0.name, .a)]] }
            .compactMap { if case .failed(let failure) = $0 { failure } else { nil } }
        if let failure = failures.first {
            fail(.nameServerFailed, "cannot look up \(list): \(failure); check the network and the name servers")
        } else {
            fail(.nameNotFound, "\(list) has no address in DNS; check the name")
        }
    }

    // MARK: Questions and answers

    private mutating func ask(_ questions: [DNSQuestion]) {
        for question in questions where asked.insert(question).inserted {
            pending.insert(question)
            actions.append(.ask(question))
        }
        // All known already, or nothing to ask.
        if pending.isEmpty { advance() }
    }

    private mutating func finish(_ candidates: [ServerCandidate]) {
        step = .done
        actions.append(.found(Array(history.sorted(candidates, at: now).prefix(Self.maximumCandidates))))
    }

    private mutating func fail(_ kind: ServerLocationFailure.Kind, _ message: String) {
        step = .done
        actions.append(.failed(ServerLocationFailure(kind, message)))
    }

    private var naptrQuestion: DNSQuestion { DNSQuestion(host, .naptr) }

    private func serviceName(_ transport: SIPTransport) -> String { transport.servicePrefix + host }

    private func services(at name: String) -> [SRVRecord] {
        guard case .records(let records) = answers[DNSQuestion(name, .srv)] else { return [] }
        return records.compactMap { if case .service(let service) = $0 { service } else { nil } }
    }

    private func addresses(of name: String) -> [String] {
        let bare = DNSName.withoutFinalDot(name)
        if Host.isNumeric(bare) { return [bare] }
        return [DNSQuestion(name, .aaaa), DNSQuestion(name, .a)].flatMap { question -> [String] in
            guard case .records(let records) = answers[question] else { return [] }
            return records.compactMap { if case .address(let address) = $0 { address } else { nil } }
        }
    }

    private var transportNames: String { transports.map(\.rawValue).joined(separator: ", ") }
}
