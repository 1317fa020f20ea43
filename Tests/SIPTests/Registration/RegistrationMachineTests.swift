import Primitives
import SIP
import Testing

@Suite("Registration")
struct RegistrationMachineTests {
    private static let token = Credential.bearer(token: "CANARY.first")
    private static let bearer = "Bearer realm=\"example.com\""
    private static let digest = "Digest realm=\"example.com\", nonce=\"n1\", qop=\"auth\", algorithm=SHA-256"

    @Test("a REGISTER as RFC 3261 10.2 and RFC 5626 4.2 want it")
    func request() throws {
        var probe = RegistrationProbe { $0.headers = [("User-Agent", "tester")] }
        #expect(probe.machine.state == .idle)
        #expect(probe.machine.nextTimeout == nil)
        probe.start()
        #expect(probe.machine.state == .registering)
        var register = try #require(probe.sent.first)
        #expect(register.method == .register)
        #expect(register.requestURI?.description == "sip:example.com")
        #expect(register.to?.uri.description == "sip:alice@example.com")
        #expect(register.to?.tag == nil)
        #expect(register.from?.uri == register.to?.uri)
        #expect(register.from?.tag?.isEmpty == false)
        #expect(register.expires == 600)
        #expect(register.cseq == SIPCSeq(number: 1, method: .register))
        #expect(register.headers["User-Agent"] == "tester")
        #expect(register.headers.values("Supported") == ["path", "gruu", "outbound"])
        let contact = try #require(register.contacts.first)
        #expect(contact.uri.description == "sip:alice@198.51.100.7:5070;transport=tcp")
        #expect(contact.parameters["+sip.instance"] == "\"<urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6>\"")
        #expect(contact.parameters["reg-id"] == "1")
        register.vias = [SIPVia(transport: "TCP", host: "198.51.100.7", port: 5070, branch: "z9hG4bKx")]
        #expect(register.validate() == nil)
        #expect(try SIPMessage.parse(register.encoded()).contacts == register.contacts)
    }

    @Test("refreshes between 75 and 90 % of the grant, at random, with the same Call-ID and rising CSeq")
    func refresh() throws {
        var fractions: [Double] = []
        for seed in 0..<200 as Range<UInt64> {
            var probe = RegistrationProbe.registered(seed: seed, expires: 120)
            #expect(probe.machine.state == .registered)
            #expect(probe.machine.bindingExpiry == .zero + .seconds(120))
            probe.runToTimeout()
            fractions.append(probe.seconds / 120)
            #expect(probe.takeLog() == ["send 600"])
            #expect(Set(probe.sent.compactMap(\.callID)).count == 1)
            #expect(Set(probe.sent.compactMap { $0.from?.tag }).count == 1)
            #expect(probe.sent.compactMap { $0.cseq?.number } == [1, 2])
            probe.answer(200) { $0.headers["Expires"] = "60" }
            #expect(probe.takeLog() == ["refreshed 60"])
        }
        #expect(fractions.allSatisfy { (0.75...0.9).contains($0) })
        #expect(try #require(fractions.min()) < 0.77)
        #expect(try #require(fractions.max()) > 0.88)
    }

    @Test("a failed refresh keeps the binding until it really lapses, trying all the time")
    func failedRefresh() {
        var probe = RegistrationProbe.registered(expires: 100)
        probe.runToTimeout()
        #expect(probe.takeLog() == ["send 600"])
        probe.requestFails(.timeout)
        #expect(probe.takeLog() == ["failed timeout alive retry"])
        #expect(probe.machine.state == .registered)
        for _ in 0..<50 where probe.machine.state == .registered {
            probe.runToTimeout()
            if probe.log.last == "send 600" { probe.requestFails(.transport("connection refused")) }
        }
        #expect(probe.seconds == 100)
        let log = probe.takeLog()
        #expect(log.last == "failed unreachable dead retry")
        #expect(log.filter { $0 == "send 600" }.count >= 2)
        #expect(log.dropLast().filter { $0.hasPrefix("failed") }.allSatisfy { $0 == "failed unreachable alive retry" })
        #expect(probe.machine.state == .waiting)
        #expect(probe.machine.nextAttempt != nil)
        probe.runToTimeout()
        #expect(probe.machine.state == .registering)
        probe.answer(200) { $0.headers["Expires"] = "100" }
        #expect(probe.takeLog() == ["send 600", "registered 100"])
    }

