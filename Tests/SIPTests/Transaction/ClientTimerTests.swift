import Primitives
import SIP
import Testing

@Suite("Timers of client transactions")
struct ClientTimerTests {
    @Test("A and B: an INVITE over UDP is repeated at doubling intervals and given up after 64·T1")
    func timersAAndB() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.invite), over: LayerProbe.udp)
        probe.run(until: 100)
        #expect(
            probe.takeLog() == [
                "0.0 > INVITE", "0.5 > INVITE", "1.5 > INVITE", "3.5 > INVITE", "7.5 > INVITE", "15.5 > INVITE",
                "31.5 > INVITE", "32.0 failed INVITE: no answer within the transaction's time", "32.0 ended INVITE",
            ])
        #expect(Set(probe.sent.map { $0.message.topVia?.branch }).count == 1)
        #expect(probe.layer.nextTimeout == nil)
        #expect(probe.layer.clientTransactionCount == 0)
    }

    @Test("A is zero and B the same over a reliable transport")
    func timerBReliable() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.invite), over: LayerProbe.tcp)
        probe.run(until: 100)
        #expect(
            probe.takeLog() == [
                "0.0 > INVITE", "32.0 failed INVITE: no answer within the transaction's time", "32.0 ended INVITE",
            ])
    }

    @Test("a provisional response stops A and B: an INVITE may ring for ever")
    func provisional() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.invite), over: LayerProbe.udp)
        probe.run(until: 0.7)
        probe.answer(100, to: .invite)
        probe.answer(180, to: .invite)
        probe.run(until: 3600)
        #expect(probe.takeLog() == ["0.0 > INVITE", "0.5 > INVITE", "0.7 < 100", "0.7 < 180"])
        #expect(probe.layer.clientTransactionCount == 1)
    }

    @Test("C: cancels an INVITE without a final response, each 18x starting it anew; 64·T1 later it fails")
    func timerC() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.invite), over: LayerProbe.tcp, timerC: .seconds(181))
        probe.run(until: 1)
        probe.answer(180, to: .invite)
        probe.run(until: 100)
        probe.answer(180, to: .invite)
        probe.run(until: 150)
        probe.answer(100, to: .invite)  // 100 does not start it anew
        probe.run(until: 281.5)
        probe.answer(200, to: .cancel)
        probe.run(until: 1000)
        #expect(
            probe.takeLog() == [
                "0.0 > INVITE", "1.0 < 180", "100.0 < 180", "150.0 < 100", "281.0 > CANCEL", "281.5 < 200",
                "281.5 ended CANCEL", "313.0 failed INVITE: no answer within the transaction's time",
                "313.0 ended INVITE",
            ])
    }

    @Test("C without any provisional response ends the INVITE as a time-out")
    func timerCWithoutProvisional() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.invite), over: LayerProbe.tcp, timerC: .seconds(10))
        probe.run(until: 100)
        #expect(
            probe.takeLog() == [
                "0.0 > INVITE", "10.0 failed INVITE: no answer within the transaction's time", "10.0 ended INVITE",
            ])
    }

    @Test("D: a refusal is acknowledged each time it comes, for 32 s over UDP, and reported once")
    func timerD() throws {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.invite), over: LayerProbe.udp)
        probe.run(until: 0.1)
        probe.answer(486, to: .invite)
        probe.run(until: 10)
        probe.answer(486, to: .invite)
        probe.run(until: 100)
        #expect(
            probe.takeLog() == [
                "0.0 > INVITE", "0.1 > ACK", "0.1 < 486", "10.0 > ACK", "32.1 ended INVITE",
            ])
        let invite = try #require(probe.sent.first?.message)
        let ack = try #require(probe.sent.last?.message)
        #expect(ack.vias == invite.vias)
        #expect(ack.requestURI == invite.requestURI)
        #expect(ack.to?.tag == "bob-tag")
        #expect(ack.from == invite.from)
        #expect(ack.callID == invite.callID)
        #expect(ack.cseq == SIPCSeq(number: 1, method: .ack))
        #expect(ack.validate() == nil)
    }

    @Test("D is zero over a reliable transport")
    func timerDReliable() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.invite), over: LayerProbe.tcp)
        probe.answer(486, to: .invite, over: LayerProbe.tcp)
        #expect(probe.takeLog() == ["0.0 > INVITE", "0.0 > ACK", "0.0 < 486", "0.0 ended INVITE"])
    }

    @Test("E and F: another request over UDP is repeated, doubling up to T2, and given up after 64·T1")
    func timersEAndF() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.options), over: LayerProbe.udp)
        probe.run(until: 100)
        let times = [0.0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5]
        #expect(
            probe.takeLog() == times.map { "\($0) > OPTIONS" } + [
                "32.0 failed OPTIONS: no answer within the transaction's time", "32.0 ended OPTIONS",
            ])
    }

    @Test("E after a provisional response is T2; F goes on")
    func timerEProceeding() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.options), over: LayerProbe.udp)
        probe.run(until: 0.6)
        probe.answer(100, to: .options)
        probe.run(until: 100)
        let times = [1.5, 5.5, 9.5, 13.5, 17.5, 21.5, 25.5, 29.5]
        #expect(
            probe.takeLog() == ["0.0 > OPTIONS", "0.5 > OPTIONS", "0.6 < 100"] + times.map { "\($0) > OPTIONS" } + [
                "32.0 failed OPTIONS: no answer within the transaction's time", "32.0 ended OPTIONS",
            ])
    }

    @Test("F over a reliable transport, without repetition")
    func timerFReliable() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.register), over: LayerProbe.tcp)
        probe.run(until: 100)
        #expect(
            probe.takeLog() == [
                "0.0 > REGISTER", "32.0 failed REGISTER: no answer within the transaction's time",
                "32.0 ended REGISTER",
            ])
    }

    @Test("K: repeated responses are absorbed for T4 over UDP, not at all over a reliable transport")
    func timerK() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.options), over: LayerProbe.udp)
        probe.run(until: 0.2)
        probe.answer(200, to: .options)
        probe.run(until: 3)
        probe.answer(200, to: .options)
        probe.run(until: 6)
        probe.answer(200, to: .options)
        #expect(probe.takeLog() == ["0.0 > OPTIONS", "0.2 < 200", "5.2 ended OPTIONS", "6.0 stray 200"])

        var reliable = LayerProbe()
        _ = reliable.send(LayerProbe.request(.options), over: LayerProbe.tcp)
        reliable.answer(200, to: .options)
        #expect(reliable.takeLog() == ["0.0 > OPTIONS", "0.0 < 200", "0.0 ended OPTIONS"])
    }

    @Test("M: every 2xx to an INVITE, of every fork and repeated, is delivered for 64·T1", arguments: [false, true])
    func timerM(isReliable: Bool) {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.invite), over: isReliable ? LayerProbe.tcp : LayerProbe.udp)
        probe.run(until: 0.3)
        probe.answer(200, to: .invite, tag: "one")
        probe.run(until: 0.8)
        probe.answer(200, to: .invite, tag: "one")
        probe.answer(180, to: .invite, tag: "three")
        probe.answer(486, to: .invite, tag: "four")
        probe.run(until: 20)
        probe.answer(200, to: .invite, tag: "two")
        probe.run(until: 33)
        probe.answer(200, to: .invite, tag: "two")
        #expect(
            probe.takeLog() == [
                "0.0 > INVITE", "0.3 < 200", "0.8 < 200", "20.0 < 200", "32.3 ended INVITE", "33.0 stray 200",
            ])
    }

    @Test("a late wake-up does the work once, not once for each interval that was slept through")
    func lateWakeUp() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.options), over: LayerProbe.udp)
        probe.now = .zero + .seconds(10)
        probe.layer.timeout(at: probe.now)
        probe.drain()
        #expect(probe.takeLog() == ["0.0 > OPTIONS", "10.0 > OPTIONS"])
        #expect(probe.layer.nextTimeout == .zero + .seconds(11))
    }
}
