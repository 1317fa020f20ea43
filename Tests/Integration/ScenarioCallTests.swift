import Agent
import Configuration
import Testing

/// What the other side does that phones seldom do, by sipp behind Kamailio: each scenario checks what it is sent, the test
/// how the call ends for our client.
struct ScenarioCallTests {
    /// What a call must come to.
    struct Expectation: Sendable, CustomTestStringConvertible {
        let scenario: String
        var status: Int64?
        var exit = ExitCode.ok
        var cause = "hungUp"
        /// Whether the caller hangs up, a second and a half after it was answered; else the scenario does.
        var isEndedHere = false

        var testDescription: String { scenario }
    }

    static let answered: [Expectation] = [
        Expectation(scenario: "answer-bye"),
        Expectation(scenario: "early-media", isEndedHere: true),
        Expectation(scenario: "reliable-progress", isEndedHere: true),
        Expectation(scenario: "hold"),
        Expectation(scenario: "update"),
        Expectation(scenario: "unknown-method"),
        Expectation(scenario: "options"),
    ]

    static let refused: [Expectation] = [
        Expectation(scenario: "refuse-404", status: 404, exit: .noSuchUser, cause: "error"),
        Expectation(scenario: "refuse-480", status: 480, exit: .noAnswer, cause: "noAnswer"),
        Expectation(scenario: "refuse-486", status: 486, exit: .busy, cause: "denied"),
        Expectation(scenario: "refuse-500", status: 500, exit: .network, cause: "error"),
        Expectation(scenario: "refuse-603", status: 603, exit: .declined, cause: "denied"),
    ]

    /// Runs a test with carol, who does what the scenario says, and alice's client.
    private func withCarol(
        _ scenario: String, _ body: (Scratch, PeerServer, SIPpPhone) async throws -> Void
    ) async throws {
        try await Scratch.with { world in
            try await PeerServer.with(world) { server in
                try world.configure(server.configuration(transport: "udp"))
                let carol = try await SIPpPhone.start(scenario, user: "carol", at: server, in: world)
                try await with(carol) { carol in
                    try await world.start("alice", "--capture", "tone:440")
                    try await body(world, server, carol)
                }
            }
        }
    }

    /// Calls carol once; both the scenario and the caller must end as they should.
    @Test(arguments: answered + refused)
    func carolIsCalled(_ expectation: Expectation) async throws {
        try await withCarol(expectation.scenario) { world, _, carol in
            var arguments = ["call", "carol", "--as", "alice", "--json"]
            if expectation.isEndedHere { arguments += ["--duration", "1500ms"] }
            let run = try await world.begin(arguments).end()
            #expect(run.exit == expectation.exit.rawValue, "\(run.errors)\(run.output)")
            try await carol.expectSuccess()
            let end = try #require(try await world.calls("alice").first?["end"])
            #expect(end["cause"]?.string == expectation.cause, "\(end)")
            #expect(end["isLocal"]?.bool == expectation.isEndedHere, "\(end)")
            if let status = expectation.status { #expect(end["sipStatus"]?.integer == status, "\(end)") }
            let events = try await world.must("events", "--as", "alice", "--jsonl").output
            let isHeldOnce = ["hold", "update"].contains(expectation.scenario)
            #expect(events.contains("heldByRemote") == isHeldOnce && events.contains("resumedByRemote") == isHeldOnce)
        }
    }

    /// A redirect leads the call to a client of ours.
    @Test func carolSendsTheCallToDave() async throws {
        try await withCarol("redirect") { world, _, carol in
            try await world.start("dave", "--auto-answer", "--capture", "tone:700")
            try await world.must("call", "carol", "--as", "alice", "--duration", "1", "--json")
            try await carol.expectSuccess()
            try await world.must("wait", "--as", "dave", "--for", "ended", "--timeout", "5")
            let call = try #require(try await world.calls("dave").first)
            #expect(call["remote"]?.string == "alice" && call["end"]?["cause"]?.string == "hungUp", "\(call)")
        }
    }

    /// Without a server in between, which would take the challenge out: a peer that asks for credentials within a call.
    @Test func challengeToABYEIsNotAnswered() async throws {
        try await Scratch.with { world in
            // A registration, a call, and the registration's end.
            let carol = try SIPpPhone.serve("registrar-challenges-bye", calls: 3, domain: "sip.test", in: world)
            do {
                try world.configure(
                    """
                    { profiles: { default: {
                      environmentHost: "sip.test", outboundProxy: "127.0.0.1:\(carol.port);transport=udp",
                      applicationKey: "\(KamailioNode.applicationKey)",
                      applicationSecret: "\(KamailioNode.applicationSecret)" } } }
                    """)
                try await world.start("alice", "--capture", "tone:440")
                try await world.must("call", "carol", "--as", "alice", "--duration", "1")
                let end = try #require(try await world.calls("alice").first?["end"])
                #expect(end["cause"]?.string == "hungUp" && end["isLocal"]?.bool == true, "\(end)")
                try await world.must("terminate", "--user", "alice")
                try await carol.expectSuccess()
            } catch {
                await carol.stop()
                throw error
            }
        }
    }

    /// carol calls alice: an answered call without an offer, and many that are given up as soon as they ring.
    @Test(arguments: ["call-without-offer", "call-and-cancel"])
    func carolCalls(_ scenario: String) async throws {
        try await Scratch.with { world in
            try await PeerServer.with(world) { server in
                try world.configure(server.configuration(transport: "udp"))
                let isCanceled = scenario == "call-and-cancel"
                if isCanceled {
                    try await world.start("alice")
                } else {
                    try await world.start("alice", "--auto-answer", "--capture", "tone:440")
                }
                let count = isCanceled ? 20 : 1
                let carol = try await SIPpPhone.start(scenario, user: "carol", calls: count, at: server, in: world)
                try await with(carol) { carol in
                    try await carol.expectSuccess()
                    try await world.must("wait", "--as", "alice", "--for", "ended", "--timeout", "5")
                    #expect(try await world.status("alice")["calls"] == .array([]))
                    let calls = try await world.calls("alice")
                    #expect(calls.count == count)
                    let call = try #require(calls.first)
                    #expect(call["remote"]?.string == "carol" && call["direction"]?.string == "incoming", "\(call)")
                    #expect(call["end"]?["cause"]?.string == (isCanceled ? "canceled" : "hungUp"), "\(call)")
                    #expect(call["end"]?["isLocal"]?.bool == false, "\(call)")
                    #expect((call["times"]?["established"] != nil) == !isCanceled, "\(call)")
                }
            }
        }
    }
}
