import Primitives
import SIP
@testable import SinchEnvironment
import Testing

@Suite struct OverloadTests {
    @Test func floodOfCallsIsRefusedAndOthersAreServed() throws {
        var world = try World()
        var mallory = try world.registered("mallory", port: 40_009)
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        for _ in 0..<4_000 {
            try world.deliver(mallory.request(.invite, to: "nobody"), from: mallory.flow)
            world.now += .microseconds(250)
        }
        let answers = world.takeResponses(mallory.flow)
        let refused = answers.filter { $0.status == 503 }
        #expect(refused.count > 5)
        #expect(refused.allSatisfy { ($0.retryAfter ?? 0) > 0 })
        // 1,000 at once and 500 in the second, the rest refused at 10 a second after 20: silence for most.
        #expect((1_000...1_700).contains(answers.count), "\(answers.count)")
        #expect(world.events.filter { if case .rateLimited = $0 { true } else { false } }.count == 1)

        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        #expect(world.take(bob.flow).map(\.method) == [.invite])
        // And after a pause the flooder, too.
        try world.advance(by: .seconds(60))
        try world.register(&mallory)
    }

    @Test func callsOfOneSourceAreBounded() throws {
        var world = try World { $0.limits.maxCallsPerSource = 3 }
        var alice = try world.registered("alice", port: 40_001)
        var carol = try world.registered("carol", port: 40_003)
        let bob = try world.registered("bob", port: 40_002)
        for _ in 0..<3 { try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow) }
        let received = world.take(bob.flow)
        #expect(received.count == 3)
        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        let answer = try #require(world.takeResponses(alice.flow).first)
        #expect(answer.status == 503)
        #expect(answer.retryAfter == 5)
        try world.deliver(carol.request(.invite, to: "bob"), from: carol.flow)
        #expect(world.take(bob.flow).count == 1)
        // One that ends makes room.
        try world.deliver(bob.response(486, to: received[0]), from: bob.flow)
        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        #expect(world.take(bob.flow).filter { $0.method == .invite }.count == 1)
    }

    @Test func requestsInProgressAreBounded() throws {
        var world = try World { $0.limits.maxTransactions = 50 }
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        for _ in 0..<200 {
            try world.deliver(alice.request(.message, to: "bob"), from: alice.flow)
        }
        #expect(world.core.forwardingCount <= 50)
        let answers = world.takeResponses(alice.flow)
        #expect(answers.filter { $0.status == 503 }.count >= 150)
        #expect(world.take(bob.flow).count <= 50)
        try world.advance(by: .seconds(200))
        #expect(world.core.forwardingCount == 0)
    }

    /// Many addresses, each within its limits: what strangers send must not cost memory, and nobody else is refused.
    @Test(arguments: [SIPMethod.invite, .message, .options, .bye, .register, .subscribe])
    func floodOfStrangersFillsNothing(_ method: SIPMethod) throws {
        var world = try World { $0.limits.maxTransactions = 50 }
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        for port in UInt16(41_000)..<42_000 {
            var stranger = world.client("alice", port: port)
            let request = method == .register ? stranger.register(token: nil) : stranger.request(method, to: "bob")
            for _ in 0..<2 { try world.deliver(request, from: stranger.flow) }
            let answers = world.takeResponses(stranger.flow)
            #expect(answers.count == 2)
            #expect(answers.allSatisfy { (400..<500).contains($0.status ?? 0) }, "\(answers)")
            #expect(Set(answers.map { $0.to?.tag }).count == 1)
        }
        #expect(world.core.transactionCount <= 4)
        #expect(world.take(bob.flow).isEmpty)
        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        #expect(world.take(bob.flow).map(\.method) == [.invite])
    }

    @Test func strangersDoNotFloodTheLog() throws {
        var throttle = EventThrottle()
        let flow = SIPFlow(transport: .udp, remote: TransportAddress(host: "127.0.0.1", port: 9))
        let noise = EnvironmentEvent.malformed(flow: flow, reason: "no SIP")
        let ended = EnvironmentEvent.callEnded(call: "c", by: "alice")
        var now = MonotonicTime(nanoseconds: 0)
        var passed: [EnvironmentEvent] = []
        for _ in 0..<10_000 {
            passed += throttle.pass(noise, at: now)
            now += .milliseconds(1)
        }
        // 20 at once and one in each of the ten seconds, each after the number of those before it.
        #expect((25...31).contains(passed.filter { $0 == noise }.count))
        // What users do is always told, and so is how much was left out before it.
        passed += throttle.pass(ended, at: now)
        #expect(passed.last == ended)
        let counted = passed.reduce(0) { sum, event in
            if case .suppressed(let count) = event { sum + count } else { event == noise ? sum + 1 : sum }
        }
        #expect(counted == 10_000)
    }

    @Test func nothingIsLeftOfManyCalls() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", .tcp, port: 40_002)
        for round in 0..<60 {
            let (invite, received) = try world.invite(&alice, "bob", callees: [bob])
            let status = [486, 200, 603, 503][round % 4]
            try world.deliver(bob.response(status, to: received[0]), from: bob.flow)
            let answer = try #require(world.takeResponses(alice.flow).first)
            // 503 is for a whole server; a device that says so is just out of order.
            #expect(answer.status == (status == 503 ? 500 : status))
            if status != 200 { try world.deliver(alice.ack(invite, refusal: answer), from: alice.flow) }
            try world.advance(by: .seconds(1))
            _ = world.take(bob.flow)
            try world.register(&alice)
        }
        try world.advance(by: .seconds(100))
        #expect(world.core.forwardingCount == 0)
        try world.advance(by: .seconds(3_700))
        #expect(world.core.registrationCount == 0)
        #expect(world.core.nextTimeout == nil)
    }
}
