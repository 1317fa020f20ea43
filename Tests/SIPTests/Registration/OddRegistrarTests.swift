import Primitives
import SIP
import Testing

/// What registrars in the field answer, and what must come of it.
struct OddReply: Sendable, CustomTestStringConvertible {
    var name: String
    var status = 200
    var headers: [(String, String)] = []
    /// The log after the answer.
    var outcome: [String]
    /// When the next REGISTER comes, in seconds after the answer; nil: never, or at once.
    var next: ClosedRange<Double>?

    var testDescription: String { name }
}

@Suite("Odd registrars")
struct OddRegistrarTests {
    private static let own = "<sip:alice@198.51.100.7:5070;transport=tcp>"
    private static let instance = "+sip.instance=\"<urn:uuid:F81D4FAE-7dec-11d0-a765-00a0c91e6bf6>\";reg-id=1"

    static let replies: [OddReply] = [
        // The granted lifetime: per contact, by header, or neither.
        OddReply(
            name: "own contact's expires wins over the header",
            headers: [("Contact", own + ";expires=100"), ("Expires", "3600")], outcome: ["registered 100"],
            next: 75...90),
        OddReply(
            name: "header only", headers: [("Contact", own), ("Expires", "200")], outcome: ["registered 200"],
            next: 150...180),
        OddReply(
            name: "no contact, header only", headers: [("Expires", "40")], outcome: ["registered 40"], next: 30...36),
        OddReply(name: "nothing at all", outcome: ["registered 600"], next: 450...540),
        OddReply(
            name: "three devices, ours in the middle, one line",
            headers: [
                (
                    "Contact",
                    "<sip:alice@10.0.0.1>;expires=20, \(own);expires=100, \"A, B\" <sip:alice@10.0.0.2>;expires=30"
                )
            ], outcome: ["registered 100"], next: 75...90),
        OddReply(
            name: "contact rewritten behind NAT, known by its instance",
            headers: [
                ("Contact", "<sip:alice@203.0.113.5:61000>;expires=80;\(instance)"),
                ("Contact", own + ";expires=5;+sip.instance=\"<urn:uuid:other>\""),
            ], outcome: ["registered 80"], next: 60...72),
        OddReply(
            name: "our instance over another flow is not ours",
            headers: [
                ("Contact", "<sip:alice@1.2.3.4>;expires=7;" + instance.replacing("reg-id=1", with: "reg-id=2")),
                ("Contact", own + ";expires=100"),
            ], outcome: ["registered 100"], next: 75...90),
        OddReply(
            name: "contact without its parameters",
            headers: [("m", "<sip:alice@198.51.100.7:5070>;expires=100"), ("m", "<sip:x@y.z>;expires=9")],
            outcome: ["registered 100"], next: 75...90),
        OddReply(
            name: "only contact is a stranger: it is ours rewritten",
            headers: [("Contact", "<sip:1234@203.0.113.5>;expires=100")], outcome: ["registered 100"], next: 75...90),
        OddReply(
            name: "only strangers: the shortest is the safe guess",
            headers: [("Contact", "<sip:a@203.0.113.5>;expires=100, <sip:b@203.0.113.6>;expires=60")],
            outcome: ["registered 60"], next: 45...54),
        OddReply(
            name: "expires that is no number", headers: [("Contact", own + ";expires=soon"), ("Expires", "100")],
            outcome: ["registered 100"], next: 75...90),
        OddReply(
            name: "an absurd lifetime does not overflow",
            headers: [("Contact", own + ";expires=99999999999999999999999")], outcome: ["registered 31536000"],
            next: 0.75 * 31_536_000...0.9 * 31_536_000),
        OddReply(
            name: "one second",
            headers: [("Contact", own + ";expires=1")], outcome: ["registered 1"], next: 0.75...0.9),
        OddReply(
            name: "accepted for no time", headers: [("Contact", own + ";expires=0")],
            outcome: ["failed server dead retry"], next: 0.5...1),
        OddReply(name: "202 counts as success", status: 202, outcome: ["registered 600"], next: 450...540),

        // 423.
        OddReply(name: "423 with Min-Expires", status: 423, headers: [("Min-Expires", "1800")], outcome: ["send 1800"]),
        OddReply(
            name: "423 without Min-Expires", status: 423, outcome: ["failed badRequest dead retry"], next: 0.5...1),
        OddReply(
            name: "423 with less than we asked for", status: 423, headers: [("Min-Expires", "60")],
            outcome: ["failed badRequest dead retry"], next: 0.5...1),
        OddReply(
            name: "423 with an absurd minimum", status: 423, headers: [("Min-Expires", "999999999")],
            outcome: ["failed badRequest dead retry"], next: 0.5...1),

        // Refusals and credentials.
        OddReply(name: "403", status: 403, headers: [("Retry-After", "5")], outcome: ["failed refused dead for good"]),
        OddReply(name: "401 without a challenge", status: 401, outcome: ["failed refused dead for good"]),
        OddReply(
            name: "401 with a scheme nobody knows", status: 401, headers: [("WWW-Authenticate", "Negotiate")],
            outcome: ["failed refused dead for good"]),
        OddReply(
            name: "407 with a token wanted", status: 407, headers: [("Proxy-Authenticate", "Bearer realm=\"x\"")],
            outcome: ["needs credentials"]),
        OddReply(
            name: "404: the account may still come", status: 404, outcome: ["failed refused dead retry"], next: 0.5...1),

        // Retry-After.
        OddReply(
            name: "503 with Retry-After", status: 503, headers: [("Retry-After", "120 (maintenance);duration=60")],
            outcome: ["failed server dead retry"], next: 120...132),
        OddReply(
            name: "503 with a Retry-After of days is cut to an hour", status: 503, headers: [("Retry-After", "900000")],
            outcome: ["failed server dead retry"], next: 3600...3960),
        OddReply(
            name: "503 with Retry-After 0 still pauses", status: 503, headers: [("Retry-After", "0")],
            outcome: ["failed server dead retry"], next: 0.5...1),
        OddReply(
            name: "503 with a Retry-After that is no number", status: 503, headers: [("Retry-After", "tomorrow")],
            outcome: ["failed server dead retry"], next: 0.5...1),
        OddReply(
            name: "486 with Retry-After", status: 486, headers: [("Retry-After", "10")],
            outcome: ["failed badRequest dead retry"], next: 10...11),

        // The rest.
        OddReply(name: "408", status: 408, outcome: ["failed timeout dead retry"], next: 0.5...1),
        OddReply(name: "500", status: 500, outcome: ["failed server dead retry"], next: 0.5...1),
        OddReply(name: "603", status: 603, outcome: ["failed server dead retry"], next: 0.5...1),
        OddReply(name: "400", status: 400, outcome: ["failed badRequest dead retry"], next: 0.5...1),
        OddReply(
            name: "302 is not followed: a token must not go elsewhere", status: 302,
            headers: [("Contact", "<sip:elsewhere.example.net>")], outcome: ["failed server dead retry"], next: 0.5...1),
        OddReply(name: "439: once more without outbound", status: 439, outcome: ["send 600"]),
    ]

