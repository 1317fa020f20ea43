import Crypto
import Primitives
import SIP
import SinchEnvironment
import Testing
import Token

/// One environment in simulated time, and what it sent to whom.
struct World {
    static let realm = "sinchctl.localhost"
    static let application = "a32e5a8d-f7d8-411c-9645-9038e8dd051d"
    static let otherApplication = "0f0e2c3a-1111-4222-8333-444455556666"
    static let unixStart: Int64 = 1_700_000_000

    var core: EnvironmentCore
    var now = MonotonicTime(nanoseconds: 5_000_000_000)
    var sent: [(message: SIPMessage, flow: SIPFlow)] = []
    var events: [EnvironmentEvent] = []
    private var random: RandomSource
    private var connections: UInt64 = 0

    static func secret(_ application: String) -> [UInt8] {
        Array(sha256(Array(application.utf8)).prefix(16))
    }

    static func configuration() throws -> EnvironmentConfiguration {
        EnvironmentConfiguration(
            applications: try [application, otherApplication].map {
                .init(key: $0, secret: try ApplicationSecret(bytes: secret($0)))
            },
            listen: [
                .udp: TransportAddress(host: "127.0.0.1", port: 5060),
                .tcp: TransportAddress(host: "127.0.0.1", port: 5060),
            ])
    }

    init(seed: UInt64 = 1, _ change: (inout EnvironmentConfiguration) -> Void = { _ in }) throws {
        var configuration = try Self.configuration()
        change(&configuration)
        core = EnvironmentCore(configuration: configuration, random: .seeded(seed))
        random = .seeded(seed ^ 0xABCD)
    }

    var unixTime: Int64 { Self.unixStart + now.nanoseconds / 1_000_000_000 }

    // MARK: Time and messages

    /// Hands a message to the environment as it would come from the network: printed and parsed.
    mutating func deliver(_ message: SIPMessage, from flow: SIPFlow) throws {
        core.receive(try SIPMessage.parse(try message.encoded()), from: flow, at: now, unixTime: unixTime)
        try collect()
    }

    /// Lets time pass, calling the environment whenever it asked for it.
    mutating func advance(by duration: Duration) throws {
        let end = now + duration
        while let next = core.nextTimeout, next <= end {
            now = max(now, next)
            core.timeout(at: now)
            try collect()
        }
        now = end
    }

    mutating func fail(_ flow: SIPFlow, reason: String = "connection refused") throws {
        core.flowFailed(flow, reason: reason, at: now)
        try collect()
    }

    mutating func collect() throws {
        while let action = core.nextAction() {
            switch action {
            case .send(let message, let flow):
                // Whatever it sends must be printable and readable.
                sent.append((try SIPMessage.parse(try message.encoded()), flow))
            case .log(let event): events.append(event)
            }
        }
    }

    /// Takes what was sent over a flow.
    mutating func take(_ flow: SIPFlow) -> [SIPMessage] {
        let taken = sent.filter { $0.flow == flow }.map(\.message)
        sent.removeAll { $0.flow == flow }
        return taken
    }

    mutating func takeResponses(_ flow: SIPFlow) -> [SIPMessage] {
        take(flow).filter { !$0.isRequest && $0.status != 100 }
    }

    // MARK: Clients

    mutating func client(
        _ name: String, _ transport: SIPTransport = .udp, port: UInt16, application: String = World.application
    ) -> Client {
        connections += 1
        let flow = SIPFlow(
            transport: transport, remote: TransportAddress(host: "127.0.0.1", port: port),
            connection: transport.isReliable ? connections : 0)
        return Client(
            name: name, application: application, flow: flow,
            instance: "<urn:uuid:00000000-0000-4000-8000-\(padded(port))>", seed: random.next())
    }

    private func padded(_ port: UInt16) -> String {
        String(repeating: "0", count: 12 - String(port).count) + String(port)
    }

    func token(for client: Client, user: String? = nil, lifetime: Int64 = 600, age: Int64 = 0) throws -> String {
        try RegistrationToken.sign(
            applicationKey: client.application,
            applicationSecret: ApplicationSecret(bytes: Self.secret(client.application)),
            userID: user ?? client.name, issuedAt: unixTime - age, lifetime: lifetime, nonce: "n-\(client.name)")
    }

    /// Registers a client and expects success.
    mutating func register(_ client: inout Client, expires: Int? = nil) throws {
        var request = client.register(token: try token(for: client))
        if let expires { request.expires = expires }
        try deliver(request, from: client.flow)
        let answers = takeResponses(client.flow)
        try #require(answers.last?.status == 200, "\(answers)")
    }

    mutating func registered(
        _ name: String, _ transport: SIPTransport = .udp, port: UInt16, application: String = World.application
    ) throws -> Client {
        var client = client(name, transport, port: port, application: application)
        try register(&client)
        return client
    }

