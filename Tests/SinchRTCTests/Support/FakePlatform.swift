import Network
import Primitives
import SIP
import Signalling
import Synchronization

/// A SIP element over UDP that answers as a test wants: grants every registration without a question, answers every
/// call with the SDP it was told, and keeps what it received.
final class FakePlatform: Sendable {
    let address: TransportAddress
    let log = EventLog<SIPMessage>()
    private let loop: EventLoop
    private let transports: SIPTransportSet

    /// - Parameter respond: the responses to a request, in order; nil: 200, with an expiry for REGISTER.
    static func start(
        at address: TransportAddress = TransportAddress(host: "127.0.0.1", port: 0),
        respond: @escaping @Sendable (SIPMessage) -> [SIPMessage]? = { _ in nil }
    ) async throws -> FakePlatform {
        let loop = try EventLoop(name: "fake-platform")
        return try await loop.call { try FakePlatform(loop: loop, at: address, respond: respond) }
    }

    private init(
        loop: EventLoop, at bound: TransportAddress, respond: @escaping @Sendable (SIPMessage) -> [SIPMessage]?
    ) throws {
        self.loop = loop
        let log = log
        let link = Link()
        transports = SIPTransportSet(
            loop: loop,
            handlers: SIPTransportSet.Handlers(
                onMessage: { message, flow in
                    log.append(message)
                    guard message.isRequest, message.method != .ack else { return }
                    for response in respond(message) ?? [Self.consent(to: message)] { link.send(response, flow) }
                },
                onFlowFailed: { _, _ in }))
        address = try transports.bindUDP(bound)
        link.connect(transports)
    }

    func stop() async throws {
        let transports = transports
        try await loop.call { transports.close() }
        loop.stop()
    }

    /// Sends a re-INVITE as the callee of `invite` would.
    func sendReinvite(in invite: SIPMessage, media: TransportAddress) async throws {
        guard let contact = invite.contacts.first, let port = contact.uri.port, let caller = invite.from else { return }
        var request = SIPMessage(request: .invite, uri: contact.uri)
        var from = SIPAddress(uri: invite.to?.uri ?? caller.uri)
        from.tag = "fake"
        request.from = from
        request.to = caller
        request.callID = invite.callID
        request.cseq = SIPCSeq(number: 7, method: .invite)
        request.maxForwards = 70
        request.vias = [
            SIPVia(transport: "UDP", host: address.host, port: address.port, branch: "z9hG4bKfake\(media.port)")
        ]
        let answer = Self.answer(to: invite, contact: address, media: media)
        request.contacts = answer.contacts
        request.contentType = answer.contentType
        request.body = answer.body
        let (transports, message) = (transports, request)
        let flow = SIPFlow(transport: .udp, remote: TransportAddress(host: contact.uri.host, port: port), connection: 0)
        try await loop.call { transports.send(message, over: flow) }
    }

    /// 200, with what the request's kind needs.
    static func consent(to request: SIPMessage) -> SIPMessage {
        var response = request.response(status: 200, toTag: "fake")
        if request.method == .register {
            response.contacts = request.contacts
            response.expires = request.expires == 0 ? 0 : 600
        }
        return response
    }

    /// 200 to an INVITE: media at `media`, PCMU.
    static func answer(to invite: SIPMessage, contact: TransportAddress, media: TransportAddress) -> SIPMessage {
        var response = invite.response(status: 200, toTag: "fake")
        response.contacts = [SIPAddress(uri: SIPURI(user: "fake", host: contact.host, port: contact.port))]
        response.contentType = "application/sdp"
        response.body = Array(
            """
            v=0\r
            o=- 1 1 IN IP4 \(media.host)\r
            s=-\r
            c=IN IP4 \(media.host)\r
            t=0 0\r
            m=audio \(media.port) RTP/AVP 0\r
            a=rtpmap:0 PCMU/8000\r
            a=sendrecv\r

            """.utf8)
        return response
    }

    /// Where an offer or answer wants its RTP.
    static func mediaPort(of message: SIPMessage) -> UInt16? {
        let text = String(decoding: message.body, as: UTF8.self)
        guard let line = text.split(whereSeparator: \.isNewline).first(where: { $0.hasPrefix("m=audio ") }) else {
            return nil
        }
        return line.split(separator: " ").dropFirst().first.flatMap { UInt16($0) }
    }

    /// Lets the handlers reach the transports that they are part of.
    private final class Link: Sendable {
        private let target = Mutex<SIPTransportSet?>(nil)

        func connect(_ transports: SIPTransportSet) {
            target.withLock { $0 = transports }
        }

        func send(_ message: SIPMessage, _ flow: SIPFlow) {
            target.withLock { $0 }?.send(message, over: flow)
        }
    }
}

/// A UDP port of the test's own that can send RTP, and knows how much it got.
final class FakeMedia: Sendable {
    let address: TransportAddress
    let received = EventLog<Int>()
    private let loop: EventLoop
    private let socket: UDPSocket

    static func start() async throws -> FakeMedia {
        let loop = try EventLoop(name: "fake-media")
        return try await loop.call { try FakeMedia(loop: loop) }
    }

    private init(loop: EventLoop) throws {
        self.loop = loop
        socket = try UDPSocket(loop: loop, bind: TransportAddress(host: "127.0.0.1", port: 0))
        address = socket.localAddress
        let received = received
        socket.onDatagram = { bytes, _ in received.append(bytes.count) }
    }

    /// Sends one packet of 20 ms of PCMU silence.
    func sendPacket(to port: UInt16, sequence: UInt8 = 1) {
        let header: [UInt8] = [0x80, 0, 0, sequence, 0, 0, sequence, 0, 1, 2, 3, 4]
        let packet = header + [UInt8](repeating: 0xFF, count: 160)
        let socket = socket
        loop.execute { socket.send(packet, to: TransportAddress(host: "127.0.0.1", port: port)) }
    }

    func stop() async throws {
        let socket = socket
        try await loop.call { socket.close() }
        loop.stop()
    }
}
