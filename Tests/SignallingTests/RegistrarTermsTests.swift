import Primitives
import SIP
import Testing

@testable import Signalling

/// What the registrar's 200 changes in later requests.
@Suite struct RegistrarTermsTests {
    private func registered(
        _ flow: SIPFlow = LoneAgent.flow, _ change: (inout SIPMessage) -> Void
    ) throws -> LoneAgent {
        var lone = LoneAgent(flow: flow)
        lone.act { $0.start(at: $1) }
        let register = try #require(lone.sent.last)
        var response = register.response(status: 200, toTag: "registrar")
        response.contacts = register.contacts
        response.expires = 600
        change(&response)
        try lone.receive(response)
        #expect(lone.agent.registrationState == .registered)
        return lone
    }

    private func invite(_ lone: inout LoneAgent) throws -> SIPMessage {
        let target = SIPURI(user: "carol", host: "example.org")
        _ = lone.act { $0.call(target, media: LoneAgent.media, at: $1) }
        return try #require(lone.sent.last { $0.method == .invite })
    }

    @Test func registerSaysWhatRFC5626Wants() throws {
        let lone = try registered { _ in }
        let register = try #require(lone.sent.first { $0.method == .register })
        #expect(Set(register.headers.values("Supported")) == ["path", "gruu", "outbound"])
        let contact = try #require(register.contacts.first)
        #expect(contact.parameters["reg-id"] == "1")
        #expect(contact.parameters["+sip.instance"] == "\"<urn:uuid:1>\"")
    }

    @Test func serviceRouteBecomesTheRouteOfCalls() throws {
        var plain = try registered { _ in }
        #expect(try invite(&plain).routes.isEmpty)
        var lone = try registered {
            $0.headers.append("Service-Route", "<sip:p1.example.org;lr>, <sip:orig@p2.example.org;lr>")
        }
        #expect(try invite(&lone).routes.map(\.uri.host) == ["p1.example.org", "p2.example.org"])
    }

    @Test func gruuIsTheContactOfDialogs() throws {
        let gruu = "sip:bob@example.org;gr=urn:uuid:1"
        var lone = try registered {
            var contact = $0.contacts[0]
            contact.parameters["pub-gruu"] = "\"\(gruu)\""
            $0.contacts = [contact]
            $0.headers.append("Require", "outbound")
        }
        #expect(try invite(&lone).contacts.first?.uri.description == gruu)
        // A REGISTER's contact stays the flow's own address.
        lone.act { $0.renewRegistration(at: $1) }
        #expect(lone.sent.last?.contacts.first?.uri.host == "127.0.0.1")
    }

    @Test func outboundMarksTheContactOfDialogs() throws {
        var lone = try registered { $0.headers.append("Require", "outbound") }
        #expect(try invite(&lone).contacts.first?.uri.parameters.contains("ob") == true)
        var plain = try registered { _ in }
        #expect(try invite(&plain).contacts.first?.uri.parameters.contains("ob") == false)
    }

    @Test(arguments: [SIPTransport.ws, .wss])
    func webSocketClientsHideTheirAddress(transport: SIPTransport) throws {
        let flow = SIPFlow(transport: transport, remote: LoneAgent.flow.remote, connection: 1)
        let path = RegisteredFlow(
            flow: flow, local: TransportAddress(host: "127.0.0.1", port: 6_001), anonymousHost: "abc.invalid")
        var lone = LoneAgent(flow: flow)
        lone.act { $0.flowOpened(path, at: $1) }
        lone.act { $0.start(at: $1) }
        let register = try #require(lone.sent.last)
        let via = try #require(register.topVia)
        #expect(via.transport == transport.viaName && via.host == "abc.invalid" && via.port == nil)
        #expect(register.contacts.first?.uri.description == "sip:bob@abc.invalid;transport=ws")
    }

    @Test func aRegistrationTooLongForADatagramMovesToAStream() throws {
        var lone = LoneAgent()
        lone.act { $0.start(at: $1) }
        let token = String(repeating: "t", count: 1_300)
        try lone.receive(challenge(to: try #require(lone.sent.last)))
        let before = lone.sent.count
        lone.act { $0.credentialsChanged([.bearer(token: token)], at: $1) }
        #expect(lone.sent.count == before, "not over UDP")
        #expect(lone.streamsAsked == 1)
        let stream = SIPFlow(transport: .tcp, remote: LoneAgent.flow.remote, connection: 9)
        lone.open(stream)
        let register = try #require(lone.sent.last)
        #expect(register.topVia?.transport == "TCP" && register.headers["Authorization"]?.contains(token) == true)
        #expect(register.contacts.first?.uri.transport == "tcp")
        try lone.receive(register.response(status: 200, toTag: "r"))
        #expect(lone.agent.registrationState == .registered)

        // Without TCP the registration fails and says why.
        var stuck = LoneAgent()
        stuck.act { $0.start(at: $1) }
        try stuck.receive(challenge(to: try #require(stuck.sent.last)))
        stuck.act { $0.credentialsChanged([.bearer(token: token)], at: $1) }
        stuck.act { $0.flowNotOpened(reason: "too long, and no TCP", at: $1) }
        #expect(stuck.agent.registration?.lastFailure?.reason.contains("no TCP") == true)
        #expect(stuck.agent.path != nil)
    }

    private func challenge(to register: SIPMessage) -> SIPMessage {
        var response = register.response(status: 401, toTag: "registrar")
        response.headers.append("WWW-Authenticate", "Bearer realm=\"example.org\"")
        return response
    }

    @Test func aRequestThatCouldNotBeSentEndsItsCallOnly() throws {
        var lone = try registered { _ in }
        let first = try invite(&lone)
        lone.act { $0.requestNotSent(first, reason: "1500 bytes are too many", at: $1) }
        #expect(lone.records.last?.termination?.phrase.contains("1500 bytes") == true)
        #expect(lone.agent.registrationState == .registered && lone.agent.path != nil)
        #expect(lone.agent.calls.isEmpty)
    }
}
