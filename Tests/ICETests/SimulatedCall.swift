import Primitives
import STUN

@testable import ICE

/// Two agents that look for a path through a simulated internet; their descriptions cross by a signalling that takes time.
struct SimulatedCall {
    var internet: SimulatedInternet
    var agents: [ICEAgent]
    var paths: [[ICEPath]] = [[], []]
    var failures: [ICEFailure?] = [nil, nil]
    var payloads: [[(bytes: [UInt8], from: STUNAddress)]] = [[], []]
    var pathTimes: [MonotonicTime?] = [nil, nil]
    let start: MonotonicTime
    /// Descriptions and candidates on their way: to whom, what, when.
    private var signalling: [(to: Int, candidate: ICECandidate?, time: MonotonicTime)] = []
    private let isTrickling: Bool

    /// Both sides gather; the caller's description is on its way.
    init(
        _ kinds: [NATKind], usesSTUN: Bool = true, usesTURN: Bool = false, usesTURNStream: Bool = false,
        isTrickling: Bool = true, seed: UInt64 = 1, loss: Double = 0, isCallerControlling: [Bool] = [true, false],
        configure: (inout ICEConfiguration) -> Void = { _ in }
    ) {
        internet = SimulatedInternet(kinds, seed: seed)
        internet.loss = loss
        start = internet.now
        self.isTrickling = isTrickling
        var configuration = ICEConfiguration()
        configure(&configuration)
        agents = (0..<2).map { ICEAgent(configuration: configuration, random: .seeded(seed &* 31 &+ UInt64($0))) }
        var servers: [ICEServerAddress] = []
        if usesSTUN { servers.append(ICEServerAddress(address: SimulatedInternet.stun)) }
        if usesTURN {
            servers.append(
                ICEServerAddress(address: SimulatedInternet.turn, relay: SimulatedInternet.credentials))
        }
        if usesTURNStream {
            servers.append(
                ICEServerAddress(
                    address: SimulatedInternet.turnStream, relay: SimulatedInternet.credentials, stream: 9))
        }
        for index in 0..<2 {
            agents[index].gather(
                sockets: [ICESocket(id: 0, address: internet.sites[index].inside)], servers: servers, at: internet.now)
        }
        drain()
        let credentials = agents.map(\.localCredentials)
        if isTrickling {
            for index in 0..<2 {
                agents[index].start(
                    remote: credentials[1 - index], candidates: [], isControlling: isCallerControlling[index],
                    at: internet.now)
            }
            drain()
        }
    }

    /// Runs until both have a path or failed, or the time is over.
    mutating func run(for limit: Duration = .seconds(30), untilSettled: Bool = true) {
        let end = internet.now + limit
        while internet.now < end {
            if untilSettled, (0..<2).allSatisfy({ !paths[$0].isEmpty || failures[$0] != nil }) { return }
            let times =
                [internet.nextArrival, agents[0].nextTimeout, agents[1].nextTimeout].compactMap(\.self)
                + signalling.map(\.time)
            guard let next = times.min() else { return }
            internet.now = min(max(internet.now, next), end)
            for arrival in internet.arrivals() {
                let reception = agents[arrival.site].receive(
                    arrival.bytes, on: arrival.socket, from: arrival.from, at: internet.now)
                if case .payload(let bytes, let from) = reception { payloads[arrival.site].append((bytes, from)) }
            }
            deliverSignalling()
            for index in 0..<2 where agents[index].nextTimeout ?? .distantFuture <= internet.now {
                agents[index].timeout(at: internet.now)
            }
            drain()
        }
    }

    private mutating func deliverSignalling() {
        let due = signalling.filter { $0.time <= internet.now }
        signalling.removeAll { $0.time <= internet.now }
        for message in due {
            if let candidate = message.candidate {
                agents[message.to].addRemote(candidate, at: internet.now)
            } else if isTrickling {
                agents[message.to].endRemoteCandidates(at: internet.now)
            } else {
                agents[message.to].start(
                    remote: agents[1 - message.to].localCredentials,
                    candidates: agents[1 - message.to].localCandidates, isControlling: message.to == 0,
                    at: internet.now)
                agents[message.to].endRemoteCandidates(at: internet.now)
            }
        }
    }

    mutating func drain() {
        for index in 0..<2 {
            while let action = agents[index].nextAction() {
                switch action {
                case .send(let bytes, let socket, let to): internet.send(bytes, site: index, socket: socket, to: to)
                case .candidate(let candidate):
                    // Written and read as in an SDP.
                    guard isTrickling, let read = ICECandidate(attribute: candidate.attribute) else { continue }
                    signalling.append((1 - index, read, internet.now + .milliseconds(40)))
                case .gathered: signalling.append((1 - index, nil, internet.now + .milliseconds(40)))
                case .selected(let path):
                    paths[index].append(path)
                    if pathTimes[index] == nil { pathTimes[index] = internet.now }
                case .failed(let failure): failures[index] = failure
                }
            }
        }
    }

    /// Sends media over the path of one side, as its media thread would.
    mutating func sendMedia(_ bytes: [UInt8], from index: Int) {
        guard let path = agents[index].path else { return }
        var packet = bytes
        if let channel = path.channel {
            packet =
                [UInt8(channel >> 8), UInt8(channel & 0xFF), UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
        }
        internet.send(packet, site: index, socket: path.socket, to: path.destination)
    }
}
