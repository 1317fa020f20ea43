import Primitives
import SDP
import SIP
import SinchEnvironment
import Signalling
import Token

// Sequences of messages, separated by two NULs, which no message holds. Other pieces stand for what random bytes would
// never make: `t1500` lets 1.5 s pass, `r200` answers the last request, with what follows as further lines and body, and
// `d` and a message is that message with `$I`, `$T` and `$B` in it replaced by the Call-ID, our tag and the branch that
// were last sent.

/// A user agent with a registration and calls.
@Sendable func fuzzUserAgent(_ bytes: [UInt8]) throws {
    let flow = SIPFlow(transport: .udp, remote: TransportAddress(host: "127.0.0.1", port: 5_060))
    let media = LocalMedia(address: "127.0.0.1", rtpPort: 30_000, rtcpPort: 30_001)
    var agent = UserAgent(
        configuration: UserAgentConfiguration(user: "bob", domain: "example.org", instanceID: "urn:uuid:1"),
        random: .seeded(5))
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    var calls: [CallHandle] = []
    var sent = LastSent()
    func drain(_ agent: inout UserAgent, registering: Bool = false) throws {
        var answers: [SIPMessage] = []
        while let action = agent.nextAction() {
            if case .transmit(let message, _) = action {
                try check(message)
                sent.note(message)
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
        } else if let message = try? SIPMessage.parse(sent.completed(piece)) {
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
    var sent = LastSent()
    func drain(_ core: inout EnvironmentCore) throws {
        while let action = core.nextAction() {
            guard case .send(let message, _) = action else { continue }
            try check(message)
            sent.note(message)
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
            let message = sent.completed([UInt8](piece.dropFirst()))
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

/// What a peer knows of what was sent to it.
private struct LastSent {
    private var request: SIPMessage?
    private var callID = ""
    private var tag = ""
    private var branch = ""

    mutating func note(_ message: SIPMessage) {
        if message.isRequest, message.method != .ack { request = message }
        callID = message.callID ?? callID
        tag = (message.isRequest ? message.from?.tag : message.to?.tag) ?? tag
        branch = message.topVia?.branch ?? branch
    }

    /// The message that a piece stands for.
    func completed(_ piece: [UInt8]) -> [UInt8] {
        switch piece.first {
        case UInt8(ascii: "r"):
            guard piece.count >= 4, let status = Int(String(decoding: piece[1...3], as: UTF8.self)),
                let response = request?.response(status: status, toTag: "peer"), let printed = try? response.encoded()
            else { return piece }
            // Without the Content-Length that the printer adds: what follows brings lines, an empty one, and a body.
            let end = "Content-Length: 0\r\n\r\n".utf8.count
            return printed.dropLast(end) + (piece.count > 4 ? [UInt8](piece[4...]) : Array("\r\n".utf8))
        case UInt8(ascii: "d"):
            var result: [UInt8] = []
            for byte in piece.dropFirst() {
                guard result.last == UInt8(ascii: "$") else {
                    result.append(byte)
                    continue
                }
                let text: String? =
                    switch byte {
                    case UInt8(ascii: "I"): callID
                    case UInt8(ascii: "T"): tag
                    case UInt8(ascii: "B"): branch
                    default: nil
                    }
                if let text {
                    result.removeLast()
                    result += text.utf8
                } else {
                    result.append(byte)
                }
            }
            return result
        default: return piece
        }
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