    @Test("backs off from 1 s to 5 min with jitter, for ever, and starts small again after a success")
    func backoff() {
        var pauses: [Double] = []
        var probe = RegistrationProbe(seed: 5)
        probe.start()
        for _ in 0..<200 {
            let before = probe.seconds
            probe.requestFails(.transport("connection refused"))
            #expect(probe.retryAt == probe.machine.nextTimeout)
            probe.runToTimeout()
            pauses.append(probe.seconds - before)
        }
        for (index, pause) in pauses.enumerated() {
            let ceiling = min(Double(1 << min(index, 20)), 300)
            #expect((ceiling / 2...ceiling).contains(pause))
        }
        #expect(Set(pauses.suffix(100)).count == 100)
        probe.answer(200)
        probe.runToTimeout()
        let before = probe.seconds
        probe.requestFails(.timeout)
        probe.runToTimeout()
        #expect(probe.seconds - before <= 1)
    }

    @Test("a token goes out with the first request")
    func preauthorized() {
        var probe = RegistrationProbe()
        probe.credentials(Self.token)
        #expect(probe.log.isEmpty)
        probe.start()
        #expect(probe.sent.last?.headers["Authorization"] == "Bearer CANARY.first")
        probe.answer(200)
        #expect(probe.takeLog() == ["send 600", "registered 600"])
    }

    @Test("no token: asks for one when challenged, or before when told so, and goes on when it comes")
    func needsToken() {
        var probe = RegistrationProbe()
        probe.start()
        probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.bearer }
        #expect(probe.takeLog() == ["send 600", "needs credentials"])
        #expect(probe.challenge?.scheme == .bearer)
        #expect(probe.machine.state == .waiting)
        #expect(probe.machine.nextTimeout == nil)
        probe.credentials(Self.token)
        #expect(probe.sent.last?.headers["Authorization"] == "Bearer CANARY.first")
        probe.answer(200)
        #expect(probe.takeLog() == ["send 600", "registered 600"])

