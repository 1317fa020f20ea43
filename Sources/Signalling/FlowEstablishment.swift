import DNS
import Network
import Primitives
import SIP

/// One attempt to reach a target, from the name to an open flow. Everything about it happens on the loop.
public final class FlowEstablishment: @unchecked Sendable {
    // @unchecked: made by a FlowConnector and touched on its loop only.

    private let connector: FlowConnector
    private let loop: EventLoop
    private let target: ServerTarget
    private var completion: (@Sendable (Result<RegisteredFlow, NetworkError>) -> Void)?
    private var locator: ServerLocator
    private var patience: TimerHandle?
    private var candidates: [ServerCandidate] = []
    private var race: ConnectionRace?
    private var raceTimer: TimerHandle?
    private var abandonments: [Int: () -> Void] = [:]
    private var failures: [Int: NetworkError] = [:]

    /// Failures that an error message names.
    private static let namedFailures = 6

    init(
        _ connector: FlowConnector, target: ServerTarget, random: RandomSource,
        completion: @escaping @Sendable (Result<RegisteredFlow, NetworkError>) -> Void
    ) {
        self.connector = connector
        self.target = target
        self.completion = completion
        loop = connector.loop
        locator = ServerLocator(target: target, random: random, history: connector.history, at: connector.loop.now)
    }

    /// Gives up; the completion is not called any more. A second call does nothing.
    public func cancel() {
        loop.checkIsolated()
        completion = nil
        patience?.cancel()
        raceTimer?.cancel()
        race = nil
        let all = abandonments.values
        abandonments = [:]
        for abandon in all { abandon() }
    }

    // MARK: Locating

    func start() {
        drainLocator()
    }

    private func drainLocator() {
        while completion != nil, let action = locator.nextAction() {
            switch action {
            case .ask(let question):
                // Holds on to this attempt, as nobody else has to.
                connector.dns.query(question) { [self] answer in
                    guard completion != nil else { return }
                    locator.receive(answer, to: question)
                    drainLocator()
                }
            case .found(let found):
                connect(to: found)
            case .failed(let failure):
                finish(.failure(NetworkError(failure)))
            }
        }
        waitNoLonger()
    }

    /// Bounds the wait for answers that are only nice to have.
    private func waitNoLonger() {
        guard completion != nil, race == nil, let delay = locator.patience else {
            patience?.cancel()
            patience = nil
            return
        }
        guard patience == nil else { return }
        patience = loop.schedule(after: delay) { [weak self] in
            self?.patience = nil
            self?.locator.proceed()
            self?.drainLocator()
        }
    }

    // MARK: Connecting

    private func connect(to found: [ServerCandidate]) {
        candidates = found
        race = ConnectionRace(found, at: loop.now)
        drainRace()
    }

    private func drainRace() {
        while let action = race?.nextAction() {
            switch action {
            case .open(let index): open(index)
            case .abandon(let index): abandonments.removeValue(forKey: index)?()
            case .won(let index): abandonments[index] = nil
            case .lost: finish(.failure(failure()))
            }
        }
        raceTimer?.cancel()
        raceTimer = nil
        guard let deadline = race?.nextTimeout else { return }
        raceTimer = loop.schedule(at: deadline) { [weak self] in
            guard let self else { return }
            self.race?.timeout(at: self.loop.now)
            self.drainRace()
        }
    }

    private func open(_ index: Int) {
        let candidate = candidates[index]
        let flowTarget = FlowTarget(
            transport: candidate.transport, address: candidate.address, domain: candidate.domain, path: target.path)
        let abandon = connector.open(flowTarget, Self.attemptTimeout) { [self] result in
            // Possibly from within the call that opens: after it.
            loop.execute { [self] in opened(index, result) }
        }
        abandonments[index] = abandon
    }

    /// For each step of one attempt: the connection, and each handshake on it.
    private static let attemptTimeout: Duration = .seconds(4)

    private func opened(_ index: Int, _ result: Result<RegisteredFlow, NetworkError>) {
        let candidate = candidates[index]
        guard completion != nil, let race, race.running.contains(index) else {
            // Too late: cancelled, or another one won.
            if case .success(let path) = result { connector.close(path.flow) }
            return
        }
        abandonments[index] = nil
        switch result {
        case .success(let path):
            connector.history.markReached(candidate.transport, candidate.address)
            self.race?.opened(index)
            drainRace()
            finish(.success(path))
        case .failure(let error):
            failures[index] = error
            let now = loop.now
            connector.history.markFailed(
                candidate.transport, candidate.address, until: now + FlowConnector.avoidance, at: now)
            self.race?.failed(index, at: now)
            drainRace()
        }
    }

    private func finish(_ result: Result<RegisteredFlow, NetworkError>) {
        let completion = completion
        cancel()
        completion?(result)
    }

    /// One error for all that was tried: the kind is that of the server that was wanted most.
    private func failure() -> NetworkError {
        var parts: [String] = []
        for (index, candidate) in candidates.enumerated() where race?.wasTried(index) == true {
            guard parts.count < Self.namedFailures else {
                parts.append("and others")
                break
            }
            parts.append("\(candidate): \(failures[index]?.message ?? "no answer in time")")
        }
        let code = failures.min { $0.key < $1.key }?.value.code ?? .timedOut
        return NetworkError(code, "cannot reach \(target.host): \(parts.joined(separator: "; "))")
    }
}

extension NetworkError {
    /// Why no server was found.
    fileprivate init(_ failure: ServerLocationFailure) {
        let code: Code =
            switch failure.kind {
            case .nameNotFound, .serviceNotOffered: .nameNotFound
            case .nameServerFailed: .nameServerFailed
            case .invalidTarget: .invalidAddress
            }
        self.init(code, failure.message)
    }
}
