import Crypto
import Glibc
import Primitives
import SIP
import Testing

/// rtpengine between a phone, which speaks plain RTP, and a client with WebRTC media.
struct KamailioMediaTests {
    private static let plain = """
        v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40010 RTP/AVP 0\r
        a=rtpmap:0 PCMU/8000\r\n
        """
    private static func secured(_ setup: String) -> String {
        let fingerprint = (0..<32).map { "0\($0 % 10)" }.joined(separator: ":")
        return """
            v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=audio 40000 UDP/TLS/RTP/SAVPF 111 0\r
            c=IN IP4 127.0.0.1\r\na=rtcp-mux\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r
            a=fingerprint:sha-256 \(fingerprint)\r\na=setup:\(setup)\r
            a=candidate:1 1 UDP 2122260223 127.0.0.1 40000 typ host\r\na=rtpmap:111 opus/48000/2\r
            a=rtpmap:0 PCMU/8000\r\n
            """
    }

    @Test func phonesAndClientsAreOfferedTheMediaThatTheyHave() async throws {
        try await Scratch.with { world in
            let control = Int.random(in: 20_000...29_000)
            let engine = try RunningCommand(
                "/usr/bin/rtpengine",
                [
                    "--table=-1", "--interface=127.0.0.1", "--listen-ng=127.0.0.1:\(control)", "--foreground",
                    "--log-stderr", "--pidfile=\(world.root)/rtpengine.pid", "--config-file=none", "--num-threads=1",
                ], environment: world.environment, directory: world.root)
            let settings = KamailioNode.Settings(
                phones: ["bob \(KamailioNode.applicationKey) bob \(hexadecimal(md5(Array("bob:localhost:pw".utf8))))"],
                options: ["--rtpengine", "udp:127.0.0.1:\(control)"])
            do {
                try await world.withKamailio(settings) { node in
                    let alice = try await RawPhone("alice", at: node)
                    let bob = try await RawPhone("bob", at: node)
                    try await alice.signIn()
                    try await signIn(bob, password: "pw")
                    try await call(
                        alice, bob, offer: Self.secured("actpass"), answer: Self.plain, calleeHears: "RTP/AVP ",
                        callerHears: "UDP/TLS/RTP/SAVPF ")
                    try await call(
                        bob, alice, offer: Self.plain, answer: Self.secured("active"),
                        calleeHears: "UDP/TLS/RTP/SAVPF ",
                        callerHears: "RTP/AVP ")
                    // Between clients nothing is touched.
                    let carol = try await RawPhone("carol", at: node)
                    try await carol.signIn()
                    let offer = Self.secured("actpass")
                    try carol.send(carol.request(.invite, "sip:alice@localhost", body: offer))
                    #expect(String(decoding: try await alice.expect(.invite).body, as: UTF8.self) == offer)
                }
            } catch {
                engine.signal(SIGKILL)
                _ = await engine.end()
                throw error
            }
            engine.signal(SIGTERM)
            _ = await engine.end(within: .seconds(10))
        }
    }

    private func call(
        _ caller: RawPhone, _ callee: RawPhone, offer: String, answer: String, calleeHears: String, callerHears: String
    ) async throws {
        let invite = try caller.request(.invite, "sip:\(callee.user)@localhost", body: offer)
        try caller.send(invite)
        let received = try await callee.expect(.invite)
        let offered = String(decoding: received.body, as: UTF8.self)
        #expect(offered.contains(calleeHears) && !offered.contains("m=audio 400"), "\(offered)")
        #expect(offered.contains("a=fingerprint") == (calleeHears != "RTP/AVP "), "\(offered)")
        #expect(!offered.contains("a=crypto"))
        try callee.answer(received, 200, headers: [("Content-Type", "application/sdp")], body: answer)
        let accepted = try await caller.next()
        let answered = String(decoding: accepted.body, as: UTF8.self)
        #expect(answered.contains(callerHears) && !answered.contains("m=audio 400"), "\(answered)")
        let (dialog, target) = try caller.dialog(invite, accepted)
        var ack = dialog
        ack.sequence = 1
        try caller.send(caller.request(.ack, target, to: "sip:\(callee.user)@localhost", ack))
        _ = try await callee.expect(.ack)
        try caller.send(caller.request(.bye, target, to: "sip:\(callee.user)@localhost", dialog))
        try callee.answer(try await callee.expect(.bye), 200)
        #expect(try await caller.next().status == 200)
    }

    /// Registers by digest (RFC 2617), as a phone does.
    private func signIn(_ phone: RawPhone, password: String) async throws {
        func hash(_ text: String) -> String { hexadecimal(md5(Array(text.utf8))) }
        let asked = try await phone.register()
        guard let challenge = asked.headers.all("WWW-Authenticate").first(where: { $0.hasPrefix("Digest") }),
            let nonce = challenge.split(separator: "nonce=\"").dropFirst().first?.split(separator: "\"").first
        else { throw TestFailure("no digest challenge: \(asked.headers.all)") }
        let response = hash(
            "\(hash("\(phone.user):localhost:\(password)")):\(nonce):00000001:c:auth:\(hash("REGISTER:sip:localhost"))")
        let proof =
            "Digest username=\"\(phone.user)\", realm=\"localhost\", nonce=\"\(nonce)\", uri=\"sip:localhost\", "
            + "qop=auth, nc=00000001, cnonce=\"c\", response=\"\(response)\""
        #expect(try await phone.register([("Authorization", proof)]).status == 200)
    }
}