        var eager = RegistrationProbe { $0.asksForCredentialsFirst = true }
        eager.start()
        #expect(eager.takeLog() == ["needs credentials"])
        #expect(eager.challenge == nil)
        eager.credentials(Self.token)
        #expect(eager.takeLog() == ["send 600"])
    }

    @Test("no password: a digest challenge asks for credentials too")
    func needsPassword() {
        var probe = RegistrationProbe()
        probe.start()
        probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.digest }
        #expect(probe.takeLog() == ["send 600", "needs credentials"])
        #expect(probe.challenge?.scheme == .digest)
    }

    @Test("a wrong token is refused for good, until there is another")
    func wrongToken() {
        var probe = RegistrationProbe()
        probe.credentials(Self.token)
        probe.start()
        probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.bearer + ", error=\"invalid_token\"" }
        #expect(probe.takeLog() == ["send 600", "failed refused dead for good"])
        #expect(probe.failures.last?.status == 401)
        #expect(probe.failures.last?.reason.contains("invalid_token") == true)
        probe.run(until: 100_000)
        #expect(probe.takeLog() == [])
        probe.credentials(.bearer(token: "second"))
        #expect(probe.sent.last?.headers["Authorization"] == "Bearer second")
        probe.answer(200)
        #expect(probe.takeLog() == ["send 600", "registered 600"])
    }

    @Test("a token that has worked and no longer does is asked for anew; the binding lives on meanwhile")
    func agedToken() {
        var probe = RegistrationProbe()
        probe.credentials(Self.token)
        probe.start()
        probe.answer(200)
        probe.runToTimeout()
        probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.bearer + ", error=\"invalid_token\"" }
        #expect(probe.takeLog() == ["send 600", "registered 600", "send 600", "needs credentials"])
        #expect(probe.machine.state == .registered)
        probe.credentials(.bearer(token: "second"))
        probe.answer(200)
        #expect(probe.takeLog() == ["send 600", "refreshed 600"])
        // Nobody has a new one: the binding lapses and that is reported.
        probe.runToTimeout()
        probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.bearer }
        probe.runToTimeout()
        #expect(probe.takeLog() == ["send 600", "needs credentials", "failed refused dead for good"])
        #expect(probe.machine.state == .waiting)
    }

    @Test("new credentials while registered register again in place; during a pause they wait for its end")
    func newToken() {
        var probe = RegistrationProbe.registered()
        probe.credentials(Self.token)
        #expect(probe.takeLog() == ["send 600"])
        probe.requestFails(.timeout)
        probe.credentials(.bearer(token: "second"))
        #expect(probe.takeLog() == ["failed timeout alive retry"])
        probe.runToTimeout()
        #expect(probe.sent.last?.headers["Authorization"] == "Bearer second")
        // While a request is under way: once it is answered, with the new one.
        probe.credentials(.bearer(token: "third"))
        probe.answer(200)
        #expect(probe.takeLog() == ["send 600", "refreshed 600", "send 600"])
        #expect(probe.sent.last?.headers["Authorization"] == "Bearer third")
    }

    @Test("a challenge at any time is answered, with a rising CSeq")
    func challengedRefresh() {
        var probe = RegistrationProbe()
        probe.credentials(.digest(username: "alice", password: "secret"))
        probe.start()
        probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.digest }
        #expect(probe.sent.last?.headers["Authorization"]?.contains("nc=00000001") == true)
        probe.answer(200)
        probe.runToTimeout()
        #expect(probe.sent.last?.headers["Authorization"]?.contains("nc=00000002") == true)
        probe.answer(401) { $0.headers["WWW-Authenticate"] = Self.digest.replacing("n1", with: "n2") }
        probe.answer(407) { $0.headers["Proxy-Authenticate"] = "Digest realm=\"p\", nonce=\"p1\", qop=\"auth\"" }
        probe.answer(200)
        #expect(
            probe.takeLog() == [
                "send 600", "send 600", "registered 600", "send 600", "send 600", "send 600", "refreshed 600",
            ])
        #expect(probe.sent.compactMap { $0.cseq?.number } == [1, 2, 3, 4, 5])
    }

    @Test("a lost connection takes the binding with it and leads to a new registration, soon but not at once")
    func flowFailed() {
        var probe = RegistrationProbe.registered()
        probe.run(until: 10)
        probe.flowFails()
        #expect(probe.takeLog() == ["failed unreachable dead retry"])
        #expect(probe.machine.bindingExpiry == nil)
        probe.flowFails()
        #expect(probe.takeLog() == [])
        probe.runToTimeout()
        #expect((10.5...11).contains(probe.seconds))
        // Lost again with a request under way: the transaction's own failure comes too and counts once.
        probe.flowFails()
        probe.requestFails(.transport("reset"))
        #expect(probe.takeLog() == ["send 600", "failed unreachable dead retry"])
        probe.runToTimeout()
        probe.answer(200)
        #expect(probe.takeLog() == ["send 600", "registered 600"])
    }

    @Test("unregisters with Expires 0, the same Call-ID and contact, and says so")
    func unregister() throws {
        var probe = RegistrationProbe.registered()
        probe.unregister()
        #expect(probe.machine.state == .unregistering)
        let request = try #require(probe.sent.last)
        #expect(request.expires == 0)
        #expect(request.contacts == probe.sent.first?.contacts)
        #expect(request.callID == probe.sent.first?.callID)
        #expect(request.cseq?.number == 2)
        probe.answer(200)
        #expect(probe.takeLog() == ["send 0", "unregistered"])
        #expect(probe.machine.state == .ended)
        #expect(probe.machine.nextTimeout == nil)
        probe.start()
        #expect(probe.takeLog() == ["send 600"])
        #expect(probe.sent.last?.cseq?.number == 3)
    }

    @Test("unregistering takes no longer than its time, whatever the registrar does")
    func boundedUnregister() {
        var silent = RegistrationProbe.registered()
        silent.unregister()
        silent.runToTimeout()
        #expect(silent.seconds == 2)
        #expect(silent.takeLog() == ["send 0", "unregistered"])

        var refusing = RegistrationProbe.registered()
        refusing.unregister()
        refusing.answer(503) { $0.headers["Retry-After"] = "100" }
        #expect(refusing.takeLog() == ["send 0", "unregistered"])

        var broken = RegistrationProbe.registered()
        broken.unregister()
        broken.requestFails(.transport("reset"))
        #expect(broken.takeLog() == ["send 0", "unregistered"])

        var challenging = RegistrationProbe.registered()
        challenging.credentials(.digest(username: "alice", password: "secret"))
        challenging.answer(200)
        challenging.unregister()
        challenging.answer(401) { $0.headers["WWW-Authenticate"] = Self.digest }
        #expect(challenging.sent.last?.expires == 0)
        challenging.answer(200)
        #expect(challenging.takeLog() == ["send 600", "refreshed 600", "send 0", "send 0", "unregistered"])
    }

    @Test("unregistering waits for the request under way, and has nothing to do without a binding")
    func unregisterEarly() {
        var idle = RegistrationProbe()
        idle.unregister()
        #expect(idle.takeLog() == ["unregistered"])

        var busy = RegistrationProbe()
        busy.start()
        busy.unregister()
        #expect(busy.takeLog() == ["send 600"])
        busy.answer(200)
        #expect(busy.takeLog() == ["send 0"])
        busy.answer(200)
        #expect(busy.takeLog() == ["unregistered"])

        var refused = RegistrationProbe()
        refused.start()
        refused.unregister()
        refused.answer(403)
        #expect(refused.takeLog() == ["send 600", "unregistered"])
    }

    @Test("answers to older requests, provisional and foreign ones are ignored")
    func stray() throws {
        var probe = RegistrationProbe.registered()
        let old = try #require(probe.sent.first)
        probe.runToTimeout()
        probe.answer(100)
        probe.machine.receive(old.response(status: 403), at: probe.now)
        var foreign = try #require(probe.sent.last).response(status: 403)
        foreign.callID = "foreign"
        probe.machine.receive(foreign, at: probe.now)
        probe.requestFails(.timeout)
        probe.requestFails(.timeout)
        probe.drain()
        #expect(probe.takeLog() == ["send 600", "failed timeout alive retry"])
    }

    @Test("the registrar's Service-Route and Flow-Timer are kept for the owner")
    func extras() {
        var probe = RegistrationProbe()
        probe.start()
        probe.answer(200) {
            $0.headers.append("Service-Route", "<sip:p1.example.com;lr>, <sip:p2.example.com;lr>")
            $0.headers["Flow-Timer"] = "120"
        }
        #expect(probe.machine.terms.serviceRoutes.map(\.uri.host) == ["p1.example.com", "p2.example.com"])
        #expect(probe.machine.terms.flowTimer == .seconds(120))
        #expect(!probe.machine.terms.supportsOutbound && probe.machine.terms.publicGRUU == nil)
    }

    @Test("a GRUU is taken from our own contact only, and only when it is one")
    func gruu() throws {
        var probe = RegistrationProbe()
        probe.start()
        let own = try #require(probe.sent.last?.contacts.first)
        func contact(_ gruu: String, instance: String? = nil) -> SIPAddress {
            var contact = own
            if let instance { contact.parameters["+sip.instance"] = instance }
            contact.parameters["pub-gruu"] = gruu
            return contact
        }
        let good = "\"sip:alice@example.com;gr=urn:uuid:f81d4fae\""
        probe.answer(200) {
            $0.headers.append("Require", "outbound")
            $0.contacts = [contact("\"sip:stranger@example.com;gr\"", instance: "\"<urn:uuid:other>\""), contact(good)]
        }
        #expect(probe.machine.terms.supportsOutbound)
        #expect(probe.machine.terms.publicGRUU?.description == "sip:alice@example.com;gr=urn:uuid:f81d4fae")
        for odd in ["\"sip:alice@example.com\"", "\"tel:+46;gr\"", "\"\"", "no-uri", "\"sip:;gr\""] {
            probe.machine.start(at: probe.now)
            probe.drain()
            probe.answer(200) { $0.contacts = [contact(odd)] }
            #expect(probe.machine.terms.publicGRUU == nil, "\(odd)")
            #expect(probe.machine.state == .registered)
        }
    }

    @Test("another flow begins a registration at once and forgets the one under way")
    func replacedFlow() {
        var probe = RegistrationProbe()
        probe.start()
        probe.answer(200)
        _ = probe.takeLog()
        probe.machine.start(at: probe.now)
        probe.drain()
        let first = probe.sent.count
        probe.machine.flowReplaced(at: probe.now)
        probe.drain()
        #expect(probe.sent.count == first + 1)
        #expect(probe.machine.state == .registered, "the binding stands until it lapses")
        probe.answer(200)
        #expect(probe.machine.state == .registered && probe.machine.lastFailure == nil)
    }

    @Test("printing the machine shows no token")
    func secrets() {
        var probe = RegistrationProbe()
        probe.credentials(Self.token)
        probe.start()
        var text = "\(probe.machine) \(String(reflecting: probe.machine))"
        dump(probe.machine, to: &text)
        #expect(text.contains("sip:alice@example.com"))
        #expect(!text.contains("CANARY"))
    }
}