    @Test("first registration", arguments: replies)
    func first(reply: OddReply) {
        var probe = RegistrationProbe(seed: 11)
        probe.start()
        _ = probe.takeLog()
        check(reply, reply.outcome, &probe)
    }

    @Test("refresh: the same, and the binding stays alive", arguments: replies)
    func refresh(reply: OddReply) {
        var probe = RegistrationProbe.registered(seed: 12, expires: 100_000)
        probe.runToTimeout()
        _ = probe.takeLog()
        let removes = reply.name == "accepted for no time"
        let outcome = reply.outcome.map { line in
            let refreshed = line.replacing("registered", with: "refreshed")
            return removes ? refreshed : refreshed.replacing("dead", with: "alive")
        }
        check(reply, outcome, &probe, state: removes ? .waiting : .registered)
    }

    private func check(
        _ reply: OddReply, _ outcome: [String], _ probe: inout RegistrationProbe,
        state: RegistrationMachine.State? = nil
    ) {
        let before = probe.seconds
        probe.answer(reply.status) { response in
            response.headers.remove("Expires")
            for (name, value) in reply.headers { response.headers.append(name, value) }
        }
        #expect(probe.takeLog() == outcome)
        if let state { #expect(probe.machine.state == state) }
        if let next = reply.next {
            let planned = probe.machine.nextAttempt.map { ($0 - .zero).seconds - before }
            #expect(
                planned.map { next.lowerBound - 1e-6 <= $0 && $0 <= next.upperBound + 1e-6 } == true, "\(planned ?? -1)"
            )
            // And it really comes.
            for _ in 0..<10 where probe.seconds < before + (planned ?? 0) { probe.runToTimeout() }
            #expect(probe.log.contains { $0.hasPrefix("send") })
        } else {
            #expect(probe.machine.nextAttempt == nil)
        }
    }

    @Test("Min-Expires is honoured once for each attempt, and kept")
    func minExpires() {
        var probe = RegistrationProbe(seed: 3)
        probe.start()
        probe.answer(423) { $0.headers["Min-Expires"] = "1000" }
        probe.answer(423) { $0.headers["Min-Expires"] = "2000" }
        #expect(probe.takeLog() == ["send 600", "send 1000", "failed badRequest dead retry"])
        probe.runToTimeout()
        probe.answer(423) { $0.headers["Min-Expires"] = "2000" }
        probe.answer(200) { $0.headers["Expires"] = "2000" }
        probe.runToTimeout()
        #expect(probe.takeLog() == ["send 1000", "send 2000", "registered 2000", "send 2000"])
    }

    @Test("a first hop without outbound support is used without it, once")
    func outbound() {
        var probe = RegistrationProbe()
        probe.start()
        probe.answer(439)
        #expect(probe.sent.last?.contacts.first?.parameters.contains("reg-id") == false)
        #expect(probe.sent.last?.headers["Supported"] == "path, gruu")
        probe.answer(439)
        #expect(probe.takeLog() == ["send 600", "send 600", "failed badRequest dead retry"])
    }

    @Test("an outage of an hour: attempts never stop, and the first answer after it registers")
    func outage() {
        var probe = RegistrationProbe.registered(seed: 8, expires: 600)
        var attempts = 0
        for _ in 0..<1000 where probe.seconds < 3600 {
            probe.runToTimeout()
            guard probe.log.last?.hasPrefix("send") == true else { continue }
            attempts += 1
            probe.requestFails(.timeout)
        }
        #expect((15...40).contains(attempts))
        #expect(probe.machine.state == .waiting)
        _ = probe.takeLog()
        let end = probe.seconds
        probe.runToTimeout()
        #expect(probe.seconds - end <= 300)
        probe.answer(200)
        #expect(probe.takeLog() == ["send 600", "registered 600"])
    }
}
