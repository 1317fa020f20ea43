import Primitives
import SIP
import Testing

@Suite("Timers of server transactions")
struct ServerTimerTests {
    @Test("100 goes out after 200 ms unless the user answered before")
    func trying() throws {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite))
        probe.run(until: 1)
        #expect(probe.takeLog() == ["0.0 < INVITE", "0.2 > 100"])
        #expect(try #require(probe.sent.last?.message).to?.tag == nil)

        var quick = LayerProbe()
        quick.receive(LayerProbe.received(.invite))
        quick.run(until: 0.1)
        quick.respond(180)
        quick.run(until: 1)
        #expect(quick.takeLog() == ["0.0 < INVITE", "0.1 > 180"])
    }

    @Test("a repeated INVITE is answered with the last provisional response, and the user hears nothing")
    func repeatedInvite() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite))
        probe.run(until: 0.1)
        probe.receive(LayerProbe.received(.invite))  // before the 200 ms: 100 at once
        probe.run(until: 0.5)
        probe.receive(LayerProbe.received(.invite))
        probe.respond(180)
        probe.run(until: 1.5)
        probe.receive(LayerProbe.received(.invite))
        #expect(probe.takeLog() == ["0.0 < INVITE", "0.1 > 100", "0.5 > 100", "0.5 > 180", "1.5 > 180"])
    }

    @Test("G and H: a refusal is repeated over UDP, doubling up to T2, until 64·T1 without an ACK")
    func timersGAndH() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite))
        probe.run(until: 0.1)
        probe.respond(486)
        probe.run(until: 100)
        let times = [0.1, 0.6, 1.6, 3.6, 7.6, 11.6, 15.6, 19.6, 23.6, 27.6, 31.6]
        #expect(
            probe.takeLog() == ["0.0 < INVITE"] + times.map { "\($0) > 486" } + [
                "32.1 failed INVITE: the final response to the INVITE was never acknowledged", "32.1 ended INVITE",
            ])
    }

    @Test("H over a reliable transport, without repetition")
    func timerHReliable() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite), over: LayerProbe.tcp)
        probe.respond(486)
        probe.run(until: 100)
        #expect(
            probe.takeLog() == [
                "0.0 < INVITE", "0.0 > 486",
                "32.0 failed INVITE: the final response to the INVITE was never acknowledged", "32.0 ended INVITE",
            ])
    }

    @Test("I: after the ACK of a refusal more ACKs are absorbed for T4 over UDP")
    func timerI() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite))
        probe.respond(486)
        probe.run(until: 0.3)
        probe.receive(LayerProbe.received(.ack, toTag: "bob-tag"))
        probe.run(until: 2)
        probe.receive(LayerProbe.received(.ack, toTag: "bob-tag"))
        probe.receive(LayerProbe.received(.invite))
        probe.run(until: 100)
        #expect(probe.takeLog() == ["0.0 < INVITE", "0.0 > 486", "5.3 ended INVITE"])
    }

    @Test("I is zero over a reliable transport")
    func timerIReliable() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite), over: LayerProbe.tcp)
        probe.respond(486)
        probe.run(until: 0.3)
        probe.receive(LayerProbe.received(.ack, toTag: "bob-tag"), over: LayerProbe.tcp)
        #expect(probe.takeLog() == ["0.0 < INVITE", "0.0 > 486", "0.3 ended INVITE"])
    }

    @Test("J: repeats of another request get the final response for 64·T1 over UDP, not at all over TCP")
    func timerJ() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.options))
        probe.receive(LayerProbe.received(.options))  // no answer yet: absorbed
        probe.run(until: 1)
        probe.respond(200)
        probe.run(until: 20)
        probe.receive(LayerProbe.received(.options))
        probe.run(until: 100)
        #expect(probe.takeLog() == ["0.0 < OPTIONS", "1.0 > 200", "20.0 > 200", "33.0 ended OPTIONS"])

        var reliable = LayerProbe()
        reliable.receive(LayerProbe.received(.options), over: LayerProbe.tcp)
        reliable.respond(200)
        #expect(reliable.takeLog() == ["0.0 < OPTIONS", "0.0 > 200", "0.0 ended OPTIONS"])
    }

    @Test(
        "L: after a 2xx repeated INVITEs are absorbed, the user's repetitions pass, 64·T1 long",
        arguments: [false, true])
    func timerL(isReliable: Bool) {
        let flow = isReliable ? LayerProbe.tcp : LayerProbe.udp
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite), over: flow)
        probe.run(until: 0.1)
        probe.respond(200)
        probe.receive(LayerProbe.received(.invite), over: flow)
        probe.run(until: 0.6)
        probe.respond(200)
        probe.respond(486)  // too late
        probe.receive(LayerProbe.received(.ack, branch: "z9hG4bKother", toTag: "bob-tag"), over: flow)
        probe.receive(LayerProbe.received(.ack, branch: "z9hG4bKother", toTag: "bob-tag"), over: flow)
        probe.run(until: 100)
        probe.respond(200)
        #expect(
            probe.takeLog() == [
                "0.0 < INVITE", "0.1 > 200", "0.6 > 200", "0.6 < ACK", "0.6 < ACK", "32.1 ended INVITE",
            ])
    }

    @Test("L without an ACK reports it")
    func timerLWithoutAck() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite))
        probe.respond(200)
        probe.receive(LayerProbe.received(.ack, branch: "z9hG4bKother", toTag: "somebody-else"))
        probe.run(until: 100)
        #expect(
            probe.takeLog() == [
                "0.0 < INVITE", "0.0 > 200", "0.0 < ACK (alone)",
                "32.0 failed INVITE: the final response to the INVITE was never acknowledged", "32.0 ended INVITE",
            ])
    }

    @Test("a request that its user never answers is forgotten without a 408 (RFC 4320)")
    func abandoned() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.options))
        probe.run(until: 100)
        #expect(probe.takeLog() == ["0.0 < OPTIONS", "64.0 ended OPTIONS"])
    }
}