    /// Delivers an INVITE and gives what each callee got.
    mutating func invite(_ caller: inout Client, _ callee: String, callees: [Client]) throws -> (
        invite: SIPMessage, received: [SIPMessage]
    ) {
        let invite = caller.request(.invite, to: callee)
        try deliver(invite, from: caller.flow)
        let received = try callees.map { callee in
            let requests = take(callee.flow).filter { $0.method == .invite }
            return try #require(requests.first, "no INVITE reached \(callee.name)")
        }
        return (invite, received)
    }
}

/// A scripted client: makes and answers messages, decides nothing.
struct Client {
    let name: String
    let application: String
    var flow: SIPFlow
    var instance: String
    private var random: RandomSource
    private var registerCallID: String
    private var registerSequence: UInt32 = 0

    init(name: String, application: String, flow: SIPFlow, instance: String, seed: UInt64) {
        self.name = name
        self.application = application
        self.flow = flow
        self.instance = instance
        random = .seeded(seed)
        registerCallID = random.hexadecimal(bits: 64)
    }

    var addressOfRecord: SIPURI { SIPURI(user: name, host: World.realm) }

    var contact: SIPAddress {
        var uri = SIPURI(user: name, host: flow.remote.host, port: flow.remote.port)
        if flow.transport != .udp { uri.parameters["transport"] = flow.transport.rawValue }
        return SIPAddress(uri: uri)
    }

    var registrationContact: SIPAddress {
        var contact = contact
        contact.parameters["+sip.instance"] = "\"\(instance)\""
        contact.parameters["reg-id"] = "1"
        return contact
    }

    mutating func via() -> SIPVia {
        var via = SIPVia(
            transport: flow.transport.viaName, host: flow.remote.host, port: flow.remote.port,
            branch: "z9hG4bK" + random.hexadecimal(bits: 64))
        via.parameters.setFlag("rport")
        return via
    }

    mutating func register(token: String?) -> SIPMessage {
        registerSequence += 1
        var request = SIPMessage(request: .register, uri: SIPURI(user: nil, host: World.realm))
        request.prependVia(via())
        request.maxForwards = 70
        var from = SIPAddress(uri: addressOfRecord)
        from.tag = random.hexadecimal(bits: 32)
        request.from = from
        request.to = SIPAddress(uri: addressOfRecord)
        request.callID = registerCallID
        request.cseq = SIPCSeq(number: registerSequence, method: .register)
        request.contacts = [registrationContact]
        request.headers.append("Supported", "outbound, path")
        if let token { request.headers.append("Authorization", "Bearer " + token) }
        return request
    }

    mutating func request(_ method: SIPMethod, to user: String, body: [UInt8] = Array("v=0\r\n".utf8)) -> SIPMessage {
        let uri = SIPURI(user: user, host: World.realm)
        var request = SIPMessage(request: method, uri: uri)
        request.prependVia(via())
        request.maxForwards = 70
        var from = SIPAddress(uri: addressOfRecord)
        from.tag = random.hexadecimal(bits: 32)
        request.from = from
        request.to = SIPAddress(uri: uri)
        request.callID = random.hexadecimal(bits: 64)
        request.cseq = SIPCSeq(number: 1, method: method)
        request.contacts = [contact]
        request.contentType = "application/sdp"
        request.body = body
        return request
    }

    /// A response of this client to a request that it got.
    func response(_ status: Int, to request: SIPMessage, reason: String? = nil) -> SIPMessage {
        var response = request.response(
            status: status, reason: reason, toTag: status > 100 ? "tag-\(flow.remote.port)" : nil)
        if (101..<300).contains(status) { response.contacts = [contact] }
        return response
    }

    /// The dialog of the client that sent `invite` and got `response`.
    func callerDialog(_ invite: SIPMessage, _ response: SIPMessage) throws -> SIPDialog {
        try SIPDialog(asClientFor: invite, response: response)
    }

    /// The dialog of the client that got `invite`.
    func calleeDialog(_ invite: SIPMessage) throws -> SIPDialog {
        try SIPDialog(asServerFor: invite, localTag: "tag-\(flow.remote.port)")
    }

    /// Makes a dialog's request ready to be sent.
    mutating func stamped(_ request: SIPMessage) -> SIPMessage {
        var request = request
        request.prependVia(via())
        return request
    }

    /// The CANCEL of a request that this client sent.
    func cancel(_ invite: SIPMessage, reason: String? = nil) -> SIPMessage {
        companion(.cancel, of: invite, to: invite.to, reason: reason)
    }

    /// The ACK of a refusal.
    func ack(_ invite: SIPMessage, refusal: SIPMessage) -> SIPMessage {
        companion(.ack, of: invite, to: refusal.to, reason: nil)
    }

    private func companion(_ method: SIPMethod, of invite: SIPMessage, to: SIPAddress?, reason: String?) -> SIPMessage {
        var request = SIPMessage(request: method, uri: invite.requestURI ?? addressOfRecord)
        request.vias = Array(invite.vias.prefix(1))
        request.maxForwards = 70
        request.from = invite.from
        request.to = to
        request.callID = invite.callID
        request.cseq = SIPCSeq(number: invite.cseq?.number ?? 1, method: method)
        if let reason { request.headers.append("Reason", reason) }
        return request
    }
}
