import Primitives
import SDP
import SIP
import SinchEnvironment
import Signalling
import Token

// Sequences of messages, separated by two NULs, which no message holds. A piece such as `t1500` lets 1.5 s pass.

/// A user agent with a registration and calls.
@Sendable func fuzzUserAgent(_ bytes: [UInt8]) throws {
    let flow = SIPFlow(transport: .udp, remote: TransportAddress(host: "127.0.0.1", port: 5_060))
    let media = LocalMedia(address: "127.0.0.1", rtpPort: 30_000, rtcpPort: 30_001)
    var agent = UserAgent(
        configuration: UserAgentConfiguration(user: "bob", domain: "example.org", instanceID: "urn:uuid:1"),
        random: .seeded(5))
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    var calls: [CallHandle] = []
    func drain(_ agent: inout UserAgent, registering: Bool = false) throws {
        var answers: [SIPMessage] = []
        while let action = agent.nextAction() {
            if case .transmit(let message, _) = action {
                try check(message)
                if registering, message.method == .register {
                    answers.append(message.response(status: 200, toTag: "r"))
                }
            }
            if case .call(let handle, .incoming) = action { calls.append(handle) }
        }
        for var answer in answers {
            answer.expires = 600
            agent.receive(answer, from: flow, at: now)
            try drain(&agent)
        }
    }
    agent.start(at: now)
    agent.flowOpened(
        RegisteredFlow(flow: flow, local: TransportAddress(host: "127.0.0.1", port: 6_000)), at: now)
    try drain(&agent, registering: true)
    _ = agent.call(SIPURI(user: "alice", host: "example.org"), media: media, at: now)
    try drain(&agent)
    for piece in bytes.pieces(separatedBy: [0, 0]).prefix(64) {
        if let pause = pause(piece) {
            now += pause
            while let next = agent.nextTimeout, next <= now {
                agent.timeout(at: now)
                try drain(&agent)
                if let again = agent.nextTimeout, again <= now {
                    throw Finding(description: "a timeout is due again at once")
                }
            }
        } else if piece == [UInt8(ascii: "a")], let call = calls.popLast() {
            agent.answer(call, media: media, at: now)
        } else if let message = try? SIPMessage.parse(piece) {
            agent.receive(message, from: flow, at: now)
        }
        try drain(&agent)
    }
}

/// The environment with two registered users.
@Sendable func fuzzEnvironment(_ bytes: [UInt8]) throws {
    let application = "a32e5a8d-f7d8-411c-9645-9038e8dd051d"
    let secret = try ApplicationSecret(bytes: Array("0123456789abcdef".utf8))
    let started: Int64 = 1_700_000_000
    var configuration = EnvironmentConfiguration(
        applications: [.init(key: application, secret: secret)],
        listen: [.udp: TransportAddress(host: "127.0.0.1", port: 5_060)])
    configuration.realm = "example.org"
    var core = EnvironmentCore(configuration: configuration, random: .seeded(7))
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    func drain(_ core: inout EnvironmentCore) throws {
        while let action = core.nextAction() {
            if case .send(let message, _) = action { try check(message) }
        }
    }
    let flows = [UInt16(40_001), 40_002].map {
        SIPFlow(transport: .udp, remote: TransportAddress(host: "127.0.0.1", port: $0))
    }
    for (user, flow) in zip(["alice", "bob"], flows) {
        let token = try RegistrationToken.sign(
            applicationKey: application, applicationSecret: secret, userID: user, issuedAt: started, lifetime: 600,
            nonce: user)
        let uri = SIPURI(user: user, host: "example.org")
        var register = SIPMessage(request: .register, uri: SIPURI(user: nil, host: "example.org"))
        register.prependVia(
            SIPVia(transport: "UDP", host: "127.0.0.1", port: flow.remote.port, branch: "z9hG4bK" + user))
        register.to = SIPAddress(uri: uri)
        var from = SIPAddress(uri: uri)
        from.tag = user
        register.from = from
        register.callID = user
        register.cseq = SIPCSeq(number: 1, method: .register)
        register.contacts = [SIPAddress(uri: SIPURI(user: user, host: "127.0.0.1", port: flow.remote.port))]
        register.headers.append("Authorization", "Bearer " + token)
        core.receive(register, from: flow, at: now, unixTime: started)
        try drain(&core)
    }
    try expect(core.registrationCount == 2, "the users are not registered")
    for piece in bytes.pieces(separatedBy: [0, 0]).prefix(64) {
        if let pause = pause(piece) {
            now += pause
            core.timeout(at: now)
            if let next = core.nextTimeout, next <= now { throw Finding(description: "a timeout is due again at once") }
        } else if let side = piece.first {
            // The first byte says from whom.
            let message = [UInt8](piece.dropFirst())
            let flow = flows[Int(side & 1)]
            do throws(SIPParseError) {
                core.receive(try SIPMessage.parse(message), from: flow, at: now, unixTime: started)
            } catch {
                core.receiveMalformed(message, error: error, from: flow, at: now)
            }
        }
        try drain(&core)
    }
}

private func pause(_ piece: [UInt8]) -> Duration? {
    guard piece.first == UInt8(ascii: "t"), piece.count <= 8,
        let milliseconds = Int(String(decoding: piece.dropFirst(), as: UTF8.self)), milliseconds >= 0
    else { return nil }
    return .milliseconds(milliseconds)
}

/// What is sent must be SIP.
private func check(_ message: SIPMessage) throws {
    let printed: [UInt8]
    do {
        printed = try message.encoded()
    } catch {
        throw Finding(description: "sent, but not printed: \(error)")
    }
    guard let again = try? SIPMessage.parse(printed) else {
        throw Finding(description: "sent, but not read: \(printed.readable)")
    }
    if message.isRequest {
        try expect(
            again.validate() == nil, "sent, but not valid: \(again.validate()?.reason ?? "") \(printed.readable)")
    }
}
