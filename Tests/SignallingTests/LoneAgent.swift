import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// One user agent and a hand-written platform: what it gets is scripted, what it sends is kept.
struct LoneAgent {
    static let flow = SIPFlow(transport: .udp, remote: TransportAddress(host: "127.0.0.1", port: 5060))
    static let offer = sdp(port: 40_000)

    static let media = LocalMedia(address: "127.0.0.1", rtpPort: 30_000, rtcpPort: 30_001)

    /// The path that it has.
    var flow: SIPFlow
    var agent: UserAgent
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    var sent: [SIPMessage] = []
    var probes: [KeepAliveProbe] = []
    var streamsAsked = 0
    var records: [CallRecord] = []
    private var branches = 0
    private var peerSequence: UInt32 = 100

    init(
        flow: SIPFlow = LoneAgent.flow, configure: (inout UserAgentConfiguration) -> Void = { _ in }
    ) {
        var configuration = UserAgentConfiguration(user: "bob", domain: "example.org", instanceID: "urn:uuid:1")
        configure(&configuration)
        agent = UserAgent(configuration: configuration, random: .seeded(5))
        self.flow = flow
        open(flow)
    }

    /// A new path, or the first one.
    mutating func open(_ flow: SIPFlow) {
        self.flow = flow
        let local = TransportAddress(host: "127.0.0.1", port: 6_000 &+ UInt16(truncatingIfNeeded: flow.connection))
        act { $0.flowOpened(RegisteredFlow(flow: flow, local: local), at: $1) }
    }

    /// Answers the last REGISTER.
    mutating func acceptRegistration() throws {
        let register = try #require(sent.last { $0.method == .register })
        var response = register.response(status: 200, toTag: "registrar")
        response.expires = 600
        try receive(response)
        #expect(agent.registrationState == .registered)
    }

    static func sdp(
        port: Int, version: Int = 1, address: String = "127.0.0.1", formats: String = "0", extra: String = ""
    ) -> String {
        "v=0\r\no=- 7 \(version) IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 \(address)\r\nt=0 0\r\n"
            + "m=audio \(port) RTP/AVP \(formats)\r\n\(extra)"
    }

    mutating func drain() {
        while let action = agent.nextAction() {
            switch action {
            case .transmit(let message, _): sent.append(message)
            case .call(let handle, let event): record(handle).note(event, at: now)
            case .keepAlive(let probe, _): probes.append(probe)
            case .openStream: streamsAsked += 1
            case .openFlow, .closeFlow, .needsCredentials, .registration: break
            }
        }
    }

    mutating func record(_ handle: CallHandle) -> CallRecord {
        if let known = records.first(where: { $0.handle == handle }) { return known }
        records.append(CallRecord(handle))
        return records[records.count - 1]
    }

    mutating func act<Result>(_ work: (inout UserAgent, MonotonicTime) -> Result) -> Result {
        let result = work(&agent, now)
        drain()
        return result
    }

    /// Hands over a message, and gives what was sent because of it.
    @discardableResult
    mutating func receive(_ message: SIPMessage) throws -> [SIPMessage] {
        let before = sent.count
        let copy = try SIPMessage.parse(try message.encoded())
        let flow = flow
        act { $0.receive(copy, from: flow, at: $1) }
        return Array(sent[before...])
    }

    mutating func advance(by duration: Duration) {
        let end = now + duration
        while let next = agent.nextTimeout, next <= end {
            now = max(now, next)
            act { $0.timeout(at: $1) }
        }
        now = end
    }

    mutating func via() -> SIPVia {
        branches += 1
        var via = SIPVia(transport: "UDP", host: "127.0.0.1", port: 5060, branch: "z9hG4bKpeer\(branches)")
        via.parameters.setFlag("rport")
        return via
    }

    /// A request from the platform; within the dialog of `invite` and its answer's tag when one is given.
    mutating func request(
        _ method: SIPMethod, callID: String = "call-1", fromTag: String = "peer", toTag: String? = nil,
        sequence: UInt32? = nil, body: String? = nil, type: String = "application/sdp"
    ) -> SIPMessage {
        var request = SIPMessage(request: method, uri: SIPURI(user: "bob", host: "127.0.0.1", port: 6_000))
        request.vias = [via()]
        request.maxForwards = 70
        var from = SIPAddress(uri: SIPURI(user: "alice", host: "example.org"))
        from.tag = fromTag
        request.from = from
        var to = SIPAddress(uri: SIPURI(user: "bob", host: "example.org"))
        to.tag = toTag
        request.to = to
        request.callID = callID
        peerSequence += 1
        request.cseq = SIPCSeq(number: sequence ?? peerSequence, method: method)
        request.contacts = [SIPAddress(uri: SIPURI(user: "alice", host: "127.0.0.1", port: 7_000))]
        if let body {
            request.contentType = type
            request.body = Array(body.utf8)
        }
        return request
    }

    /// What a proxy answers to a request that was sent.
    func response(_ status: Int, to request: SIPMessage, tag: String? = nil, body: String? = nil) -> SIPMessage {
        var response = request.response(status: status, toTag: tag)
        if (101..<300).contains(status) {
            response.contacts = [SIPAddress(uri: SIPURI(user: "alice", host: "127.0.0.1", port: 7_000))]
        }
        if let body {
            response.contentType = "application/sdp"
            response.body = Array(body.utf8)
        }
        return response
    }

    /// An incoming call that was answered and acknowledged; gives our tag.
    mutating func established(callID: String = "call-1", body: String? = LoneAgent.offer) throws -> (
        record: CallRecord, tag: String
    ) {
        let invite = request(.invite, callID: callID, body: body)
        try receive(invite)
        let record = try #require(records.last)
        act {
            $0.answer(record.handle, media: LocalMedia(address: "127.0.0.1", rtpPort: 30_000, rtcpPort: 30_001), at: $1)
        }
        let tag = try #require(sent.last { $0.status == 200 }?.to?.tag)
        try receive(
            request(
                .ack, callID: callID, toTag: tag, sequence: invite.cseq?.number,
                body: body == nil ? Self.sdp(port: 40_000) : nil))
        #expect(agent.calls[record.handle]?.phase == .confirmed)
        return (record, tag)
    }

    /// An outgoing call: the INVITE that was sent.
    mutating func calling() throws -> (record: CallRecord, invite: SIPMessage) {
        let handle = act {
            $0.call(
                SIPURI(user: "alice", host: "example.org"),
                media: LocalMedia(address: "127.0.0.1", rtpPort: 30_000, rtcpPort: 30_001), at: $1)
        }
        return (record(handle), try #require(sent.last { $0.method == .invite }))
    }
}
